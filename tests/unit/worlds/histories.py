"""Stores with gangs of some days: they run, fail, are evicted, start again, save their work, or never end."""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from msgspec import structs
from sqlalchemy import select

from history.model import DAY_MS, MS, GangEventRow, GangRun, Holding, MemberEnd, RecordedGang, RowChanges, Scope, What
from history.schema import GANGS, HOLDINGS, RUNS
from history.store import HistoryStore
from history.usage import KEYS, usage
from muster.resources.vector import unit

GPU = "nvidia.com/gpu"


def gang_of_one(
    namespace: str, name: str, at: int, lasts: int, *, bound: int = 0, text: str = "", gpus: int = 8, **whose: str
) -> RowChanges:
    """A gang of one member, which is submitted at a time (ms), bound so much later, and lasts so long."""
    gang, run, pod = (f"{kind}-{namespace}-{name}" for kind in ("uid", "run", "pod"))
    amounts, whose = {GPU: 1000 * gpus}, {"kind": "Job", "queue": "research", **whose}
    holding = Holding(
        pod=pod, name=f"{name}-0", gang=gang, run=run, epoch=1, node=f"node-of-{namespace}", amounts=amounts,
        bound=at + bound, ran_from=at + bound, ended=at + bound + lasts, reason="completed",
    )  # fmt: skip
    return RowChanges(
        gangs={gang: RecordedGang(id=gang, namespace=namespace, name=name, submitted=at, **whose)},  # type: ignore[arg-type]
        runs={run: GangRun(uid=run, gang=gang, submitted=at, ended=at + bound + lasts, asked=amounts)},
        holdings={pod: holding},
        gang_events=[GangEventRow(gang=gang, run=run, epoch=0, what=What.SUBMITTED, at=at, text=text)],
    )


def lived(url: str, seed: int) -> tuple[HistoryStore, int]:
    """A new store, and its present."""
    chance, now = random.Random(seed), 30 * DAY_MS  # noqa: S311 - no secret
    store = HistoryStore.for_writing(url)
    changes = RowChanges()
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
                reason=str(chance.choice([*MemberEnd])) if ended else chance.choice(["", str(MemberEnd.EVICTED)]),
                saved=chance.choice([None, chance.randrange(at, (ended or now) + 1)]) if ended else None,
            )  # fmt: skip
            at = chance.choice([at, ended or at])
        over = max((each.ended or now for each in changes.holdings.values() if each.gang == gang), default=now)
        run = GangRun(uid=f"run-{number}", gang=gang, submitted=begin, ended=chance.choice([None, over]), asked=amounts)
        changes.runs[run.uid] = run
        changes.gangs[gang] = RecordedGang(id=gang, name=chance.choice("xy"), kind="Job", submitted=begin, **owner)
    store.write(changes, {"seen-until": str(now)})
    return store, now


class Rows(NamedTuple):
    """All that a store has before any of it is folded."""

    gangs: dict[str, Any]
    runs: list[Any]
    holdings: list[Any]


def rows_of(store: HistoryStore) -> Rows:
    """Read every row."""
    with store.engine.connect() as connection:
        gangs, runs, holdings = (connection.execute(select(table)).all() for table in (GANGS, RUNS, HOLDINGS))
    return Rows({gang.id: gang for gang in gangs}, [*runs], [*holdings])


def overlap(begin: int | None, end: int, since: int, until: int) -> int:
    """How long two times have in common."""
    return 0 if begin is None else max(0, min(end, until) - max(begin, since))


def lost_from(rows: Rows, holding: Any) -> int | None:
    """From when on the work of a member is lost: it was evicted, or its gang was bound again after it had ended."""
    bound = [each.bound for each in rows.holdings if each.gang == holding.gang]
    again = holding.ended is not None and holding.reason not in {"", "completed"} and max(bound) >= holding.ended
    lost = holding.reason == "evicted" or again
    return max(holding.ran_from or holding.bound, holding.saved or 0) if lost else None


def expected(rows: Rows, by: Sequence[str], since: int, until: int) -> dict[Any, Counter[tuple[str, str]]]:
    """Unit-milliseconds by key, and by resource and kind of amount: row by row, and day by day."""
    found: dict[Any, Counter[tuple[str, str]]] = defaultdict(Counter)
    for row in (*rows.runs, *rows.holdings):
        gang, end = rows.gangs[row.gang], until if row.ended is None else row.ended
        if row in rows.runs:
            begins, amounts = {"asked": row.submitted}, row.asked
        else:
            begins, amounts = {"held": row.bound, "used": row.ran_from, "lost": lost_from(rows, row)}, row.amounts
        for day in range(since // DAY_MS, until // DAY_MS + 1):
            first, last = max(since, day * DAY_MS), min(until, (day + 1) * DAY_MS)
            date = f"{datetime.fromtimestamp(day * DAY_MS / MS, UTC):%Y-%m-%d}"
            names = {"day": date, "workload": f"{gang.namespace}/{gang.kind}/{gang.name}"}
            key = tuple(names.get(each) or getattr(gang, each) for each in by)
            for what, begin in begins.items():
                for resource, amount in json.loads(amounts).items():
                    found[key][resource, what] += amount * overlap(begin, end, first, last)
    return found


def same_as_rows(
    store: HistoryStore, rows: Rows, now: int, seed: int, keys: Sequence[str] = KEYS, unit_ms: int = 1
) -> None:
    """Usage is what every row comes to, for many questions about times of whole `unit_ms`."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    for _ in range(20):
        since, until = sorted(chance.randrange(8 * DAY_MS, now + 1) // unit_ms * unit_ms for _ in range(2))
        scope = Scope(chance.choice([None, frozenset("a"), frozenset("ab"), frozenset[str]()]))
        namespace, queue = chance.choice([None, "a", "b"]), chance.choice([None, "q"])
        gangs = {
            gang.id: gang
            for gang in rows.gangs.values()
            if scope.has(gang.namespace) and namespace in {None, gang.namespace} and queue in {None, gang.queue}
        }
        mine = Rows(gangs, *([each for each in some if each.gang in gangs] for some in rows[1:]))
        by = chance.sample(keys, chance.randrange(len(keys) + 1))
        told = usage(
            store, scope, by, since=since / MS, until=until / MS, now=now / MS, namespace=namespace, queue=queue
        )
        found = {
            (row.key, resource, what): amount
            for row in told
            for resource, seconds in row.resources.items()
            for what, amount in structs.asdict(seconds).items()
            if amount
        }
        assert found == {
            (key, resource, what): amount / (unit(resource) * MS)
            for key, amounts in expected(mine, by, since, until).items()
            for (resource, what), amount in amounts.items()
            if amount
        }, (since, until, by)
