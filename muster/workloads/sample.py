"""Sample pods: the first pods of a manifest, before any object exists.

Each kind's module uses these functions to create pods in the same way as the kind's controller. Each pod template has
one sample pod, usually with rank 0, because other pods differ only in their rank.
"""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from muster.api.base import Resource
from muster.workloads.adapter import Owner

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SamplePod:
    """A pod before admission, with its owner if the manifest does not contain the owner."""

    pod: JSON
    about: str
    owner: JSON | None = None
    always: bool = False
    """True if the pod is shown even if admission does not change it."""


def uid_of(name: str) -> str:
    """Return a substitute for the UID of an object that does not exist yet."""
    return f"uid-of-{name}"


def name_of(document: Mapping[str, Any]) -> str:
    """Return the name of an object, or the prefix of a generated name."""
    metadata = document["metadata"]
    return str(metadata.get("name") or metadata.get("generateName") or "")


def part_of(owner: JSON, resource: Resource[Any], name: str, spec: Mapping[str, Any]) -> JSON:
    """Return an object between a workload and its pods, as the workload's controller creates it."""
    uid = owner["metadata"].get("uid")
    metadata = {"name": name, "ownerReferences": [_reference(owner)], "uid": f"{uid}-{name}" if uid else uid_of(name)}
    if owner["metadata"].get("namespace"):
        metadata["namespace"] = owner["metadata"]["namespace"]
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    return {**kind, "metadata": metadata, "spec": deepcopy(dict(spec))}


def pod_of(owner: JSON, template: JSON, name: str, labels: Mapping[str, str], place: JSON) -> JSON:
    """Return a pod of a template, with the labels that its controller adds; `place` is the DNS name of the pod."""
    metadata = mapping(template.get("metadata"))
    namespace = owner["metadata"].get("namespace")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            **({"namespace": namespace} if namespace else {}),
            "labels": {**mapping(metadata.get("labels")), **labels},
            **({"annotations": metadata["annotations"]} if metadata.get("annotations") else {}),
            "ownerReferences": [_reference(owner)],
        },
        "spec": {**place, **deepcopy(mapping(template.get("spec")))},
    }


def mapping(value: Any) -> JSON:
    """Return a map unchanged, and an empty map for None; raises msgspec.ValidationError for any other value."""
    return msgspec.convert(value or {}, JSON)


def count(spec: Mapping[str, Any], key: str) -> int:
    """Return a field with a number of pods or of their creators, by default 1; raises ValidationError if invalid."""
    value = spec.get(key)
    return 1 if value is None else msgspec.convert(value, Annotated[int, msgspec.Meta(ge=0)])


def holds(conditions: Iterable[Mapping[str, Any]], *types: str) -> bool:
    """Return True if a condition of one of these types is True."""
    return any(each.get("type") in types and each.get("status") == "True" for each in conditions)


def _reference(owner: JSON) -> JSON:
    name = name_of(owner)
    uid = owner["metadata"].get("uid") or uid_of(name)
    return Owner(owner["apiVersion"], owner["kind"], name, uid=uid).reference(blocking=False)
