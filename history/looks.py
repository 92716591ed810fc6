"""Looks at objects: what reflectors tell as it happens, and what a watch of the past tells after a pause.

Both end in the `Book`. A look carries the time at which it was taken, as the queue may be long.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, Final, NamedTuple

import structlog

from history.book import Book
from history.groups import RECORDED_JOBS, RecordedJob
from history.model import MS
from history.pods import RECORDED_PODS, Moment, RecordedPod, identity, stamps
from muster.api.base import Resource
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import Object, ObjectMeta, readable_time
from muster.api.muster.placement import PLACEMENTS, Placement
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup
from muster.kube.budget import Budget
from muster.kube.client import Client
from muster.kube.errors import APIError, Gone
from muster.kube.reflector import Reflector, not_ready

log = structlog.get_logger(__name__)

KINDS: Final[tuple[Resource[Any], ...]] = (RECORDED_JOBS, POD_GROUPS, PLACEMENTS, RECORDED_PODS)
"""In the order in which a list of everything is looked at: what others refer to comes first."""
_PAST_S: Final = 1
"""Seconds after which a watch of the past ends, whose events come at once."""
_ROUNDS: Final = 20


class Look(NamedTuple):
    """One object, as it is (`new`), or gone with this UID (`new` is then how it was last, if that is known)."""

    kind: str
    uid: str
    new: Object | None
    gone: bool
    moment: Moment


def apply(book: Book, look: Look) -> None:
    """Enter one look into the book."""
    new, moment = look.new, look.moment
    match look.kind, look.gone:
        case POD_GROUPS.plural, True:
            book.group_gone(look.uid, moment, new.metadata.deletion_timestamp if new else None)
        case RECORDED_JOBS.plural, True:
            book.job_gone(look.uid, moment)
        case RECORDED_PODS.plural, True:
            book.pod_gone(look.uid, moment, new if isinstance(new, RecordedPod) else None)
        case _ if isinstance(new, PodGroup):
            book.group(new, moment)
        case _ if isinstance(new, Placement):
            if not look.gone:
                book.placement(new, moment)
        case _ if isinstance(new, RecordedJob):
            book.job(new, moment)
        case _ if isinstance(new, RecordedPod):
            book.pod(new, moment)


class Following:
    """Reflectors of all kinds, which put looks into a queue."""

    def __init__(self, client: Client, clock_s: Callable[[], float] = time.time) -> None:
        self.looks: SimpleQueue[Look | None] = SimpleQueue()
        self._clock_s = clock_s
        self.reflectors: dict[str, Reflector[Any]] = {}
        for kind in KINDS:
            keep: Any = identity if kind is RECORDED_PODS else _bare(kind)
            budget: Any = Budget(kind) if kind is POD_GROUPS else None
            reflector = Reflector(client, kind, keep=keep, budget=budget)
            reflector.add_handler(self._handler(kind.plural, reflector))
            self.reflectors[kind.plural] = reflector

    def start(self) -> None:
        """Start all."""
        for each in self.reflectors.values():
            each.start()

    def stop(self) -> None:
        """End all."""
        for each in self.reflectors.values():
            each.stop()

    def not_ready(self) -> str | None:
        """Return why not everything is read; None if it is."""
        return not_ready(self.reflectors)

    @property
    def synced(self) -> bool:
        """True once all lists are in the queue."""
        return all(each.synced for each in self.reflectors.values())

    @property
    def following(self) -> bool:
        """True while no kind fails to be read."""
        return all(each.following for each in self.reflectors.values())

    @property
    def versions(self) -> dict[str, str]:
        """The resource versions up to which all looks are in the queue."""
        return {name: each.version for name, each in self.reflectors.items()}

    def _handler(self, kind: str, reflector: Reflector[Any]) -> Callable[[Any, Any], None]:
        def tell(old: Object | None, new: Object | None) -> None:
            moment = Moment(round(self._clock_s() * MS), live=reflector.synced)
            known = new or old
            if known is not None:
                self.looks.put(Look(kind, known.metadata.uid, new, new is None, moment))

        return tell


def _bare(kind: Resource[Any]) -> Callable[[Any], Any]:
    """Return what trims an object of a kind to its identity."""

    def keep(obj: Any) -> Any:
        meta = obj.metadata
        known = ObjectMeta(
            name=meta.name, namespace=meta.namespace, uid=meta.uid, resource_version=meta.resource_version
        )
        return kind.type(metadata=known)

    return keep


class Past(NamedTuple):
    """What has happened between two runs of the recorder, in the order of the API server."""

    looks: list[Look]
    forgotten: tuple[str, ...]
    """Kinds of which the API server has forgotten what happened since."""


class _Event(NamedTuple):
    """One change that a watch of the past tells."""

    version: int
    kind: str
    what: str
    obj: Any


def past(client: Client, positions: Mapping[str, str], until: Mapping[str, str], since: int, now: int) -> Past:
    """Read all changes between these resource versions, which API servers remember for some minutes.

    They happened between the times `since` and `now`.
    """
    with ThreadPoolExecutor(len(KINDS)) as pool:
        told = pool.map(lambda kind: _between(client, kind, positions.get(kind.plural, ""), until[kind.plural]), KINDS)
        found = [*told]
    events = sorted((each for one in found for each in one or ()), key=lambda each: each.version)
    looks = [
        Look(event.kind, event.obj.metadata.uid, event.obj, event.what == "DELETED", moment)
        for event, moment in zip(events, moments(events, since, now), strict=True)
    ]
    return Past(looks, tuple(kind.plural for kind, one in zip(KINDS, found, strict=True) if one is None))


def moments(events: Sequence[_Event], since: int, now: int) -> list[Moment]:
    """Return when each of these events happened, as near as their order tells.

    An event is as young as the last time in it and in those before it, and older than what was created after it. Times
    that tenants may write are not believed.
    """
    least, lower = since, list[int]()
    for event in events:
        known = [event.obj.metadata.creation_timestamp, *(stamps(event.obj) if isinstance(event.obj, Pod) else ())]
        seconds = [at for at in map(readable_time, known) if at is not None]
        least = min(max([least, *(round(at * MS) for at in seconds)]), now)
        lower.append(least)
    most, found = now, list[Moment]()
    for event, first in zip(reversed(events), reversed(lower), strict=True):
        created = readable_time(event.obj.metadata.creation_timestamp)
        if event.what == "ADDED" and created is not None:
            most = max(min(most, round(created * MS) + MS - 1), since)
        last = max(first, most)
        found.append(Moment((first + last) // 2, live=True, within=(last - first) // 2))
    return found[::-1]


def _between(client: Client, kind: Resource[Any], version: str, until: str) -> list[_Event] | None:
    """Return the changes of one kind between two versions; None if the API server has forgotten them."""
    if not version:
        return None
    found: list[_Event] = []
    last = int(until or 0)
    try:
        for _ in range(_ROUNDS):
            before = version
            watched = client.watch(kind, resource_version=version, timeout_s=_PAST_S)
            for what, obj in watched:
                version = obj.metadata.resource_version
                if int(version) > last:
                    watched.close()
                    return found
                if what != "BOOKMARK":
                    found.append(_Event(int(version), kind.plural, what, obj))
            if version == before or int(version) >= last:
                return found
    except Gone:
        return None
    except APIError as error:
        log.warning("what happened meanwhile cannot be read", resource=kind.plural, why=str(error))
        return None
    return found
