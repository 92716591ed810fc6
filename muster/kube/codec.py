"""JSON ↔ wire types: one decoder per kind, lists that survive an odd object, and objects as plain data for writing."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
import structlog

from muster.api.base import Resource
from muster.api.meta import ListMeta, Object
from muster.kube.loop import TimeSlice
from muster.kube.metrics import UNDECODABLE

T = TypeVar("T")

log = structlog.get_logger(__name__)

_decoders: dict[type, msgspec.json.Decoder[Any]] = {}
_list_decoders: dict[type, msgspec.json.Decoder[Any]] = {}


class _RawList(msgspec.Struct, gc=False):
    """A list whose items are decoded one by one."""

    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[msgspec.Raw] | None = None


_decode_raw_list = msgspec.json.Decoder(_RawList).decode


def decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """The decoder of one wire type, made once."""
    if kind not in _decoders:
        _decoders[kind] = msgspec.json.Decoder(kind)
    return _decoders[kind]


def decode_list(res: Resource[T], body: bytes) -> tuple[list[T], ListMeta]:
    """The objects of a list and its metadata; an object that does not decode is logged and left out."""
    try:
        page = _list_decoder(res.type).decode(body)
        items: list[T] = page.items or []
    except msgspec.ValidationError:
        page = _decode_raw_list(body)
        items = [item for raw in page.items or () if (item := _readable(res, raw)) is not None]
    for item in items:
        _name_kind(res, item)
    return items, page.metadata


async def decode_long_list(res: Resource[T], body: bytes) -> tuple[list[T], ListMeta]:
    """The same, object by object: the event loop goes on with other things in between."""
    page = _decode_raw_list(body)
    items: list[T] = []
    slice_of_time = TimeSlice()
    for raw in page.items or ():
        item = _readable(res, raw)
        if item is not None:
            _name_kind(res, item)
            items.append(item)
        await slice_of_time.share()
    return items, page.metadata


def leave_out(res: Resource[Any], raw: msgspec.Raw, error: msgspec.ValidationError) -> None:
    """Tells the log and the metrics that an object cannot be read."""
    UNDECODABLE.labels(res.plural).inc()
    log.warning("object left out, it is not as we know its kind", resource=res.plural, why=str(error), name=_name(raw))


def content_of(res: Resource[Any], obj: Mapping[str, Any] | msgspec.Struct) -> dict[str, Any]:
    """An object as plain data that says what it is; parts of a Struct that hold nothing but defaults are left out."""
    if isinstance(obj, msgspec.Struct):
        content = {name: value for name, value in msgspec.to_builtins(obj).items() if value != {}}
    else:
        content = dict(obj)
    metadata = dict(content.get("metadata") or {})
    return content | {"apiVersion": res.api_version, "kind": res.kind, "metadata": metadata}


def _list_decoder(kind: type) -> msgspec.json.Decoder[Any]:
    if kind not in _list_decoders:
        fields: list[tuple[str, Any, Any]] = [
            ("items", list[kind] | None, None),  # type: ignore[valid-type]  # a type made at run time
            ("metadata", ListMeta, msgspec.field(default_factory=ListMeta)),
        ]
        _list_decoders[kind] = msgspec.json.Decoder(msgspec.defstruct(f"{kind.__name__}List", fields, gc=False))
    return _list_decoders[kind]


def _readable(res: Resource[T], raw: msgspec.Raw) -> T | None:
    try:
        return decoder(res.type).decode(raw)
    except msgspec.ValidationError as error:
        leave_out(res, raw, error)
        return None


def _name_kind(res: Resource[T], item: T) -> None:
    """The items of a built-in list do not say what they are."""
    if isinstance(item, Object) and not item.kind:
        item.api_version, item.kind = res.api_version, res.kind


def _name(raw: msgspec.Raw) -> str:
    try:
        meta = msgspec.json.decode(raw).get("metadata", {})
        return f"{meta.get('namespace', '')}/{meta.get('name', '')}".lstrip("/")
    except (msgspec.DecodeError, AttributeError):
        return bytes(raw)[:100].decode(errors="replace")
