"""Who used what: asked, held, used and lost, as integrals over time. Exact: thousandths or bytes times milliseconds.

* *asked*: from the creation of a PodGroup until it has ended, while it waits and while it runs.
* *held*: from the binding of each member until it has ended.
* *used*: of that, from when on a container of the member ran.
* *lost*: of what was held, the time since the last checkpoint (else the start) of members that were evicted, or that
  ended otherwise than well before their gang started again.

Days whose detail has gone count from what was folded of them, each as a whole.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from sqlalchemy import select

from history.integral import KEYS, Amounts, Owner, Totals, integrate, key_of
from history.model import DAY_MS, MS
from history.schema import DAYS
from history.scope import EVERYTHING, Scope
from history.spans import Window, floors, mine, spans
from history.store import Store
from history.sums import sums
from muster.resources.vector import unit

FOLDED: Final = "folded-until"
"""Note of the recorder's: the end of the last day whose detail has gone, in milliseconds."""
SEEN: Final = "seen-until"
"""Note of the recorder's: until when it has looked, in milliseconds."""


class Row(msgspec.Struct, frozen=True):
    """Usage under one key."""

    key: tuple[str, ...]
    """The values of what it was asked by, in that order; a day is 2026-11-26, a workload namespace/kind/name."""
    resources: dict[str, "Seconds"]


class Seconds(msgspec.Struct, frozen=True):
    """Amounts of one resource in whole units times seconds: GPU seconds, core seconds, byte seconds."""

    asked: float = 0.0
    held: float = 0.0
    used: float = 0.0
    lost: float = 0.0


def usage(
    store: Store,
    scope: Scope,
    by: Sequence[str] = ("queue", "user"),
    *,
    since: float,
    until: float | None = None,
    now: float | None = None,
    namespace: str | None = None,
    queue: str | None = None,
) -> list[Row]:
    """Return usage over [since, until) of what a caller may see, by any of KEYS. ValueError names another key.

    Times are seconds. What is held still counts until `now`: by default until the recorder looked last.
    """
    if wrong := [each for each in by if each not in KEYS]:
        raise ValueError(f"usage by {wrong[0]!r} is not known; there are {', '.join(KEYS)}")
    seen = int(store.note(SEEN) or 0)
    end = seen if now is None else round(now * MS)
    first, last = round(since * MS), end if until is None else round(until * MS)
    folded = int(store.note(FOLDED) or 0)
    with store.failing():
        window = Window(max(first, folded), min(last, end), scope, namespace, queue)
        totals = sums(store, window, by)
        for key, amounts in _folded(store, window, by, first):
            totals.setdefault(key, Amounts()).add(amounts)
    return rows(totals)


def closed_since(store: Store, since: int) -> Totals:
    """Return what was held and used by queue since then by members that have ended, of all the cluster.

    Of members that have not ended folded days have a part, too: that is not in it.
    """
    folded = int(store.note(FOLDED) or 0)
    now = 2**62
    with store.failing():
        window = Window(max(since, folded), now, EVERYTHING)
        over = [each for each in spans(store, window) if each.held and each.until is not None]
        totals = integrate(over, ("queue",), window.since, now, now)
        for key, amounts in _folded(store, window, ("queue",), since):
            totals.setdefault(key, Amounts()).add(amounts)
        for key, amounts in _folded_of_open(store, -(-since // DAY_MS) * DAY_MS, folded):
            totals.setdefault(key, Amounts()).add(amounts, -1)
    return totals


def _folded_of_open(store: Store, since: int, folded: int) -> Iterator[tuple[tuple[tuple[str, ...], str], Amounts]]:
    """Yield what folded days have of members that have not ended, by queue."""
    until = floors(store)
    if max(folded, *until.values(), 0) <= since:
        return
    for span in spans(store, Window(since, 2**62, EVERYTHING), whole=True):
        if span.held and span.until is None:
            end = max(folded, until.get(span.owner.namespace, 0))
            yield from integrate([span], ("queue",), since, end, end).items()


def rows(totals: Totals) -> list[Row]:
    """Return totals as rows, sorted by key."""
    found: dict[tuple[str, ...], dict[str, Seconds]] = {}
    for (key, resource), amounts in sorted(totals.items()):
        whole = unit(resource) * MS
        found.setdefault(key, {})[resource] = Seconds(
            *(each / whole for each in (amounts.asked, amounts.held, amounts.used, amounts.lost))
        )
    return [Row(key, resources) for key, resources in found.items()]


def _folded(
    store: Store, window: Window, by: Sequence[str], since: int
) -> Iterator[tuple[tuple[tuple[str, ...], str], Amounts]]:
    """Yield the amounts of what is folded of the days that begin in a window that reaches back until `since`."""
    wanted = [*(DAYS.c[name] for name in Owner._fields), DAYS.c.day, DAYS.c.resource]
    wanted += [DAYS.c[name] for name in Amounts.__struct_fields__]
    first, last = -(-since // DAY_MS), -(-window.until // DAY_MS)
    chosen = select(*wanted).where(*mine(window, DAYS), DAYS.c.day >= first, DAYS.c.day < last)
    with store.engine.connect() as connection:
        for row in connection.execute(chosen):
            *whose, day, resource, asked, held, used, lost = row
            key = key_of(Owner(*whose), day, by), resource
            yield key, Amounts(int(asked), int(held), int(used), int(lost))
