"""Values of the history, with those who may see them: times in whole milliseconds, amounts as exact integers.

Amounts are vectors of `muster.resources.vector`: CPU and GPUs in thousandths, everything else in base units.
"""

from enum import StrEnum
from functools import lru_cache
from typing import Final, Literal

import msgspec

from muster.api.muster.placement import PlacementPhase
from muster.api.muster.states import Facts, State
from muster.resources.vector import Vector

MEMORY: Final = "sqlite://"
"""URL of the store of who has none: it is gone with its process."""
MS: Final = 1000
"""Milliseconds of a second."""
NAME_CHARS: Final = 253
"""Characters of a name in the store: the longest that Kubernetes has."""
DAY_MS: Final = 86_400_000
"""Milliseconds of a day; days are those of UTC."""
TEXT_CHARS: Final = 1_000
"""Characters that are kept of a sentence: what tenants can write has a limit."""
NODES_KEPT: Final = 512
"""Nodes that a happening names; holdings have those of every member."""
HAPPENINGS_KEPT: Final = 2_000
"""Happenings of one run: a gang that is planned and given up for weeks must not fill the store."""
MOVES_KEPT: Final = 16
"""Moves between queues that are kept of a gang: a tenant that moves it to and fro must not fill the store."""


NO_MOVES: Final = "[]"
_MOVES: Final = msgspec.json.Decoder(tuple[tuple[int, str], ...])
_VECTOR: Final = msgspec.json.Decoder(Vector)
_SHAPES: Final = 4096
"""Different amounts that are remembered: members of one shape share theirs."""


@lru_cache(_SHAPES)
def vector_of(text: str) -> Vector:
    """Return amounts by their JSON; equal texts give the same object, which no reader may change."""
    return _VECTOR.decode(text)


def moves_of(text: str) -> tuple[tuple[int, str], ...]:
    """Return the moves of a gang by their JSON (`Charge.moves`)."""
    return _MOVES.decode(text) if text != NO_MOVES else ()


def clean(text: str, most: int) -> str:
    """Return what is kept of a text that a tenant may have written: no NUL, which PostgreSQL refuses, and not more."""
    return text.replace("\0", "").encode(errors="replace").decode()[:most]


class What(StrEnum):
    """Everything that can happen to a gang, in the words that people read."""

    SUBMITTED = "submitted"
    WAITS = "waits"
    RESERVED = "reserved"
    PLANNED = "planned"
    STARTED = "started"
    ABANDONED = "abandoned"
    EVICTED = "evicted"
    EVICTED_MEMBER = "member evicted"
    FAILED_MEMBER = "member failed"
    LOST_MEMBER = "member lost"
    DEGRADED = "degraded"
    RESTARTED = "restarted"
    SUSPENDED = "suspended"
    ENDED = "ended"
    MORE = "more"
    """The number of events of an hour that were not kept."""


class MemberEnd(StrEnum):
    """Why a member does not hold its node any more."""

    COMPLETED = "completed"
    FAILED = "failed"
    EVICTED = "evicted"
    LOST = "lost"
    """Its node went away."""
    DELETED = "deleted"
    UNSEEN = "unseen"
    """It ended while nothing was recorded, and the API server has forgotten how."""


class RecordedGang(msgspec.Struct, kw_only=True):
    """A gang over all of its runs: a Job that restarts gets another PodGroup of the same name, and is one gang."""

    id: str
    """Namespace, UID of its workload and name of its PodGroup; the PodGroup's UID if that has no owner.

    Any user may claim any UID as owner, so it counts only within its namespace.
    """
    namespace: str
    name: str
    """Name of its workload."""
    kind: str
    """Kind of its workload."""
    queue: str
    user: str = ""
    """Who created it; empty if that is not known."""
    submitted: int
    started: int | None = None
    """First start."""
    ended: int | None = None
    state: State = "Waiting"
    owner: str = ""
    """UID of the Volcano Job that its PodGroups belong to, which reports when it has ended; empty for other kinds."""
    saved: int | None = None
    """Time of its last checkpoint."""

    @property
    def owner_key(self) -> str:
        """Its namespace and owner."""
        return f"{self.namespace}/{self.owner}"


class LastSeen(msgspec.Struct, kw_only=True, omit_defaults=True):
    """State of a run at its last pass, so that the next one finds what is new; written with the events of the pass."""

    group: str = ""
    """Namespace and name of its PodGroup."""
    group_version: int = 0
    placement_version: int = 0
    """Resource versions: older ones, as a list after a watch has them, are no news."""
    epoch: int = 0
    phase: PlacementPhase | Literal[""] = ""
    started_at: str = ""
    reserved_at: str = ""
    waits: str = ""
    """Reason, in one word."""
    evicted_at: str = ""
    facts: Facts | None = None
    """Facts of its state from its PodGroup; None for pods without one."""
    happened: int = 0
    """Happenings so far."""
    spares: tuple[tuple[str, int], ...] = ()
    """Spare slots that its placement keeps: pod set and number."""
    kept_spares: int = 0
    """Changes of these so far."""


class Charge(msgspec.Struct, kw_only=True):
    """Payer of a time: fixed when the time begins. A move changes what comes after it, and nothing before."""

    queue: str = ""
    """Its queue, the last one if it has moved; empty in rows of earlier versions, which have that of their gang."""
    user: str = ""
    """User of its gang; empty: not known then."""
    moves: tuple[tuple[int, str], ...] = ()
    """Queues that it has left, each with the time (ms) of the move."""

    def move(self, queue: str, at: int, begin: int) -> bool:
        """Charge another queue from a time on; return True if it is another. `begin` is the begin of all."""
        if queue == self.queue:
            return False
        moves = [*self.moves, (max(at, self.moves[-1][0] if self.moves else begin), self.queue)]
        if len(moves) > MOVES_KEPT:  # the shortest stay becomes a part of the next one
            ends = [begin, *(until for until, _ in moves)]
            del moves[min(range(len(moves)), key=lambda number: ends[number + 1] - ends[number])]
        self.queue, self.moves = queue, tuple(moves)
        return True


class GangRun(Charge, kw_only=True):
    """One PodGroup, from its creation to its end: the time for which a gang asks for something."""

    uid: str
    gang: str
    submitted: int
    ended: int | None = None
    asked: Vector = {}
    """Its request: its minimum, or all of its members that existed at once, whichever is more."""
    seen: LastSeen = msgspec.field(default_factory=LastSeen)


class Holding(Charge, kw_only=True):
    """The time for which one pod had its room on a node."""

    pod: str
    """UID of the pod."""
    name: str
    """Name of the pod."""
    gang: str
    run: str
    epoch: int
    node: str
    amounts: Vector
    bound: int
    ran_from: int | None = None
    """From when on a container of it ran."""
    ended: int | None = None
    reason: str = ""
    """An `MemberEnd`, once it has ended."""
    saved: int | None = None
    """Time of the gang's last checkpoint before the end."""
    within: int = 0
    """Milliseconds by which it may be longer or shorter: what was not seen as it happened is known to the second."""


class GangEventRow(msgspec.Struct, kw_only=True, frozen=True):
    """Something that happened to a gang; at most one for each run, epoch, what and subject."""

    gang: str
    run: str
    epoch: int
    what: What
    subject: str = ""
    """The member, or the kind of reason, that distinguishes events of one epoch."""
    at: int
    text: str = ""
    nodes: tuple[str, ...] = ()


class OutageRow(msgspec.Struct, kw_only=True, frozen=True):
    """A time for which nothing was recorded, and what that means for what stands in the store."""

    since: int
    until: int
    text: str


class RowChanges(msgspec.Struct):
    """Pending writes: rows that are new or differ, by their keys, and events in their order."""

    gangs: dict[str, RecordedGang] = {}
    runs: dict[str, GangRun] = {}
    holdings: dict[str, Holding] = {}
    happenings: list[GangEventRow] = []
    gaps: list[OutageRow] = []

    def __bool__(self) -> bool:
        return bool(self.gangs or self.runs or self.holdings or self.happenings or self.gaps)


class Scope(msgspec.Struct, frozen=True):
    """The namespaces whose gangs a caller may see; None: those of the whole cluster."""

    namespaces: frozenset[str] | None = None
    born: frozenset[tuple[str, int]] = frozenset()
    """Namespaces with their creation (ms): what was there under their names before was others'."""

    def has(self, namespace: str) -> bool:
        """Return whether objects of that namespace may be shown, their names and numbers included."""
        return self.namespaces is None or namespace in self.namespaces


EVERYTHING = Scope()
"""The scope of who may list the gangs of the whole cluster."""
