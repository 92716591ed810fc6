"""Looks at objects: what reflectors tell as it happens, and what a watch of the past tells after a pause.

Both end in the `Book`. A look carries the time at which it was taken, as the queue may be long.
"""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, Final, NamedTuple

import structlog

from history.book import Book
from history.groups import RECORDED_JOBS, RecordedJob
from history.model import MS
from history.pods import RECORDED_PODS, Moment, RecordedPod, identity
from muster.api.base import Resource
from muster.api.kubernetes.meta import Object, ObjectMeta
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


def past(client: Client, positions: Mapping[str, str], clock_s: Callable[[], float] = time.time) -> Past:
    """Read all changes since these resource versions, which API servers remember for some minutes."""
    kinds = [kind for kind in KINDS if positions.get(kind.plural)]
    with ThreadPoolExecutor(max(1, len(kinds))) as pool:
        found = [*pool.map(lambda kind: _since(client, kind, positions[kind.plural], clock_s), kinds)]
    events = [each for one in found for each in one or ()]
    events.sort(key=lambda each: each[0])
    forgotten = [kind.plural for kind, one in zip(kinds, found, strict=True) if one is None]
    forgotten += [kind.plural for kind in KINDS if not positions.get(kind.plural)]
    return Past([look for _, look in events], tuple(forgotten))


def _since(
    client: Client, kind: Resource[Any], version: str, clock_s: Callable[[], float]
) -> list[tuple[int, Look]] | None:
    """Return the changes of one kind with their versions; None if the API server has forgotten them."""
    found: list[tuple[int, Look]] = []
    try:
        for _ in range(_ROUNDS):
            before = len(found)
            for event, obj in client.watch(kind, resource_version=version, timeout_s=_PAST_S):
                version = obj.metadata.resource_version
                if event == "BOOKMARK":
                    continue
                moment = Moment(round(clock_s() * MS), live=False)
                look = Look(kind.plural, obj.metadata.uid, obj, event == "DELETED", moment)
                found.append((int(version), look))
            if len(found) == before:
                break
    except Gone:
        return None
    except APIError as error:
        log.warning("what happened meanwhile cannot be read", resource=kind.plural, why=str(error))
        return None
    return found
