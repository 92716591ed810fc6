"""Long objects without most of what takes long to decode and is read of no real object. Pure.

The API server accepts a megabyte of labels, owners or finalizers in one object, and of tolerations, volumes or node
selectors in one pod: tens of thousands of small strings, and tens of milliseconds of an event loop. Real objects have
some dozens. Annotations are at most 256 KiB in all, and stay. What is in containers is bounded by the policy
`muster-pods`, as the room of a pod depends on it.
"""

from typing import Any, Final

import msgspec

from muster.api import names
from muster.api.limits import DEMAND_BYTES, METADATA_BYTES

LONG: Final = 65_536
"""Bytes of an object above which it is looked at."""
TOO_LARGE: Final = f"{names.DOMAIN}/too-large"
"""In place of what a pod demands: a label that no node has, and a gate that nobody lifts."""


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    labels: msgspec.Raw = msgspec.Raw()
    owner_references: msgspec.Raw = msgspec.Raw()
    finalizers: msgspec.Raw = msgspec.Raw()


class _Spec(msgspec.Struct, rename="camel", gc=False):
    """The fields of a pod that the planner reads, beside its containers."""

    node_selector: msgspec.Raw = msgspec.Raw()
    affinity: msgspec.Raw = msgspec.Raw()
    tolerations: msgspec.Raw = msgspec.Raw()
    topology_spread_constraints: msgspec.Raw = msgspec.Raw()
    volumes: msgspec.Raw = msgspec.Raw()
    resource_claims: msgspec.Raw = msgspec.Raw()
    scheduling_gates: msgspec.Raw = msgspec.Raw()


class _Object(msgspec.Struct, gc=False):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _Pod(_Object, gc=False):
    spec: _Spec = msgspec.field(default_factory=_Spec)


_KEYS = {f"label_{number}": key for number, key in enumerate(sorted(names.CHARGED))}
_Charged = msgspec.defstruct(
    "_Charged", [(name, str | msgspec.UnsetType, msgspec.UNSET) for name in _KEYS], rename=_KEYS
)
_object = msgspec.json.Decoder(_Object)
_pod = msgspec.json.Decoder(_Pod)
_charged = msgspec.json.Decoder(_Charged)
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
"""A pod that waits fits no node then; one that is on a node has its room, whatever it demands."""


def lean(data: bytes | msgspec.Raw, *, pod: bool = False) -> bytes | msgspec.Raw:
    """Return a long object without very many owners and finalizers, and of very many labels with the charged ones.

    A bound pod is still charged by those (`names.CHARGED`). Of a `pod`, demands that are very long are cut, too. What
    is short or cannot be read is returned as it is.
    """
    if len(memoryview(data)) <= LONG:
        return data
    try:
        cuts = list(_cuts(data, pod=pod))
    except (msgspec.DecodeError, RecursionError):
        return data
    if not cuts:
        return data
    result = bytes(data)
    for many, few in cuts:
        begin = result.find(many)
        result = result[:begin] + few + result[begin + len(many) :]
    return result


def _cuts(data: bytes | msgspec.Raw, *, pod: bool) -> list[tuple[bytes, bytes]]:
    """Return what is too long, and what stands in its place."""
    found: _Object = (_pod if pod else _object).decode(data)
    cuts = []
    for name in _Metadata.__struct_fields__:
        many = bytes(getattr(found.metadata, name))
        if len(many) > METADATA_BYTES.value:
            cuts.append((many, msgspec.json.encode(_charged.decode(many)) if name == "labels" else b"[]"))
    if isinstance(found, _Pod):
        for name in _Spec.__struct_fields__:
            many = bytes(getattr(found.spec, name))
            if len(many) > DEMAND_BYTES.value:
                cuts.append((many, msgspec.json.encode(_INSTEAD.get(name, []))))
    return cuts
