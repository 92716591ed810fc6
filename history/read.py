"""Reader of recorded gangs and their events, for users who are allowed to see them.

Times are in seconds since the epoch.
"""

import re
from collections import Counter
from itertools import pairwise
from typing import Any

import msgspec
from sqlalchemy import Select, func, or_, select

from gangs.words import short
from history.integral import FOREVER, TimeSpan, integrate
from history.model import MS, Scope, What, vector_of
from history.schema import GANG_EVENTS, GANGS, GAPS, HOLDINGS
from history.spans import visible
from history.store import HistoryStore
from history.usage import SEEN
from muster.resources.gpus import is_gpu
from muster.resources.vector import unit

_NODES = msgspec.json.Decoder(tuple[str, ...])
_MOST = 10_000
"""Maximum number of gangs or events in a result."""
_MEMBER = (HOLDINGS.c.gang, HOLDINGS.c.node, HOLDINGS.c.amounts, HOLDINGS.c.bound, HOLDINGS.c.ended)


class GangHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The recorded past of one gang, over all of its restarts."""

    uid: str
    """Identifier that distinguishes gangs of the same name."""
    namespace: str
    name: str
    """Name of the gang's workload."""
    kind: str
    queue: str
    user: str
    """The gang's creator; empty if unknown."""
    submitted: float
    started: float | None
    """First start."""
    ended: float | None
    state: str
    """State of the gang: Waiting, Starting, Running, Degraded, Completed, Failed or Deleted."""
    restarts: int
    """Number of the gang's starts after the first one."""
    evictions: int
    nodes: tuple[str, ...]
    """The nodes on which members of the gang have been, sorted by name."""
    gpu_seconds: float
    """GPU seconds that the gang's members and spare slots held until the recorder's last pass."""
    ran_s: float = 0.0
    """Seconds, until the recorder's last pass, in which at least one member of the gang had a node."""

    waited_s: float = 0.0
    """Seconds, from the gang's submission to its end or the recorder's last pass, in which no member had a node."""

    def waited(self) -> str:
        """Return the time in which no member of the gang had a node, as text."""
        return short(self.waited_s)

    def ran(self) -> str:
        """Return the time in which at least one member had a node, as text; empty before the gang's first start."""
        return short(self.ran_s) if self.ran_s or self.started is not None else ""


class GangEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded event of a gang."""

    at: float
    epoch: int
    """Epoch of the gang's placement, counted from 1 in each run; 0 before the first placement."""
    what: str
    """Kind of the event in one or two words, such as submitted, waits, planned, started, evicted or ended."""
    text: str
    nodes: tuple[str, ...]
    gang: str = ""
    """The gang's identifier, equal to `GangHistory.uid`."""


class Outage(msgspec.Struct, frozen=True, kw_only=True):
    """A period for which nothing was recorded."""

    since: float
    until: float
    text: str


def gangs(
    store: HistoryStore,
    scope: Scope,
    *,
    queue: str | None = None,
    user: str | None = None,
    namespace: str | None = None,
    name: str | None = None,
    since: float | None = None,
    until: float | None = None,
    ended: bool | None = None,
    limit: int = 200,
) -> list[GangHistory]:
    """Return the gangs that the user may see and that existed within [since, until), last submitted first."""
    table = GANGS.c
    chosen = select(GANGS).order_by(table.submitted.desc(), table.id).limit(max(0, min(limit, _MOST)))
    wanted = (table.queue, queue), (table.user, user), (table.namespace, namespace), (table.name, name)
    for column, value in wanted:
        chosen = chosen.where(column == value) if value is not None else chosen
    chosen = chosen.where(*visible(scope, GANGS))
    if since is not None:
        chosen = chosen.where(or_(table.ended.is_(None), table.ended >= round(since * MS)))
    if until is not None:
        chosen = chosen.where(table.submitted < round(until * MS))
    if ended is not None:
        chosen = chosen.where(table.ended.is_not(None) if ended else table.ended.is_(None))
    seen = int(store.note(SEEN) or 0)
    with store.failing(), store.engine.connect() as connection:
        found = connection.execute(chosen).mappings().all()
        ids = [row["id"] for row in found]
        counts = {(gang, what): count for gang, what, count in connection.execute(_counts(ids))}
        members = connection.execute(select(*_MEMBER).where(HOLDINGS.c.gang.in_(ids))).all()
    nodes: dict[str, set[str]] = {}
    ran_ms, ran_until = Counter[str](), dict[str, int]()
    for gang, node, _, bound, end in sorted(members, key=lambda member: member.bound):
        nodes.setdefault(gang, set()).update([node] if node else ())
        if node:
            begin, until = max(bound, ran_until.get(gang, 0)), max(bound, seen if end is None else end)
            ran_ms[gang] += max(0, until - begin)
            ran_until[gang] = max(begin, until)
    held = (
        TimeSpan(gang, vector_of(amounts), bound, seen if end is None else end, held=True)
        for gang, _, amounts, bound, end in members
    )
    gpu_milli_ms = Counter[str]()
    for (gang, resource), amounts in integrate(held, 0, FOREVER).items():
        if is_gpu(resource):
            gpu_milli_ms[gang] += amounts.held * 1000 // unit(resource)
    return [
        GangHistory(
            uid=row["id"],
            **{field: row[field] for field in ("namespace", "name", "kind", "queue", "user", "state")},
            submitted=row["submitted"] / MS,
            started=_seconds(row["started"]),
            ended=_seconds(row["ended"]),
            restarts=max(0, counts.get((row["id"], What.STARTED), 0) - 1),
            evictions=counts.get((row["id"], What.EVICTED), 0),
            nodes=tuple(sorted(nodes.get(row["id"], ()))),
            gpu_seconds=gpu_milli_ms[row["id"]] / (1000 * MS),
            ran_s=ran_ms[row["id"]] / MS,
            waited_s=max(0, (row["ended"] or seen) - row["submitted"] - ran_ms[row["id"]]) / MS,
        )
        for row in found
    ]


def _counts(ids: list[str]) -> Select[Any]:
    wanted = GANG_EVENTS.c.what.in_([What.STARTED, What.EVICTED])
    return (
        select(GANG_EVENTS.c.gang, GANG_EVENTS.c.what, func.count())
        .where(GANG_EVENTS.c.gang.in_(ids), wanted)
        .group_by(GANG_EVENTS.c.gang, GANG_EVENTS.c.what)
    )


def namespaces(store: HistoryStore, *, limit: int) -> list[str]:
    """Return all namespaces that have recorded gangs, sorted by name, including those hidden from the user."""
    with store.failing(), store.engine.connect() as connection:
        names = connection.execute(select(GANGS.c.namespace).distinct().order_by(GANGS.c.namespace).limit(limit))
        return [str(name) for name in names.scalars()]


def events_of_gang(
    store: HistoryStore, scope: Scope, namespace: str, name: str, *, uid: str | None = None
) -> list[GangEvent]:
    """Return the events of gangs whose workload has this name, oldest first.

    If `uid` is given, return only the events of the gang with this identifier. The result is empty for a namespace that
    is hidden from the user, and for a name that no workload has.
    """
    if not scope.has(namespace):
        return []
    chosen = (
        select(*(GANG_EVENTS.c[name] for name in ("at", "epoch", "what", "text", "nodes", "gang", "subject")))
        .join(GANGS, GANGS.c.id == GANG_EVENTS.c.gang)
        .where(GANGS.c.namespace == namespace, GANGS.c.name == name, *visible(scope, GANGS))
        .order_by(GANG_EVENTS.c.at, GANG_EVENTS.c.id)
        .limit(_MOST)
    )
    chosen = chosen if uid is None else chosen.where(GANGS.c.id == uid)
    with store.failing(), store.engine.connect() as connection:
        rows, whom = [*connection.execute(chosen)], dict[str, str]()
    events = [
        GangEvent(
            at=row.at / MS,
            epoch=row.epoch,
            what=row.what,
            text=_text(scope, row, whom),
            nodes=_NODES.decode(row.nodes),
            gang=row.gang,
        )
        for row in rows
    ]
    # A gang without pods counts as completed until its owner reports a failure.
    replaced = {number for number, (one, later) in enumerate(pairwise(events)) if _same_end(one, later)}
    return [each for number, each in enumerate(events) if number not in replaced]


def _same_end(one: GangEvent, later: GangEvent) -> bool:
    return one.gang == later.gang and one.what == later.what == What.ENDED


def _text(scope: Scope, row: Any, whom: dict[str, str]) -> str:
    """Return the text of an event.

    If a gang is evicted for a workload that the user may see, the text names this workload. `whom` maps each gang to
    the last workload for which the gang is to be evicted; this function updates `whom`.
    """
    if row.what == What.MAKES_ROOM:
        where, _, who = row.subject.partition("/")
        whom[row.gang] = f"{who} in namespace {where}" if scope.has(where, row.at) else ""
        return f"for {whom[row.gang] or 'a job of another namespace'}"
    known = whom.pop(row.gang, "") if row.what == What.EVICTED else ""
    return re.sub(r"\ba gang( of that queue)?\b", lambda _: known, row.text, count=1) if known else str(row.text)


def gaps(store: HistoryStore, since: float | None = None) -> list[Outage]:
    """Return the periods for which nothing was recorded, oldest first; their texts contain no names of gangs."""
    chosen = select(GAPS).order_by(GAPS.c.since)
    chosen = chosen if since is None else chosen.where(GAPS.c.until >= round(since * MS))
    with store.failing(), store.engine.connect() as connection:
        return [Outage(since=one.since / MS, until=one.until / MS, text=one.text) for one in connection.execute(chosen)]


def _seconds(at: int | None) -> float | None:
    return None if at is None else at / MS
