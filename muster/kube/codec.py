"""JSON ↔ wire types: one decoder per kind, lists that survive an odd object, and objects as plain data for writing."""

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

import msgspec
import structlog

from muster.api.base import Resource
from muster.api.kubernetes.meta import ListMeta, Object
from muster.kube import split
from muster.kube.metrics import UNDECODABLE

T = TypeVar("T")

log = structlog.get_logger(__name__)

UNREADABLE = (msgspec.DecodeError, RecursionError)
"""What msgspec raises for a text that is not what its type says, or that is nested some thousand levels deep."""
_MOST_TOLD = 10_000

_decoders: dict[type, msgspec.json.Decoder[Any]] = {}
_told: set[tuple[str, split.Identity]] = set()
"""The kinds and versions of objects that were left out, so that each is told once, however often it is listed."""


class _RawList(msgspec.Struct, gc=False):
    """A list whose items are still to be decoded."""

    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[msgspec.Raw] | None = None


_raw_lists = msgspec.json.Decoder(_RawList)


def decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """The decoder of one wire type, made once."""
    if kind not in _decoders:
        _decoders[kind] = msgspec.json.Decoder(kind)
    return _decoders[kind]


class Page(Generic[T]):
    """A list, or a part of one: what the API server says of it, and its objects.

    An object is decoded when it is its turn: done with one before the next is asked for, each is where the last one
    was in the CPU's caches, and 50,000 pods cost a third less. An object that does not decode is left out; the keys of
    those stand in `left_out` when all were asked for.
    """

    def __init__(
        self, res: Resource[T], metadata: ListMeta, items: list[msgspec.Raw], size_bytes: int, *left_out: str
    ) -> None:
        self.metadata = metadata
        self.size_bytes = size_bytes
        """As it came over the wire."""
        self.left_out = list(left_out)
        self._res = res
        self._items = items

    @classmethod
    def read(cls, res: Resource[T], body: bytes) -> "Page[T]":
        """The page of an answer; msgspec.DecodeError for what is no list, RecursionError if an object is too deep."""
        content = _raw_lists.decode(body)
        return cls(res, content.metadata, content.items or [], len(body))

    @classmethod
    def cut(cls, res: Resource[T], body: bytes) -> "Page[T]":
        """The same where objects may be nested as deeply as they like; some 0.2 s for a megabyte, so not on a loop."""
        outer = dict(split.parts(body))
        metadata = decoder(ListMeta).decode(outer.get(b"metadata", b""))
        items = [msgspec.Raw(value) for _, value in split.parts(outer.get(b"items", b""))]
        return cls(res, metadata, items, len(body))

    def __len__(self) -> int:
        """All its objects, those that do not decode included."""
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        decode, res = decoder(self._res.type).decode, self._res
        for raw in self._items:
            try:
                item = decode(raw)
            except Exception as error:  # noqa: BLE001 - whatever is wrong with one object, the others are read
                self.left_out.append(leave_out(res, split.identity(bytes(raw)), error))
                continue
            if isinstance(item, Object) and not item.kind:  # items of a built-in list do not say what they are
                item.api_version, item.kind = res.api_version, res.kind
            yield item


def leave_out(res: Resource[Any], which: split.Identity, error: Exception | str) -> str:
    """Tells the log and the metrics, once, that a version of an object cannot be read; gives the object's key."""
    if not which.name or (res.plural, which) not in _told:
        if len(_told) >= _MOST_TOLD:
            _told.clear()
        _told.add((res.plural, which))
        UNDECODABLE.labels(res.plural).inc()
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        name = which.key or f"an object of kind {res.kind}"
        log.warning("object left out, it is not as we know its kind", resource=res.plural, why=why, name=name)
    return which.key


def content_of(res: Resource[Any], obj: Mapping[str, Any] | msgspec.Struct) -> dict[str, Any]:
    """An object as plain data that says what it is; parts of a Struct that hold nothing but defaults are left out."""
    if isinstance(obj, msgspec.Struct):
        content = {name: value for name, value in msgspec.to_builtins(obj).items() if value != {}}
    else:
        content = dict(obj)
    metadata = dict(content.get("metadata") or {})
    return content | {"apiVersion": res.api_version, "kind": res.kind, "metadata": metadata}
