"""A recorder of the history over a cluster in memory, which is fed look by look and may be killed after any of them."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from queue import Empty
from typing import Any, NamedTuple

from msgspec import convert, structs

from history import recorder
from history.model import MS, RowChanges
from history.observations import KINDS, Observation
from history.pods import ObservationTime
from history.recorder import HistoryRecorder
from history.settings import HistorySettings
from history.store import HistoryStore, StoreError
from muster.api.base import Resource
from muster.api.muster.usage import PublishedUsage
from muster.kube.errors import APIError, Gone, NotFound
from muster.resources.vector import Vector

_FIRST = 100
"""Resource version of an empty cluster; each look is one more."""


class Event(NamedTuple):
    """One line of a watch."""

    what: str
    obj: Any


class Cluster:
    """What an API server has and remembers; the part of `Client` that a recorder uses, and its clock."""

    def __init__(self, looks: Sequence[Observation]) -> None:
        self.looks = looks
        self.happened = 0
        """Looks of which the objects have become what they show."""
        self.now_ms = looks[0].moment.at - MS
        self.remembers = True
        self.silent = range(0)
        """When the API server does not answer (ms)."""
        self.published: list[dict[str, Any]] = []
        self.nodes: dict[str, Vector] = {}
        """What nodes offer."""

    def happens(self, most: int) -> list[Observation]:
        """Let time go on by so many looks; return them."""
        found = [*self.looks[self.happened : self.happened + most]]
        self.happened += len(found)
        if found:
            self.now_ms = max(self.now_ms, found[-1].moment.at)
        return found

    @property
    def version(self) -> str:
        """The resource version of all that there is."""
        return str(_FIRST + self.happened)

    def listed(self) -> list[Observation]:
        """Looks at all that is there now, pods first."""
        last = {(look.kind, look.uid): look for look in self.looks[: self.happened]}
        moment = ObservationTime(self.now_ms, live=False)
        return [look._replace(moment=moment) for look in reversed(last.values()) if not look.gone]

    # The part of Client that is called

    def watch(self, kind: Resource[Any], *, resource_version: str, timeout_s: int) -> Iterator[Event]:
        """What has happened since a version, if that is remembered."""
        del timeout_s
        if not self.remembers:
            raise Gone("too old resource version")
        known: dict[str, Any] = {}
        for version, look in enumerate(self.looks[: self.happened], start=_FIRST + 1):
            if look.kind != kind.plural:
                continue
            what = "DELETED" if look.gone else "MODIFIED" if look.uid in known else "ADDED"
            obj = known.get(look.uid) if look.gone else look.new
            if obj is None:
                continue
            known[look.uid] = obj
            if version > int(resource_version):
                meta = structs.replace(obj.metadata, resource_version=str(version))
                yield Event(what, structs.replace(obj, metadata=meta))

    def apply(self, res: Resource[Any], obj: dict[str, Any], **_: Any) -> None:
        """Take what is published."""
        del res
        if self.now_ms in self.silent:
            raise APIError("no answer")
        self.published.append(obj)

    def get(self, res: Resource[Any], name: str, namespace: str) -> Any:
        """What was published last."""
        del namespace
        if self.now_ms in self.silent:
            raise APIError("no answer")
        if not self.published:
            raise NotFound(f"no {name}")
        return convert(self.published[-1], res.type)


class Fed:
    """In the place of the reflectors: looks come in batches, and with the last one the recorder is stopped."""

    def __init__(self, cluster: Cluster, until: int, batches: Callable[[], int]) -> None:
        self._cluster = cluster
        self._until = until
        self._batches = batches
        self._ready: deque[Observation] = deque()
        self.observations = self.nodes = self
        self.reflectors = dict.fromkeys(kind.plural for kind in KINDS)
        self.synced = True
        self.ended: Callable[[], None] = lambda: None

    @property
    def versions(self) -> dict[str, str]:
        """See ObservationFeed."""
        return dict.fromkeys(self.reflectors, self._cluster.version)

    @property
    def following(self) -> bool:
        """See ObservationFeed."""
        return self._cluster.now_ms not in self._cluster.silent

    def of(self, node: str) -> Vector | None:
        """See NodeOffers."""
        return self._cluster.nodes.get(node)

    def start(self) -> None:
        """List everything."""
        self._ready.extend(self._cluster.listed())

    def stop(self) -> None:
        """Nothing is left to stop."""

    def not_ready(self) -> str | None:
        """All is well."""
        return None

    def get(self, timeout: float) -> Observation | None:
        """The first look of the next batch."""
        del timeout
        self._ready.extend(self._cluster.happens(min(self._batches(), self._until - self._cluster.happened)))
        if not self._ready:
            self.ended()
            return None
        return self._ready.popleft()

    def get_nowait(self) -> Observation:
        """Another look of this batch."""
        if not self._ready:
            raise Empty
        return self._ready.popleft()

    def qsize(self) -> int:
        """The looks of this batch that wait."""
        return len(self._ready)

    def put(self, look: Observation | None) -> None:
        """A recorder that is told to stop wakes itself: here it is awake."""
        assert look is None


class FailingStore(HistoryStore):
    """A store whose writes, or reads, fail while a test says so."""

    failures = 0
    """Writes that fail from now on."""
    unreadable = False

    def write(self, changes: RowChanges, notes: dict[str, str]) -> None:
        """Fail, or write."""
        if self.failures:
            self.failures -= 1
            raise StoreError("no room on the disk")
        super().write(changes, notes)

    def note(self, key: str) -> str:
        """Fail, or read."""
        if self.unreadable:
            raise StoreError("the disk is gone")
        return super().note(key)


def record(
    cluster: Cluster,
    store: HistoryStore,
    until: int | None = None,
    *,
    batches: Callable[[], int] = lambda: 1,
    changed: Callable[[HistoryRecorder], None] = lambda _: None,
    published: Callable[[], PublishedUsage | None] = lambda: None,
) -> HistoryRecorder:
    """A recorder that starts, reads on up to a look (by default it only starts), and ends without another word."""
    following = Fed(cluster, cluster.happened if until is None else until, batches)
    made = HistoryRecorder(
        cluster,  # type: ignore[arg-type]  # as Client
        store,
        HistorySettings(),
        clock_s=lambda: cluster.now_ms / MS,
        changed=changed,
        published=published,
    )
    made.feed = following  # type: ignore[assignment]  # as ObservationFeed
    following.ended = made.stop
    made.run()
    return made


def at_once(monkeypatch: Any) -> None:
    """A recorder that does not wait for more looks, or before it tries again."""
    monkeypatch.setattr(recorder, "GATHER_S", 0)
    monkeypatch.setattr(recorder, "_AGAIN_S", 0)
