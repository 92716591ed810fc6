"""Who used what: asked, held, used and lost, as integrals over time. Exact: thousandths or bytes times milliseconds.

* *asked*: from the creation of a PodGroup until it has ended, while it waits and while it runs.
* *held*: from the binding of each member until it has ended.
* *used*: of that, from when on a container of the member ran.
* *lost*: of what was held, the time since the last checkpoint (else the start) of members that were evicted, or that
  ended otherwise than well before their gang started again.

Days whose detail has gone count from what was folded of them, each as a whole.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, get_args

import msgspec
from sqlalchemy import func, or_, select

from history.model import DAY_MS, MS, End
from history.schema import DAYS, GANGS, HOLDINGS, RUNS
from history.scope import EVERYTHING, Scope
from history.store import Store
from muster.resources.vector import Vector, unit

By = Literal["queue", "namespace", "user", "workload", "day"]
KEYS: Final[tuple[str, ...]] = get_args(By)
"""What usage can be told by."""
FOLDED: Final = "folded-until"
"""Note of the recorder's: the end of the last day whose detail has gone, in milliseconds."""
SEEN: Final = "seen-until"
"""Note of the recorder's: until when it has looked, in milliseconds."""
_VECTOR: Final = msgspec.json.Decoder(Vector)
_SHAPES: Final = 4096
"""Different amounts that are remembered: members of one shape share theirs."""


class Amounts(msgspec.Struct):
    """Amounts of one resource over a time, in thousandths or base units times milliseconds."""

    asked: int = 0
    held: int = 0
    used: int = 0
    lost: int = 0

    def add(self, other: "Amounts") -> None:
        """Add others to these."""
        self.asked += other.asked
        self.held += other.held
        self.used += other.used
        self.lost += other.lost


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


@lru_cache(_SHAPES)
def _vector(text: str) -> Vector:
    return _VECTOR.decode(text)


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
        totals = integrate(
            spans(store, scope, max(first, folded), last, namespace, queue), by, max(first, folded), last, end
        )
        for key, amounts in _folded(store, scope, by, first, min(last, folded), namespace, queue):
            totals.setdefault(key, Amounts()).add(amounts)
    return rows(totals)


def closed_since(store: Store, since: int) -> Totals:
    """Return what was held and used by queue since then by members that have ended, of all the cluster."""
    folded = int(store.note(FOLDED) or 0)
    now = 2**62
    with store.failing():
        known = spans(store, EVERYTHING, max(since, folded), now)
        over = [each for each in known if each.held and each.until is not None]
        totals = integrate(over, ("queue",), max(since, folded), now, now)
        for key, amounts in _folded(store, EVERYTHING, ("queue",), since, folded, None, None):
            totals.setdefault(key, Amounts()).add(amounts)
    return totals


def rows(totals: Totals) -> list[Row]:
    """Return totals as rows, sorted by key."""
    found: dict[tuple[str, ...], dict[str, Seconds]] = {}
    for (key, resource), amounts in sorted(totals.items()):
        whole = unit(resource) * MS
        found.setdefault(key, {})[resource] = Seconds(
            *(each / whole for each in (amounts.asked, amounts.held, amounts.used, amounts.lost))
        )
    return [Row(key, resources) for key, resources in found.items()]


def _mine(scope: Scope, table: Any, namespace: str | None, queue: str | None) -> list[Any]:
    """Return the conditions that keep others' rows out of an answer, in the database itself."""
    conditions = [] if scope.namespaces is None else [table.c.namespace.in_(sorted(scope.namespaces))]
    conditions += [table.c.namespace == namespace] if namespace else []
    return conditions + ([table.c.queue == queue] if queue else [])


def spans(
    store: Store, scope: Scope, since: int, until: int, namespace: str | None = None, queue: str | None = None
) -> list[Span]:
    """Return what overlaps [since, until) as spans."""
    found: list[Span] = []
    mine = _mine(scope, GANGS, namespace, queue)
    with store.engine.connect() as connection:
        gangs = select(GANGS.c.id, *(GANGS.c[name] for name in Owner._fields)).where(*mine)
        owners = {row[0]: Owner(*row[1:]) for row in connection.execute(gangs)}
        runs = (
            select(RUNS.c.gang, RUNS.c.asked, RUNS.c.submitted, RUNS.c.ended)
            .join(GANGS, GANGS.c.id == RUNS.c.gang)
            .where(*mine, RUNS.c.submitted < until)
            .where(or_(RUNS.c.ended.is_(None), RUNS.c.ended > since))
        )
        for gang, asked, submitted, ended in connection.execute(runs):
            if gang in owners:  # it may have come between the two statements
                found.append(Span(owners[gang], _vector(asked), submitted, ended))
        held = (
            select(*(HOLDINGS.c[name] for name in _HELD))
            .join(GANGS, GANGS.c.id == HOLDINGS.c.gang)
            .where(*mine, HOLDINGS.c.bound < until)
            .where(or_(HOLDINGS.c.ended.is_(None), HOLDINGS.c.ended > since))
        )
        members = connection.execute(held).all()
        last = _last_starts(connection, since)
    for gang, amounts, bound, ran_from, ended, reason, saved in members:
        if gang not in owners:
            continue
        lost = None
        again = reason not in _NOT_LOST and last.get(gang, 0) >= (ended or 0) > 0
        if again or reason == End.EVICTED:
            lost = max(ran_from or bound, saved or 0)
        found.append(Span(owners[gang], _vector(amounts), bound, ended, True, ran_from, lost))  # noqa: FBT003 - 100,000s
    return found


_HELD: Final = ("gang", "amounts", "bound", "ran_from", "ended", "reason", "saved")
_NOT_LOST: Final = frozenset({"", str(End.COMPLETED)})


def _last_starts(connection: Any, since: int) -> dict[str, int]:
    """Return the latest binding of each gang of which a member has ended since then."""
    ended = select(HOLDINGS.c.gang).where(HOLDINGS.c.ended > since).distinct()
    found = select(HOLDINGS.c.gang, func.max(HOLDINGS.c.bound)).where(HOLDINGS.c.gang.in_(ended))
    return {str(gang): int(bound) for gang, bound in connection.execute(found.group_by(HOLDINGS.c.gang))}


def _folded(
    store: Store, scope: Scope, by: Sequence[str], since: int, until: int, namespace: str | None, queue: str | None
) -> Iterator[tuple[tuple[tuple[str, ...], str], Amounts]]:
    """Yield the amounts of folded days that begin within [since, until)."""
    if since >= until:
        return
    wanted = [*(DAYS.c[name] for name in Owner._fields), DAYS.c.day, DAYS.c.resource]
    wanted += [DAYS.c[name] for name in Amounts.__struct_fields__]
    first = -(-since // DAY_MS)
    chosen = select(*wanted).where(
        *_mine(scope, DAYS, namespace, queue), DAYS.c.day >= first, DAYS.c.day * DAY_MS < until
    )
    with store.engine.connect() as connection:
        for row in connection.execute(chosen):
            *whose, day, resource, asked, held, used, lost = row
            key = key_of(Owner(*whose), day, by), resource
            yield key, Amounts(int(asked), int(held), int(used), int(lost))
