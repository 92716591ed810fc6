"""Stores with gangs of some days: they run, fail, are evicted, start again, save their work, or never end."""

import random

from history.integral import KEYS, Amounts, Totals, integrate
from history.model import DAY_MS, Changes, End, Gang, Holding, Run
from history.scope import Scope
from history.spans import Window, spans
from history.store import Store
from history.sums import sums


def lived(url: str, seed: int) -> tuple[Store, int]:
    """A new store, and its present."""
    chance, now = random.Random(seed), 30 * DAY_MS  # noqa: S311 - no secret
    store = Store.for_writing(url)
    changes = Changes()
    for number in range(40):
        begin, gang = chance.randrange(10 * DAY_MS, now - 1000), f"gang-{number}"
        owner = {"namespace": chance.choice("ab"), "queue": chance.choice("qr"), "user": chance.choice(["", "eve"])}
        at, amounts = begin, {"nvidia.com/gpu": chance.choice([1000, 8000]), "memory": 2**45 + chance.randrange(3)}
        for start in range(chance.randrange(4)):
            ended = None if chance.random() < 0.2 else chance.randrange(at, now)
            pod = f"pod-{number}-{start}"
            changes.holdings[pod] = Holding(
                pod=pod, name="m-0", gang=gang, run="", epoch=start + 1, node="n", amounts=amounts, bound=at,
                ran_from=chance.choice([None, at, chance.randrange(at, (ended or now) + 1)]), ended=ended,
                reason=str(chance.choice([*End])) if ended else chance.choice(["", str(End.EVICTED)]),
                saved=chance.choice([None, chance.randrange(at, (ended or now) + 1)]) if ended else None,
            )  # fmt: skip
            at = chance.choice([at, ended or at])
        over = max((each.ended or now for each in changes.holdings.values() if each.gang == gang), default=now)
        run = Run(uid=f"run-{number}", gang=gang, submitted=begin, ended=chance.choice([None, over]), asked=amounts)
        changes.runs[run.uid] = run
        changes.gangs[gang] = Gang(id=gang, name=chance.choice("xy"), kind="Job", submitted=begin, **owner)
    store.write(changes, {"seen-until": str(now)})
    return store, now


def same_by_sums_and_spans(store: Store, now: int, seed: int) -> None:
    """The database sums up times to what the integral of each span comes to, for many questions."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    for _ in range(20):
        since, until = sorted(chance.randrange(8 * DAY_MS, now + 1) for _ in range(2))
        scope = Scope(chance.choice([None, frozenset("a"), frozenset("ab"), frozenset[str]()]))
        window = Window(since, until, scope, chance.choice([None, "a", "b"]), chance.choice([None, "q"]))
        by = chance.sample(KEYS, chance.randrange(len(KEYS)))
        expected = integrate(spans(store, window), by, since, until, now)
        assert some(sums(store, window, by)) == some(expected), (window, by)


def some(totals: Totals) -> Totals:
    """Totals without those of nothing."""
    return {place: each for place, each in totals.items() if each != Amounts()}
