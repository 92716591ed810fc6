"""JSON ↔ wire types: one decoder per kind, lists that survive an odd object, and objects as plain data for writing."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec
import structlog

from muster.api.base import Resource
from muster.api.meta import ListMeta, Object
from muster.kube.metrics import UNDECODABLE

T = TypeVar("T")

log = structlog.get_logger(__name__)

_decoders: dict[type, msgspec.json.Decoder[Any]] = {}


class RawList(msgspec.Struct, gc=False):
    """A list whose items are still to be decoded."""

    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[msgspec.Raw] | None = None


decode_raw_list = msgspec.json.Decoder(RawList).decode
"""Reads what a list says of itself, and cuts it into its items."""


def decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """The decoder of one wire type, made once."""
    if kind not in _decoders:
        _decoders[kind] = msgspec.json.Decoder(kind)
    return _decoders[kind]


def items_of(res: Resource[T], page: RawList) -> Iterator[T]:
    """The objects of a list, one by one; an object that does not decode is logged and left out."""
    for raw in page.items or ():
        item = _readable(res, raw)
        if item is not None:
            _name_kind(res, item)
            yield item


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
