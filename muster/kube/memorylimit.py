"""Limit on the memory that a namespace's objects use in a cache; the newest objects are left out above this limit.

Without the limit, a user who may create objects could fill the memory of a process that serves all users. The size of
an object is the size of its stored form. The oldest objects are kept, regardless of their order in a list response. An
excluded object is added to the cache as soon as the namespace has space for the object.
"""

import asyncio
from bisect import bisect_left, insort
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from heapq import nsmallest
from typing import Any, Generic, NamedTuple, Self, TypeVar

import msgspec
import structlog
from prometheus_client import Gauge

from muster.api.base import Resource
from muster.api.kubernetes.meta import Object
from muster.api.limits import NAMESPACE_BYTES, OBJECT_BYTES
from muster.kube.errors import APIError

T = TypeVar("T", bound=Object)

log = structlog.get_logger(__name__)

AGAIN_S = 5.0
"""Interval between two reads of excluded objects, so that not every deletion causes a request."""

KEPT = Gauge(
    "muster_kube_kept_bytes",
    "Memory used by objects in a cache with a memory limit, in bytes, by resource.",
    ["resource"],
)
LEFT_OUT = Gauge(
    "muster_kube_left_out", "Objects that are left out because they exceed a memory limit, by resource.", ["resource"]
)
_BYTES_OF_A_VALUE = 128
"""Maximum memory in bytes for a dictionary entry, a list item or an object, in addition to its text."""
_MOST_AGAIN = 10
"""Maximum number of excluded objects that are read again at the same time."""


def weight_of(obj: Object) -> int:
    """Return an estimate (rarely too low) of the memory that an object uses, in bytes."""
    text = msgspec.json.encode(obj)
    return len(text) + _BYTES_OF_A_VALUE * (text.count(b",") + text.count(b"{") + text.count(b"["))


class _Weighed(NamedTuple):
    created: str
    key: str
    bytes: int


class _Namespace:
    """Sizes of one namespace's objects: cached objects in order of creation, and excluded objects."""

    def __init__(self) -> None:
        self.order: list[_Weighed] = []
        self.kept: dict[str, _Weighed] = {}
        self.left_out: dict[str, _Weighed] = {}
        self.bytes = 0

    def keep(self, one: _Weighed) -> None:
        self.left_out.pop(one.key, None)
        self.drop(one.key)
        insort(self.order, one)
        self.kept[one.key] = one
        self.bytes += one.bytes

    def drop(self, key: str) -> None:
        known = self.kept.pop(key, None)
        if known is not None:
            del self.order[bisect_left(self.order, known)]
            self.bytes -= known.bytes


class LimitVerdict(NamedTuple):
    """The result of a check: the keys of objects to drop, and the reason why the checked object is refused, if any."""

    gone: tuple[str, ...] = ()
    refusal: str = ""


class MemoryLimit(Generic[T]):
    """Memory limit of one kind, per namespace and per object; cluster-scoped objects have no limit.

    An object that is stored as text counts with the text's length in bytes, any other object with the result of
    `weigh`.
    """

    def __init__(
        self,
        resource: Resource[T],
        weigh: Callable[[T], int] = weight_of,
        *,
        of_object: int = OBJECT_BYTES.value,
        of_namespace: int = NAMESPACE_BYTES.value,
    ) -> None:
        self.resource: Resource[Any] = resource
        self._weigh = weigh
        self._of_object, self._of_namespace = of_object, of_namespace
        self._kept, self._left_out = KEPT.labels(resource.plural), LEFT_OUT.labels(resource.plural)
        self._namespaces: dict[str, _Namespace] = {}
        self._freed: set[str] = set()
        """Namespaces that have excluded objects, and in which space has become free."""

    def weigh(self, obj: T, packed: Any = None) -> LimitVerdict:
        """Check whether a new or changed object, which would be stored as `packed`, is within the memory limits.

        If the new version of a stored object exceeds a limit, the old version stays in the cache.
        """
        meta = obj.metadata
        if not meta.namespace:
            return LimitVerdict()
        weight_bytes = len(packed) if isinstance(packed, bytes) else self._weigh(obj)
        one = _Weighed(meta.creation_timestamp or "", meta.key, weight_bytes)
        if one.bytes > self._of_object:
            self._forget_left_out(one.key)
            return LimitVerdict(
                refusal=f"it uses {one.bytes} bytes of memory, and the limit for one object is {self._of_object}"
            )
        space = self._namespaces.setdefault(meta.namespace, _Namespace())
        with self._measured(space):
            newer = self._to_go(space, one)
            if newer is None:
                space.left_out[one.key] = one
                return LimitVerdict(refusal=self.refusal)
            for each in newer:
                space.drop(each.key)
                space.left_out[each.key] = each
            space.keep(one)
            if space.left_out:
                self._freed.add(meta.namespace)
        return LimitVerdict(tuple(each.key for each in newer))

    @property
    def refusal(self) -> str:
        """Reason why objects that exceed the memory limit of their namespace are left out of the cache."""
        kind, most = self.resource.plural, self._of_namespace
        return f"the {kind} of its namespace use more than {most} bytes of memory, and older objects are kept first"

    def drop(self, key: str) -> None:
        """Record the deletion of an object."""
        namespace = key.partition("/")[0]
        space = self._namespaces.get(namespace)
        if space is None:
            return
        with self._measured(space):
            space.drop(key)
            space.left_out.pop(key, None)
        if space.left_out:
            self._freed.add(namespace)
        elif not space.kept:
            del self._namespaces[namespace]

    def left_out(self, key: str) -> bool:
        """Return True while an object is excluded for lack of space in its namespace."""
        space = self._namespaces.get(key.partition("/")[0])
        return space is not None and key in space.left_out

    def again(self) -> list[str]:
        """Return the keys of a namespace's oldest excluded objects for which there is space now, up to a maximum."""
        for namespace in [*self._freed]:
            space = self._namespaces.get(namespace) or _Namespace()
            room, found = self._of_namespace - space.bytes, []
            for each in nsmallest(_MOST_AGAIN, space.left_out.values()):
                if each.bytes > room:
                    break
                room -= each.bytes
                found.append(each.key)
            if found:
                return found
            self._freed.discard(namespace)
        return []

    async def read_again(self, read: Callable[[str, Self], Awaitable[None]], random: Callable[[], float]) -> None:
        """Read excluded objects again once there is space for them, until the task is cancelled."""
        name = self.resource.plural
        while True:
            await asyncio.sleep(AGAIN_S * (1 + random()))
            for key in self.again():
                try:
                    await read(key, self)
                except APIError as error:
                    log.info("cannot read an object that was left out", resource=name, name=key, why=str(error))
                except Exception:  # a defect must not leave out objects for good
                    log.exception("reading an object that was left out failed", resource=name, name=key)

    def _to_go(self, space: _Namespace, one: _Weighed) -> list[_Weighed] | None:
        """Return the newer objects to drop so that there is space for an object; None if it must be left out itself."""
        known = space.kept.get(one.key)
        over = space.bytes - (known.bytes if known else 0) + one.bytes - self._of_namespace
        newer: list[_Weighed] = []
        place = len(space.order)
        while over > 0:
            place -= 1
            if place < 0 or space.order[place][:2] < one[:2]:
                return None
            if space.order[place].key != one.key:
                newer.append(space.order[place])
                over -= newer[-1].bytes
        return newer

    def _forget_left_out(self, key: str) -> None:
        """Stop waiting for space for an object, because its current version exceeds the limit for one object."""
        space = self._namespaces.get(key.partition("/")[0])
        if space is not None:
            with self._measured(space):
                space.left_out.pop(key, None)

    @contextmanager
    def _measured(self, space: _Namespace) -> Iterator[None]:
        """Update the metrics after a change of a namespace."""
        kept, left_out = space.bytes, len(space.left_out)
        yield
        self._kept.inc(space.bytes - kept)
        self._left_out.inc(len(space.left_out) - left_out)
