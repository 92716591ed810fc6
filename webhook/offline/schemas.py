"""Validation against the schemas that the API server applies before it calls webhooks.

The schemas of Muster's kinds are read from the chart's CRDs; the schemas of Kubernetes' kinds are part of the code. For
all other kinds of workloads, only the schema of pod templates is known.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, Final

import msgspec

from muster.api.fields import FieldError
from muster.chart import CHART
from muster.crds.openapi import committed_core, embedded_schemas
from muster.crds.schema import Schema
from muster.workloads.kind import Path
from muster.workloads.table import kind_of
from webhook.objects.names import is_label, is_subdomain
from webhook.offline.lookups import JSON

_CRDS: Final = CHART / "files" / "crds"
_OPEN: Final = "x-kubernetes-preserve-unknown-fields"
_TEXT: Final[Schema] = {"type": "string"}
_NUMBER: Final[Schema] = {"type": "integer"}
_LIST: Final[Schema] = {"type": "array"}
_ANYTHING: Final[Schema] = {}
_TEXTS: Final[Schema] = {"type": "object", "additionalProperties": _TEXT}
_METADATA: Final[Schema] = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("name", "generateName", "namespace", "uid", "resourceVersion", "selfLink"), _TEXT),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), _TEXT),
        **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), _NUMBER),
        **dict.fromkeys(("labels", "annotations"), _TEXTS),
        **dict.fromkeys(("finalizers", "ownerReferences", "managedFields"), _LIST),
    },
}
_OF_SETS: Final = ("replicas", "selector", "template", "minReadySeconds", "revisionHistoryLimit")
_FIELDS: Final = {
    ("apps/v1", "Deployment"): (*_OF_SETS, "strategy", "paused", "progressDeadlineSeconds"),
    ("apps/v1", "StatefulSet"): (
        *(*_OF_SETS, "serviceName", "volumeClaimTemplates", "podManagementPolicy", "updateStrategy", "ordinals"),
        "persistentVolumeClaimRetentionPolicy",
    ),
    ("apps/v1", "ReplicaSet"): ("replicas", "selector", "template", "minReadySeconds"),
    ("apps/v1", "DaemonSet"): ("selector", "template", "updateStrategy", "minReadySeconds", "revisionHistoryLimit"),
    ("v1", "ReplicationController"): ("replicas", "selector", "template", "minReadySeconds"),
    ("batch/v1", "CronJob"): (
        *("schedule", "timeZone", "startingDeadlineSeconds", "concurrencyPolicy", "suspend", "jobTemplate"),
        *("successfulJobsHistoryLimit", "failedJobsHistoryLimit"),
    ),
}  # fmt: skip
"""Known fields of the spec, for kinds of which only the schema of the pod template is known."""
_NUMBERS: Final = frozenset({"replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"})
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "integer": (int,),
    "number": (int, float),
}  # fmt: skip
_CALLED: Final = {"object": "a map", "array": "a list", "string": "a text", "boolean": "true or false"}


def mistakes(document: JSON) -> list[FieldError]:
    """Return the violations of the schema of the object's kind; an unknown kind has no schema and no violations."""
    api_version, kind = str(document.get("apiVersion", "")), str(document.get("kind", ""))
    group, _, version = api_version.rpartition("/")
    served = _served(group, kind)
    if served and version not in served:
        return [FieldError("apiVersion", f"must be {' or '.join(f'{group}/{each}' for each in served)}", api_version)]
    schema = served[version] if served else _native(api_version, kind)
    return [*_wrong(document, schema, "")] if schema else []


@cache
def _served(group: str, kind: str) -> dict[str, Schema]:
    """Return the schema of each version of a kind that Muster installs; empty for other kinds."""
    file = _CRDS / f"{kind.lower()}s.{group}.yaml"
    if not (is_label(kind.lower()) and is_subdomain(group) and file.is_file()):
        return {}
    versions = msgspec.yaml.decode(file.read_bytes())["spec"]["versions"]
    return {each["name"]: each["schema"]["openAPIV3Schema"] for each in versions}


@cache
def _native(api_version: str, kind: str) -> Schema | None:
    """Return the schema of a Kubernetes workload, or of a kind with known pod templates; None for other kinds."""
    core = embedded_schemas(committed_core())
    pods, jobs = core["PodTemplateSpec"], core["JobTemplateSpec"]
    whole = {("v1", "Pod"): pods, ("batch/v1", "Job"): jobs}.get((api_version, kind))
    if whole:
        return _object(whole["properties"]["spec"])
    row = kind_of(api_version, kind)
    if row is None:
        return None
    spec: Schema = {"type": "object", _OPEN: True}
    for path in row.templates:
        _put(spec, path[1:], jobs if path[1:2] == ("jobTemplate",) else pods)
    if names := _FIELDS.get((api_version, kind)):
        own = {name: _NUMBER if name in _NUMBERS else _ANYTHING for name in names}
        spec = {"type": "object", "properties": {**own, **spec["properties"]}}
    return _object(spec)


def _object(spec: Schema) -> Schema:
    fields = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": {}, "spec": spec, "status": {}}
    return {"type": "object", "properties": fields}


def _put(schema: Schema, path: Path, template: Schema) -> None:
    """Return a schema that requires a valid pod template at this path, and allows any value elsewhere."""
    name, *rest = path
    if name == "*":
        _put(schema.setdefault("items", {"type": "object", _OPEN: True}), tuple(rest), template)
    elif not rest or name == "jobTemplate":
        schema.setdefault("properties", {})[name] = template
    else:
        inner = {"type": "array"} if rest[0] == "*" else {"type": "object", _OPEN: True}
        _put(schema.setdefault("properties", {}).setdefault(name, inner), tuple(rest), template)


def _wrong(value: Any, schema: Schema, path: str) -> Iterator[FieldError]:
    """Yield the errors in a value; a null value counts as missing, as in the API server."""
    if value is None or not schema:
        return
    kind = schema.get("type")
    if "anyOf" in schema:  # a number or text
        if not isinstance(value, int | float | str) or isinstance(value, bool):
            yield FieldError(path, "must be a number or a text", value)
    elif kind and (not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")):
        yield FieldError(path, f"must be {_CALLED.get(kind, 'a number')}", value)
    elif kind == "object":
        yield from _of_map(value, schema, path)
    elif kind == "array":
        for index, each in enumerate(value):
            yield from _wrong(each, schema.get("items", {}), f"{path}[{index}]")
    elif "enum" in schema and value not in schema["enum"]:
        allowed = ", ".join(str(each) for each in schema["enum"] if each != "")
        yield FieldError(path, f"must be one of {allowed}", value, "NotSupported")
    elif value < schema.get("minimum", value) or value > schema.get("maximum", value):
        yield FieldError(path, f"must be from {schema.get('minimum', '…')} to {schema.get('maximum', '…')}", value)


def _of_map(value: Mapping[str, Any], schema: Schema, path: str) -> Iterator[FieldError]:
    fields, others = schema.get("properties", {}), schema.get("additionalProperties")
    for name, each in value.items():
        where = f"{path}[{name}]" if "." in name or "/" in name else f"{path}.{name}".removeprefix(".")
        if name == "metadata" and name in fields:
            yield from _wrong(each, _METADATA, where)
        elif name in fields:
            yield from _wrong(each, fields[name], where)
        elif isinstance(others, Mapping):
            yield from _wrong(each, dict(others), where)
        elif fields and not schema.get(_OPEN):
            close = get_close_matches(name, fields, n=1)
            meant = f"; did you mean {close[0]}?" if close else ""
            yield FieldError(where, f"there is no such field{meant}", name, "NotSupported")
    for name in schema.get("required", ()):
        if value.get(name) is None and "default" not in fields.get(name, {}):
            yield FieldError(f"{path}.{name}".removeprefix("."), "it is missing", reason="Required")
