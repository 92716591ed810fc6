"""Observations of objects that reflectors report: the observed kinds, the processing of observations, and their queue.

An observation contains its own time, because it may wait long in the queue.
"""

import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final, NamedTuple

import structlog

from history import gangruns, members
from history.entries import Entries
from history.groups import RECORDED_JOBS, RecordedJob
from history.model import MS
from history.pods import RECORDED_PODS, ObservationTime, RecordedPod
from muster.api.base import Resource
from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.api.muster.placement import PLACEMENTS, Placement
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup
from muster.kube.client import Client
from muster.kube.memorylimit import MemoryLimit
from muster.kube.offers import NodeOffers
from muster.kube.readable import not_ready
from muster.kube.reflector import Reflector

log = structlog.get_logger(__name__)

KINDS: Final[tuple[Resource[Any], ...]] = (RECORDED_JOBS, POD_GROUPS, PLACEMENTS, RECORDED_PODS)
"""Recorded kinds, in the order in which complete lists are processed: a kind precedes the kinds that refer to it."""


WAIT_S: Final = 10.0
"""Maximum time in seconds to wait for the list of nodes. The recorder also works without this list, because the role in
earlier charts does not allow listing nodes. The list only limits the charged amounts."""


class Observation(NamedTuple):
    """One observed object (`new`), or the deletion of an object (`new` is then the object's last state, if known)."""

    kind: str
    uid: str
    new: Object | None
    gone: bool
    moment: ObservationTime
    namespace: str = ""

    @property
    def key(self) -> str:
        """The namespace and UID of the object.

        A UID alone is not enough, because any user may create an object that names any UID as its owner.
        """
        return f"{self.namespace}/{self.uid}"


def apply(entries: Entries, observation: Observation) -> None:
    """Update the entries with one observation."""
    new, moment = observation.new, observation.moment
    match observation.kind, observation.gone:
        case POD_GROUPS.plural, True:
            gangruns.group_gone(entries, observation.uid, moment, new.metadata.deletion_timestamp if new else None)
        case RECORDED_JOBS.plural, True:
            gangruns.job_gone(entries, observation.key, moment)
        case RECORDED_PODS.plural, True:
            members.pod_gone(entries, observation.uid, moment, new if isinstance(new, RecordedPod) else None)
            entries.deleted(observation.namespace, observation.uid)
        case _ if isinstance(new, PodGroup):
            gangruns.group(entries, new, moment)
        case _ if isinstance(new, Placement):
            if not observation.gone:
                gangruns.placement(entries, new, moment)
        case _ if isinstance(new, RecordedJob):
            gangruns.job(entries, new, moment)
        case _ if isinstance(new, RecordedPod):
            members.pod(entries, new, moment)


class ObservationFeed:
    """Reflectors that put each observed change of a recorded object into a queue.

    Nodes are also watched, but only for their allocatable resources.
    """

    def __init__(
        self,
        client: Client,
        clock_s: Callable[[], float] = time.time,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.observations: SimpleQueue[Observation | None] = SimpleQueue()
        self._clock_s = clock_s
        self._monotonic_s, self._began_s = monotonic_s, monotonic_s()
        self.reflectors: dict[str, Reflector[Any]] = {}
        for kind in KINDS:
            budget: Any = MemoryLimit(kind) if kind is POD_GROUPS else None
            reflector = Reflector(client, kind, keep=_identity(kind), budget=budget)
            reflector.add_handler(self._handler(kind.plural, reflector))
            self.reflectors[kind.plural] = reflector
        self.nodes = NodeOffers(client)

    def start(self) -> None:
        """Start all reflectors."""
        self._began_s = self._monotonic_s()
        for each in (self.nodes.reflector, *self.reflectors.values()):
            each.start()

    def stop(self) -> None:
        """Stop all reflectors."""
        for each in (self.nodes.reflector, *self.reflectors.values()):
            each.stop()

    def not_ready(self) -> str | None:
        """Return the reason why some recorded kinds cannot be read yet; None if all recorded kinds are read."""
        return not_ready(self.reflectors)

    @property
    def synced(self) -> bool:
        """True once all lists are queued and the list of nodes is complete, or the wait for the nodes is over."""
        nodes = self.nodes.reflector.synced or self._monotonic_s() - self._began_s >= WAIT_S
        return nodes and all(each.synced for each in self.reflectors.values())

    @property
    def following(self) -> bool:
        """Return True while all kinds can be read."""
        return all(each.following for each in self.reflectors.values())

    @property
    def versions(self) -> dict[str, str]:
        """Maps a kind to the resource version up to which all changes of this kind have been put into the queue."""
        return {name: each.version for name, each in self.reflectors.items()}

    def _handler(self, kind: str, reflector: Reflector[Any]) -> Callable[[Any, Any], None]:
        def handle(old: Object | None, new: Object | None) -> None:
            moment = ObservationTime(round(self._clock_s() * MS), live=reflector.synced)
            known = new or old
            if known is not None:
                meta = known.metadata
                self.observations.put(Observation(kind, meta.uid, new, new is None, moment, meta.namespace))

        return handle


def _identity(kind: Resource[Any]) -> Callable[[Any], Any]:
    """Return a function that removes all fields of an object except its identity.

    The cache stores only identities, because the entries contain the other fields.
    """

    def keep(obj: Any) -> Any:
        meta = obj.metadata
        known = ObjectMeta(
            name=meta.name, namespace=meta.namespace, uid=meta.uid, resource_version=meta.resource_version
        )
        return kind.type(metadata=known)

    return keep
