"""Records of the history, and the scope of callers. Times are whole milliseconds, and amounts are exact integers.

Amounts are vectors of `muster.resources.vector`: CPU and GPUs in thousandths, everything else in base units.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final, Literal, Self

import msgspec

from muster.api.kubernetes.meta import readable_time
from muster.api.muster.placement import PlacementPhase
from muster.api.muster.states import Facts, State
from muster.resources.vector import Vector

MEMORY: Final = "sqlite://"
"""Default URL of the store, in memory: the data is lost with the process."""
MS: Final = 1000
"""Milliseconds per second."""
NAME_CHARS: Final = 253
"""Maximum characters of a name in the store, as in Kubernetes."""
DAY_MS: Final = 86_400_000
"""Milliseconds per day; days are in UTC."""
TEXT_CHARS: Final = 1_000
"""Maximum number of characters of a stored text, because tenants can write such texts."""
NODES_KEPT: Final = 512
"""Maximum number of nodes in an event; holdings contain the nodes of all members."""
EVENTS_KEPT: Final = 2_000
"""Maximum number of events of a run, so that a gang that is planned and abandoned for weeks does not fill the store."""
MOVES_KEPT: Final = 16
"""Maximum number of recorded queue moves of a gang, so that a tenant cannot fill the store with moves."""


NO_MOVES: Final = "[]"
_MOVES: Final = msgspec.json.Decoder(tuple[tuple[int, str], ...])
_VECTOR: Final = msgspec.json.Decoder(Vector)
_SHAPES: Final = 4096
"""Maximum number of cached amounts, which members with equal requests share."""


@lru_cache(_SHAPES)
def vector_of(text: str) -> Vector:
    """Parse amounts from JSON.

    For equal texts, the result is the same object, which callers must not change.
    """
    return _VECTOR.decode(text)


def moves_of(text: str) -> tuple[tuple[int, str], ...]:
    """Return the moves of a gang from JSON (`Charge.moves`)."""
    return _MOVES.decode(text) if text != NO_MOVES else ()


def clean(text: str, most: int) -> str:
    """Return a tenant's text for storage: truncated, and without NUL, which PostgreSQL refuses."""
    return text.replace("\0", "").encode(errors="replace").decode()[:most]


class What(StrEnum):
    """All kinds of events of a gang, with the text that users see."""

    SUBMITTED = "submitted"
    WAITS = "waits"
    RESERVED = "reserved"
    PLANNED = "planned"
    STARTED = "started"
    ABANDONED = "abandoned"
    MAKES_ROOM = "makes room"
    """The gang's members are to be evicted, because another gang gets their nodes."""
    EVICTED = "evicted"
    EVICTED_MEMBER = "member evicted"
    FAILED_MEMBER = "member failed"
    LOST_MEMBER = "member lost"
    DELETED_MEMBER = "member deleted"
    DEGRADED = "degraded"
    RESTARTED = "restarted"
    SUSPENDED = "suspended"
    MOVED = "moved"
    RESIZED = "resized"
    PRIORITY = "priority"
    ENDED = "ended"
    MORE = "more"
    """Summary of an hour: the number of events that were not stored one by one."""


class MemberEnd(StrEnum):
    """Reason why a member no longer holds its node."""

    COMPLETED = "completed"
    FAILED = "failed"
    EVICTED = "evicted"
    LOST = "lost"
    """The member's node was deleted."""
    DELETED = "deleted"
    UNSEEN = "unseen"
    """The member ended while nothing was recorded, and the API server no longer has the reason."""


class RecordedGang(msgspec.Struct, kw_only=True):
    """A gang across all its runs. A Job that restarts gets a new PodGroup, but remains the same gang."""

    id: str
    """Namespace, UID of the workload and name of the PodGroup; the PodGroup's UID if it has no owner.

    Any user may claim any UID as owner, so a UID counts only within its namespace.
    """
    namespace: str
    name: str
    """Name of its workload."""
    kind: str
    """Kind of the gang's workload."""
    queue: str
    user: str = ""
    """The gang's creator; empty if unknown."""
    submitted: int
    started: int | None = None
    """First start."""
    ended: int | None = None
    state: State = "Waiting"
    owner: str = ""
    """UID of the Volcano Job that owns the gang's PodGroups and reports its end; empty for other kinds."""
    saved: int | None = None
    """Time of the gang's last checkpoint."""

    @property
    def owner_key(self) -> str:
        """The gang's namespace and the UID of its owner."""
        return f"{self.namespace}/{self.owner}"

    @property
    def group(self) -> str:
        """Namespace and name of the gang's PodGroup, if the gang has an owner."""
        return f"{self.namespace}/{self.id.rpartition('/')[2]}"


class LastSeen(msgspec.Struct, kw_only=True, omit_defaults=True):
    """State of a run at its last observation, used to detect new events.

    The state is stored in the same transaction as the events.
    """

    group: str = ""
    """Namespace and name of the run's PodGroup."""
    group_version: int = 0
    placement_version: int = 0
    """The last seen resource versions of the PodGroup and the placement. Older versions, which a list may contain after
    a watch has reported newer ones, are ignored."""
    epoch: int = 0
    phase: PlacementPhase | Literal[""] = ""
    started_at: str = ""
    reserved_at: str = ""
    waits: str = ""
    """Reason for waiting, in one word."""
    minimum: int = 0
    """Number of members that start together; 0 until the number is known."""
    priority_class: str = ""
    failure: str = ""
    """Text about the first member that has failed since the last placement was planned; it begins with the member's
    name."""
    failed_at: str = ""
    """Time of the first failure; if two members failed at the same time, the first by name is used. Empty for a deleted
    member."""
    evicted_at: str = ""
    together: dict[What, int] = {}
    """Maps a kind of event that is recorded once per placement to the epoch of its last event."""
    facts: Facts | None = None
    """Facts about the state from the PodGroup; None for pods without a PodGroup."""
    happened: int = 0
    """Number of events of the run so far."""
    spares: tuple[tuple[str, int], ...] = ()
    """Spare slots of the placement: pod set and number."""
    kept_spares: int = 0
    """Number of changes of the run's spare slots that were recorded so far."""


class Charge(msgspec.Struct, kw_only=True):
    """Queue and user charged for a period, fixed at its start.

    A move to another queue only affects the time after the move.
    """

    queue: str = ""
    """The last queue of the period; empty in rows of earlier versions, which use the gang's queue."""
    user: str = ""
    """User of the gang; empty if unknown at that time."""
    moves: tuple[tuple[int, str], ...] = ()
    """Previous queues, each with the time (ms) of the move."""

    def move(self, queue: str, at: int, begin: int) -> bool:
        """Charge another queue from time `at` on; return True if this changes the charge.

        `begin` is the start of the charged period.
        """
        if queue == self.queue:
            return False
        moves = [*self.moves, (max(at, self.moves[-1][0] if self.moves else begin), self.queue)]
        if len(moves) > MOVES_KEPT:  # charge the shortest stay to the next queue
            ends = [begin, *(until for until, _ in moves)]
            del moves[min(range(len(moves)), key=lambda number: ends[number + 1] - ends[number])]
        self.queue, self.moves = queue, tuple(moves)
        return True


class GangRun(Charge, kw_only=True):
    """A run, from the creation of a PodGroup to its end: the period for which a gang requests resources."""

    uid: str
    gang: str
    submitted: int
    ended: int | None = None
    asked: Vector = {}
    """The request of the gang: its minimum, or all members that existed at the same time, whichever is larger."""
    seen: LastSeen = msgspec.field(default_factory=LastSeen)


class Holding(Charge, kw_only=True):
    """The period for which one pod held its node."""

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
    """Start time of the pod's first container."""
    ended: int | None = None
    reason: str = ""
    """Reason for the end, a `MemberEnd`; empty until the member has ended."""
    saved: int | None = None
    """Time of the gang's last checkpoint before the end."""
    within: int = 0
    """Uncertainty of the end in milliseconds: the time of an event that was not observed is only known to the
    second."""


class GangEventRow(msgspec.Struct, kw_only=True, frozen=True):
    """An event of a gang; at most one per run, epoch, kind and subject."""

    gang: str
    run: str
    epoch: int
    what: What
    subject: str = ""
    """Name of the affected member, or the kind of reason, so that events of one kind within an epoch are distinct."""
    at: int
    text: str = ""
    nodes: tuple[str, ...] = ()


class OutageRow(msgspec.Struct, kw_only=True, frozen=True):
    """A period for which nothing was recorded, and its effect on the data in the store."""

    since: int
    until: int
    text: str


class RowChanges(msgspec.Struct):
    """Changes to write to the store: new or changed rows by key, and events in order."""

    gangs: dict[str, RecordedGang] = {}
    runs: dict[str, GangRun] = {}
    holdings: dict[str, Holding] = {}
    gang_events: list[GangEventRow] = []
    gaps: list[OutageRow] = []
    summed: set[str] = set()
    """Keys of rows whose objects were deleted, which are aggregated after the changes were written."""

    def __bool__(self) -> bool:
        return bool(self.gangs or self.runs or self.holdings or self.gang_events or self.gaps or self.summed)


class Scope(msgspec.Struct, frozen=True):
    """The namespaces whose gangs a caller may see; None means all namespaces."""

    namespaces: frozenset[str] | None = None
    born: frozenset[tuple[str, int]] = frozenset()
    """Namespaces with their creation times (ms); earlier data under the same names belongs to other tenants."""

    @classmethod
    def from_creation(cls, created: Mapping[str, str | None], now: float) -> Self:
        """Return the scope of namespaces with their creation timestamps.

        A namespace without a creation timestamp counts as created `now`.
        """
        born = ((name, round((readable_time(stamp) or now) * MS)) for name, stamp in created.items())
        return cls(frozenset(created), frozenset(born))

    def has(self, namespace: str, at: int | None = None) -> bool:
        """Return True if the caller may see objects of this namespace, including names and counts, as of this time."""
        known = self.namespaces is None or namespace in self.namespaces
        return known and (at is None or dict(self.born).get(namespace, at) <= at)


EVERYTHING = Scope()
"""The scope of callers who may list the gangs of the whole cluster."""
