"""Conversion between JSON and wire types: decoders, lists that skip undecodable objects, and objects as plain data."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import structlog
from prometheus_client import Counter

from muster.api.base import Resource
from muster.api.kubernetes.meta import ListMeta, Object
from muster.kube.trimming import trimmed

T = TypeVar("T")

log = structlog.get_logger(__name__)

UNDECODABLE = Counter(
    "muster_kube_undecodable_total",
    "Unreadable or too large objects that were left out of lists and watches, by resource.",
    ["resource"],
)
UNREADABLE = (msgspec.DecodeError, RecursionError)
"""Errors that msgspec raises for a text that does not match its type, or is nested about a thousand levels deep."""
_MOST_REPORTED = 10_000
_BETWEEN = rb'[^"{}\[\]]{0,65536}+'
_BODY = rb'[^"\\]{0,65536}+(?:\\.[^"\\]{0,64}+){0,2048}+(?:(")(\s{0,64}+:)?' + _BETWEEN + rb")?+"
"""Pattern of a JSON string up to its end, with the colon if the string is a key. A match has a maximum length, because
matching holds the GIL."""
_TOKEN = re.compile(rb'"' + _BODY + rb"|[{}\[\]]" + _BETWEEN + rb"|" + _BETWEEN, re.DOTALL)
_REST = re.compile(_BODY, re.DOTALL)
_QUOTE = ord(b'"')
_MOST_BYTES = 65_536
_MOST_TOKENS = 2_000
"""Maximum number of JSON tokens to search for the name of an object, in at most about two milliseconds."""


class Identity(NamedTuple):
    """The identity of an object; unknown parts are empty strings."""

    namespace: str = ""
    name: str = ""
    resource_version: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`, or `name` for cluster-scoped objects."""
        return f"{self.namespace}/{self.name}" if self.namespace and self.name else self.name


_decoders: dict[type, msgspec.json.Decoder[Any]] = {}
_reported: set[tuple[str, Identity]] = set()
"""Object versions that were left out and have been reported, with their kinds, so that each is reported only once."""


class _Name(msgspec.Struct, rename="camel", gc=False):
    """The metadata that identify an object. Decoding skips all other data, in about two milliseconds per megabyte."""

    namespace: str = ""
    name: str = ""
    resource_version: str = ""


class _NamedObject(msgspec.Struct, gc=False):
    metadata: _Name


class _RawList(msgspec.Struct, gc=False):
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[msgspec.Raw] | None = None


_raw_lists = msgspec.json.Decoder(_RawList)
_named = msgspec.json.Decoder(_NamedObject)


def decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """Return the cached decoder of one wire type."""
    if kind not in _decoders:
        _decoders[kind] = msgspec.json.Decoder(kind)
    return _decoders[kind]


class ListPage(Generic[T]):
    """A list from the API server, or one page of a list: the metadata and the objects.

    Objects are decoded lazily. If the caller processes each object before it decodes the next one, the CPU's caches are
    reused: 50,000 pods then take a third less time. Undecodable objects are left out; after the iteration, `left_out`
    contains their keys.
    """

    def __init__(
        self, res: Resource[T], metadata: ListMeta, items: list[msgspec.Raw], size_bytes: int, *left_out: str
    ) -> None:
        self.metadata = metadata
        self.size_bytes = size_bytes
        """Size of the raw response in bytes."""
        self.left_out = list(left_out)
        self._res = res
        self._items = items

    @classmethod
    def read(cls, res: Resource[T], body: bytes) -> "ListPage[T]":
        """Read a response.

        Raises msgspec.DecodeError if the response is not a list, and RecursionError if an object is nested too deeply.
        """
        content = _raw_lists.decode(body)
        return cls(res, content.metadata, content.items or [], len(body))

    @classmethod
    def cut(cls, res: Resource[T], body: bytes) -> "ListPage[T]":
        """Parse a response whose objects may be nested to any depth.

        At 0.3 s per megabyte, the method is too slow for an event loop.
        """
        outer = dict(parts(body))
        metadata = decoder(ListMeta).decode(outer.get(b"metadata", b""))
        items = [msgspec.Raw(value) for _, value in parts(outer.get(b"items", b""))]
        return cls(res, metadata, items, len(body))

    def __len__(self) -> int:
        """Return the number of objects, including undecodable ones."""
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        decode, res = decoder(self._res.type).decode, self._res
        for raw in self._items:
            try:
                item = decode(trimmed(raw, res.plural))
            except Exception as error:  # noqa: BLE001 - whatever is wrong with one object, the others are read
                self.left_out.append(leave_out(res, identity(memoryview(raw), error), error))
                continue
            if isinstance(item, Object) and not item.kind:  # items of a built-in list have no kind
                item.api_version, item.kind = res.api_version, res.kind
            yield item


def parts(data: bytes, most_tokens: int | None = None) -> Iterator[tuple[bytes, bytes]]:
    """Split JSON into the (key, value) pairs of its outermost object, or the values of an array with empty keys.

    The decoder raises RecursionError for values that are nested a thousand levels deep, even in skipped fields.
    Counting brackets, as this function does, is slower, but finds the object that is nested too deeply, and its name.

    The function yields strings, objects and arrays, and skips numbers, booleans and null. If the text ends within a
    value, or if a value exceeds `most_tokens`, the beginning of this value is yielded last.
    """
    depth, begin, key = 0, 0, b""
    for start, end, is_key in islice(_tokens(data), most_tokens):
        first = data[start]
        if first in b"{[":
            depth += 1
            if depth == 2:  # noqa: PLR2004 - one level inside of the outermost
                begin = start
        elif first in b"}]":
            depth -= 1
            if depth == 1:
                yield key, data[begin:end]
        elif depth == 1 and is_key:
            key = data[start + 1 : end - 1]
        elif depth == 1:
            yield key, data[start:end]
    if depth > 1:
        yield key, data[begin:]


def _tokens(data: bytes) -> Iterator[tuple[int, int, bool]]:
    """Yield start and end of each string and bracket, and True for a key. Long strings are processed in parts."""
    position, string = 0, -1
    while position < len(data):
        found = (_TOKEN if string < 0 else _REST).match(data, position)
        if found is None or found.end() == position:
            break
        start, position = found.span()
        if string < 0 and data[start] == _QUOTE:
            string = start
        if string >= 0 and found[1]:
            yield string, found.end(1), found[2] is not None
            string = -1
        elif string < 0 and data[start] in b"{}[]":
            yield start, start + 1, False
    if string >= 0:
        yield string, len(data), False


def part(data: bytes, key: bytes) -> bytes:
    """Return this key's value, or the beginning of it, near the start of an object; empty if the key is not found."""
    return next((value for found, value in parts(data[:_MOST_BYTES], _MOST_TOKENS) if found == key), b"")


def identity(data: bytes | memoryview, error: Exception | None = None) -> Identity:
    """Return the identity of an object that could not be decoded.

    An overly nested or truncated object is identified only by a name near its beginning, because a longer search would
    block event loops.
    """
    if not isinstance(error, RecursionError):
        with suppress(*UNREADABLE):
            name = _named.decode(data).metadata
            return Identity(name.namespace, name.name, name.resource_version)
    metadata = dict(parts(part(bytes(data[:_MOST_BYTES]), b"metadata"), _MOST_TOKENS))
    return Identity(*(text(metadata.get(key, b"")) for key in (b"namespace", b"name", b"resourceVersion")))


def text(value: bytes) -> str:
    """Return the value of a JSON string; "" for any other JSON value."""
    try:
        return msgspec.json.decode(value, type=str)
    except UNREADABLE:
        return ""


def leave_out(res: Resource[Any], which: Identity, error: Exception | str) -> str:
    """Log and count that a version of an object is left out for this reason, but only once; return the object's key."""
    if not which.name or (res.plural, which) not in _reported:
        if len(_reported) >= _MOST_REPORTED:
            _reported.clear()
        _reported.add((res.plural, which))
        UNDECODABLE.labels(res.plural).inc()
        why = "the object is nested too deeply" if isinstance(error, RecursionError) else str(error)
        name = which.key or f"an object of kind {res.kind}"
        log.warning("object left out", resource=res.plural, why=why, name=name)
    return which.key


def content_of(res: Resource[Any], obj: Mapping[str, Any] | msgspec.Struct) -> dict[str, Any]:
    """Return an object as plain data, with its kind; Structs that contain only default values are left out."""
    if isinstance(obj, msgspec.Struct):
        content = {name: value for name, value in msgspec.to_builtins(obj).items() if value != {}}
    else:
        content = dict(obj)
    metadata = dict(content.get("metadata") or {})
    return content | {"apiVersion": res.api_version, "kind": res.kind, "metadata": metadata}
