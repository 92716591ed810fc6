"""Trimming of long objects: removal of parts that are slow to decode, and that no real object contains. Pure.

The API server accepts a megabyte of labels, owners or finalizers in one object, and of tolerations, volumes or node
selectors in one pod. Decoding tens of thousands of small strings takes tens of milliseconds on an event loop. Real
objects have some dozens of labels, owners, finalizers, tolerations, volumes or node selectors. The API server limits
the annotations of an object to 256 KiB in total. Annotations of pods are reduced to the keys that Muster reads, because
the caches have no memory limit for pods. Containers and resources cannot be trimmed, because a pod's requests depend on
them; the policy `muster-pods` limits their number. Commands, arguments and environment variables are not limited, but
no code reads them from existing pods. A PodGroup that is too long is not decoded at all, because trimming would change
its meaning.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from muster.api import names
from muster.api.fields import FieldError
from muster.api.limits import DEMAND_BYTES, GANG_BYTES, METADATA_BYTES, Limit

LONG: Final = 65_536
"""Size in bytes above which an object is trimmed."""
_ANNOTATION_CHARS: Final = 1_024
"""Length to which too many or too long annotations of a pod are cut; Muster's own annotations are far shorter."""
TOO_LARGE: Final = f"{names.DOMAIN}/too-large"
"""Name of a node label and of a scheduling gate that replace overlong parts of a pod. No node has this label, and no
controller removes this gate."""


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    labels: msgspec.Raw = msgspec.Raw()
    annotations: msgspec.Raw = msgspec.Raw()
    owner_references: msgspec.Raw = msgspec.Raw()
    finalizers: msgspec.Raw = msgspec.Raw()


class _Container(msgspec.Struct, gc=False):
    """The fields of a container that have no limit on their length."""

    command: msgspec.Raw = msgspec.Raw()
    args: msgspec.Raw = msgspec.Raw()
    env: msgspec.Raw = msgspec.Raw()


class _PodDemands(msgspec.Struct, rename="camel", gc=False):
    """The fields of a pod's spec that the planner reads."""

    node_selector: msgspec.Raw = msgspec.Raw()
    affinity: msgspec.Raw = msgspec.Raw()
    tolerations: msgspec.Raw = msgspec.Raw()
    topology_spread_constraints: msgspec.Raw = msgspec.Raw()
    volumes: msgspec.Raw = msgspec.Raw()
    resource_claims: msgspec.Raw = msgspec.Raw()
    scheduling_gates: msgspec.Raw = msgspec.Raw()
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None


class _LongObject(msgspec.Struct, gc=False):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _LongPod(_LongObject, gc=False):
    spec: _PodDemands = msgspec.field(default_factory=_PodDemands)


class _LongPodGroup(_LongObject, gc=False):
    spec: msgspec.Raw = msgspec.Raw()
    status: msgspec.Raw = msgspec.Raw()


def _texts_of(keys: frozenset[str]) -> type[msgspec.Struct]:
    """Return a type that decodes only these keys of an object's labels or annotations."""
    fields = {f"key_{number}": key for number, key in enumerate(sorted(keys))}
    return msgspec.defstruct(
        "_Texts", [(name, str | msgspec.UnsetType, msgspec.UNSET) for name in fields], rename=fields
    )


_object = msgspec.json.Decoder(_LongObject)
_of_kind: dict[str, msgspec.json.Decoder[Any]] = {
    "pods": msgspec.json.Decoder(_LongPod),
    "podgroups": msgspec.json.Decoder(_LongPodGroup),
}
_charged = msgspec.json.Decoder(_texts_of(names.CHARGED))
_known = msgspec.json.Decoder(
    _texts_of(names.CHARGED | {key for name, key in vars(names).items() if name.isupper() and isinstance(key, str)})
)
_NOWHERE: Any = {"key": TOO_LARGE, "operator": "Exists"}
_INSTEAD: dict[str, Any] = {
    "node_selector": {TOO_LARGE: ""},
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [_NOWHERE]}]}
        }
    },
    "scheduling_gates": [{"name": TOO_LARGE}],
}
"""Maps a field that can be too long to its replacement. With a replacement, a waiting pod fits no node, whereas a bound
pod still counts with its resources."""


def trimmed(data: bytes | msgspec.Raw, plural: str = "") -> bytes | msgspec.Raw:
    """Return an object in which owners, finalizers and labels that are too long are removed or reduced.

    Labels that determine the queue to which a pod is charged (`names.CHARGED`) are kept. For `pods`, scheduling fields
    that are too long are replaced, and only Muster's annotations are kept. Short or unreadable objects are returned
    unchanged. Raises msgspec.ValidationError for a PodGroup that is too long.
    """
    if len(memoryview(data)) <= LONG:
        return data
    try:
        found: _LongObject = _of_kind.get(plural, _object).decode(data)
        cuts = list(_cuts(found))
    except (msgspec.DecodeError, RecursionError):
        return data
    if isinstance(found, _LongPodGroup) and (errors := _too_long(found)):
        raise msgspec.ValidationError("; ".join(map(str, errors)))
    if not cuts:
        return data
    result = bytes(data)
    for many, few in cuts:
        begin = result.find(many)
        result = result[:begin] + few + result[begin + len(many) :]
    return result


def too_long(group: bytes | msgspec.Raw) -> list[FieldError]:
    """Return replacements for the parts of a PodGroup that are too long.

    Raises msgspec.DecodeError if the text is not an object.
    """
    return _too_long(_of_kind["podgroups"].decode(group)) if len(memoryview(group)) > LONG else []


def _too_long(group: _LongPodGroup) -> list[FieldError]:
    sizes = {"spec": len(memoryview(group.spec)), "status": len(memoryview(group.status))}
    return [error for path, size in sizes.items() for error in GANG_BYTES.exceeded_by(path, size)]


def _cuts(found: _LongObject) -> Iterator[tuple[bytes, bytes]]:
    """Yield each part of an object that is too long, with its replacement."""
    for name, many in _long(found.metadata, METADATA_BYTES):
        if name == "labels":
            yield many, msgspec.json.encode(_charged.decode(many))
        elif name != "annotations":
            yield many, b"[]"
        elif isinstance(found, _LongPod):
            texts = msgspec.to_builtins(_known.decode(many))
            yield many, msgspec.json.encode({key: text[:_ANNOTATION_CHARS] for key, text in texts.items()})
    if isinstance(found, _LongPod):
        for name, many in _long(found.spec, DEMAND_BYTES):
            yield many, msgspec.json.encode(_INSTEAD.get(name, []))
        for container in (*(found.spec.containers or ()), *(found.spec.init_containers or ())):
            for _, many in _long(container, DEMAND_BYTES):
                yield many, b"[]"


def _long(parts: msgspec.Struct, limit: Limit) -> Iterator[tuple[str, bytes]]:
    """Yield the names of the fields that exceed the limit."""
    for name in parts.__struct_fields__:
        raw = getattr(parts, name)
        if isinstance(raw, msgspec.Raw) and len(memoryview(raw)) > limit.value:
            yield name, bytes(raw)
