"""Records of the history, and the scope of what a user may see.

Times are whole milliseconds. Amounts are exact integers, in vectors of `muster.resources.vector`: CPU and GPUs in
thousandths, and all other resources in base units.
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
"""Default URL of the store: a store in memory, so that the data is lost when the process ends."""
MS: Final = 1000
"""Milliseconds per second."""
NAME_CHARS: Final = 253
"""Maximum number of characters of a name in the store, as in Kubernetes."""
DAY_MS: Final = 86_400_000
"""Milliseconds per day; days are in UTC."""
TEXT_CHARS: Final = 1_000
"""Maximum number of characters of a stored text, because tenants can write such texts."""
NODES_KEPT: Final = 512
"""Maximum number of nodes in an event; the rows of held nodes name the nodes of all members."""
EVENTS_KEPT: Final = 2_000
"""Maximum number of events of a run. A gang that is planned and abandoned for weeks could otherwise fill the store."""
MOVES_KEPT: Final = 16
"""Maximum number of recorded moves of a gang between queues, so that a tenant cannot fill the store with moves."""
NO_MOVES: Final = "[]"
_MOVES: Final = msgspec.json.Decoder(tuple[tuple[int, str], ...])
_VECTOR: Final = msgspec.json.Decoder(Vector)
_SHAPES: Final = 4096
"""Maximum number of cached vectors of amounts; members with equal requests share one vector."""


@lru_cache(_SHAPES)
def vector_of(text: str) -> Vector:
    """Parse amounts from JSON. Equal texts give the same object, which callers must not change."""
    return _VECTOR.decode(text)


def moves_of(text: str) -> tuple[tuple[int, str], ...]:
    """Return a gang's moves between queues from JSON (`Charge.moves`)."""
    return _MOVES.decode(text) if text != NO_MOVES else ()


def clean(text: str, most: int) -> str:
    """Return a tenant's text for storage: truncated, and without NUL characters, which PostgreSQL refuses."""
    return text.replace("\0", "").encode(errors="replace").decode()[:most]


class What(StrEnum):
    """The kinds of events of a gang, each with the text that users see."""

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
    """The number of the gang's events in one hour that were not stored individually."""


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
    """A gang across all its runs. A Job that restarts gets a new PodGroup, but its pods remain the same gang."""

    id: str
    """The gang's identity: namespace, UID of the workload (the PodGroup's UID if there is no owner), and name of the
    PodGroup. Any user may claim any UID as owner, so a UID counts only within its namespace."""
    namespace: str
    name: str
    """Name of the gang's workload."""
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
    """State of a run at its last observation, from which new events are detected.

    The state is stored in the same transaction as the events.
    """

    group: str = ""
    """Namespace and name of the run's PodGroup."""
    group_version: int = 0
    placement_version: int = 0
    """The last seen resource versions of the PodGroup and the placement. Older versions are ignored; a list may contain
    them after a watch has reported newer versions."""
    epoch: int = 0
    phase: PlacementPhase | Literal[""] = ""
    started_at: str = ""
    reserved_at: str = ""
    waits: str = ""
    """Reason why the gang waits, in one word."""
    minimum: int = 0
    """Number of members that start together; 0 until the number is known."""
    priority_class: str = ""
    failure: str = ""
    """Text about the first member that has failed since the last placement was planned; the text begins with the
    member's name."""
    failed_at: str = ""
    """Time of the first failure of a member; of several members that failed at this time, the first by name counts. The
    field is empty if the member was deleted."""
    evicted_at: str = ""
    together: dict[What, int] = {}
    """Maps a kind of event that is recorded once per placement to the epoch of the last event of this kind."""
    facts: Facts | None = None
    """The PodGroup's facts from which the gang's state follows; None for a run of pods without a PodGroup."""
    happened: int = 0
    """Number of the run's events so far, stored or not."""
    spares: tuple[tuple[str, int], ...] = ()
    """Spare slots of the placement: for each pod set, its name and the number of its spare slots."""
    kept_spares: int = 0
    """Number of changes of the run's spare slots that were recorded so far."""


class Charge(msgspec.Struct, kw_only=True):
    """The queue and the user that are charged for a period.

    A move to another queue affects only the time after the move.
    """

    queue: str = ""
    """The last queue charged in the period; empty in rows of earlier versions of Muster, for which the gang's queue
    counts."""
    user: str = ""
    """The gang's user; empty if the user was unknown at the time."""
    moves: tuple[tuple[int, str], ...] = ()
    """Previous queues, each with the time (ms) when the gang moved to the next queue."""

    def move(self, queue: str, at: int, begin: int) -> bool:
        """Charge another queue from the time `at` on; return False if this queue is already charged.

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
    """A run of a gang, from a PodGroup's creation to its end: the period in which the gang requests resources."""

    uid: str
    gang: str
    submitted: int
    ended: int | None = None
    asked: Vector = {}
    """The gang's request: of its minimum, or of all members that existed at the same time, whichever is larger."""
    seen: LastSeen = msgspec.field(default_factory=LastSeen)


class Holding(Charge, kw_only=True):
    """The period for which a pod held its node; without a node, the period for which a run held spare slots."""

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
    """Reason for the member's end, a `MemberEnd`; empty until the member has ended."""
    saved: int | None = None
    """Time of the gang's last checkpoint before the member's end."""
    within: int = 0
    """Uncertainty of the time of the end, in milliseconds. If the end was not observed live, its time is known only to
    the second."""


class GangEventRow(msgspec.Struct, kw_only=True, frozen=True):
    """An event of a gang; at most one per run, epoch, kind and subject."""

    gang: str
    run: str
    epoch: int
    what: What
    subject: str = ""
    """Name of the affected member, or a code for the reason; it distinguishes events of one kind within an epoch."""
    at: int
    text: str = ""
    nodes: tuple[str, ...] = ()


class OutageRow(msgspec.Struct, kw_only=True, frozen=True):
    """A period for which nothing was recorded, and a text about its effect on the data in the store."""

    since: int
    until: int
    text: str


class RowChanges(msgspec.Struct):
    """Changes that are to be written to the store: new or changed rows, keyed by object, and events in order."""

    gangs: dict[str, RecordedGang] = {}
    runs: dict[str, GangRun] = {}
    holdings: dict[str, Holding] = {}
    gang_events: list[GangEventRow] = []
    gaps: list[OutageRow] = []
    summed: set[str] = set()
    """Keys of rows whose objects were deleted; these rows are aggregated after the changes have been written."""

    def __bool__(self) -> bool:
        return bool(self.gangs or self.runs or self.holdings or self.gang_events or self.gaps or self.summed)


class Scope(msgspec.Struct, frozen=True):
    """The namespaces in which a user is allowed to see gangs; None means all namespaces."""

    namespaces: frozenset[str] | None = None
    born: frozenset[tuple[str, int]] = frozenset()
    """The namespaces with their creation times (ms); earlier data belongs to another tenant."""

    @classmethod
    def from_creation(cls, created: Mapping[str, str | None], now: float) -> Self:
        """Return the scope that consists of the given namespaces with their creation timestamps.

        A namespace without a creation timestamp counts as created `now`.
        """
        born = ((name, round((readable_time(stamp) or now) * MS)) for name, stamp in created.items())
        return cls(frozenset(created), frozenset(born))

    def has(self, namespace: str, at: int | None = None) -> bool:
        """Return True if the user may see the objects that the namespace had at this time, with names and counts."""
        known = self.namespaces is None or namespace in self.namespaces
        return known and (at is None or dict(self.born).get(namespace, at) <= at)


EVERYTHING = Scope()
"""The scope of users who are allowed to list the gangs of the whole cluster."""
