"""Integrals over time of what was asked for and held: exact, in thousandths or bytes times milliseconds. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple, get_args

import msgspec

from history.model import DAY_MS, MS
from muster.resources.vector import Vector

By = Literal["queue", "namespace", "user", "workload", "day"]
KEYS: Final[tuple[str, ...]] = get_args(By)
"""What usage can be told by."""


class Amounts(msgspec.Struct):
    """Amounts of one resource over a time, in thousandths or base units times milliseconds."""

    asked: int = 0
    held: int = 0
    used: int = 0
    lost: int = 0

    def add(self, other: "Amounts", times: int = 1) -> None:
        """Add others to these, so many times."""
        self.asked += other.asked * times
        self.held += other.held * times
        self.used += other.used * times
        self.lost += other.lost * times


class Owner(NamedTuple):
    """Whose something is."""

    namespace: str
    queue: str
    user: str
    kind: str
    name: str


class Span(NamedTuple):
    """Amounts that one owner asked for, or held, for a time; an open end counts until now."""

    owner: Owner
    amounts: Vector
    asked_from: int
    """For what was asked; else the time of the binding."""
    until: int | None
    held: bool = False
    used_from: int | None = None
    lost_from: int | None = None
    """From when on the held time is lost; None if it is not."""


Totals = dict[tuple[tuple[str, ...], str], Amounts]
"""Amounts by key and resource."""


def integrate(spans: Iterable[Span], by: Sequence[str], since: int, until: int, now: int) -> Totals:
    """Return the integral of all spans over [since, until), by these keys; what is open counts until `now`."""
    until, days = min(until, now), "day" in by
    keys: dict[tuple[Owner, int], tuple[str, ...]] = {}
    times: dict[tuple[tuple[str, ...], int], _Times] = {}
    for span in spans:
        first, last = max(since, span.asked_from), min(until, now if span.until is None else span.until)
        for begin, end in _parts(first, last, days=days):
            whose = span.owner, begin // DAY_MS if days else 0
            key = keys.get(whose) or keys.setdefault(whose, key_of(*whose, by))
            place = key, id(span.amounts)
            found = times.get(place)
            if found is None:
                found = times[place] = _Times(span.amounts)
            found.add(span, begin, end)
    totals: Totals = {}
    for (key, _), each in times.items():
        for resource, amount in each.of.items():
            totals.setdefault((key, resource), Amounts()).add(
                Amounts(amount * each.asked, amount * each.held, amount * each.used, amount * each.lost)
            )
    return totals


class _Times:
    """The times for which the same amounts were asked for and held, in milliseconds: they are multiplied once."""

    __slots__ = ("asked", "held", "lost", "of", "used")

    def __init__(self, of: Vector) -> None:
        self.of = of
        self.asked = self.held = self.used = self.lost = 0

    def add(self, span: Span, begin: int, end: int) -> None:
        """Add the part of a span between two times within it."""
        if not span.held:
            self.asked += end - begin
            return
        self.held += end - begin
        if span.used_from is not None and span.used_from < end:
            self.used += end - max(begin, span.used_from)
        if span.lost_from is not None and span.lost_from < end:
            self.lost += end - max(begin, span.lost_from)


def _parts(first: int, last: int, *, days: bool) -> Iterator[tuple[int, int]]:
    """Yield a time in one part, or cut at midnights."""
    while days and first < last and first // DAY_MS < (last - 1) // DAY_MS:
        midnight = (first // DAY_MS + 1) * DAY_MS
        yield first, midnight
        first = midnight
    if first < last:
        yield first, last


def key_of(owner: Owner, day: int, by: Sequence[str]) -> tuple[str, ...]:
    """Return the key of an owner on a day, which counts from 1970."""
    return tuple(_value(owner, day, each) for each in by)


def _value(owner: Owner, day: int, by: str) -> str:
    if by == "day":
        return f"{datetime.fromtimestamp(day * DAY_MS / MS, UTC):%Y-%m-%d}"
    if by == "workload":
        return f"{owner.namespace}/{owner.kind}/{owner.name}"
    return str(getattr(owner, by))
