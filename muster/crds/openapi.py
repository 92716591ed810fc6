"""The API server's own schemas of Job templates, pod templates and their parts, adapted for CRDs.

core.json contains the part of `GET /openapi/v3/apis/batch/v1` that Muster needs, one definition per line, with
references; `python -m musterctl.generate --openapi-from …` updates it. A test compares core.json with the API server of
the tests.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from muster.crds.schema import INT_OR_STRING, QUANTITY, Schema, with_parts

CORE_FILE = Path(__file__).with_name("core.json")
OPENAPI_PATH = "/openapi/v3/apis/batch/v1"
_CORE = (
    "PodTemplateSpec",
    "PersistentVolumeClaimSpec",
    "EnvVar",
    "ResourceRequirements",
    "Volume",
    "VolumeMount",
    "Affinity",
    "Toleration",
    "PodSchedulingGate",
    "SecurityContext",
    "PodSecurityContext",
)
ROOTS = {"JobTemplateSpec": "io.k8s.api.batch.v1.JobTemplateSpec"} | {
    name: f"io.k8s.api.core.v1.{name}" for name in _CORE
}
"""Maps a schema name in the wire types (`x-muster-schema`) to the schema's name in the API server."""
PLAIN: dict[str, Schema] = {"IntOrString": INT_OR_STRING}
"""Maps the name of a schema that the API server does not define to the schema."""
_STRINGS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
_REPLACED: dict[str, Schema] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": QUANTITY,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": INT_OR_STRING,
    # Only these parts of a template's metadata have an effect; other parts belong to existing objects.
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {
        "type": "object",
        "properties": {
            "annotations": _STRINGS,
            "finalizers": {"type": "array", "items": {"type": "string"}},
            "labels": _STRINGS,
            "name": {"type": "string"},
            "namespace": {"type": "string"},
        },
    },
}
_KEPT = frozenset({
    "type", "format", "enum", "default", "required", "items", "properties", "additionalProperties",
    "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type",
})  # fmt: skip
_ZEROS: dict[str, Any] = {"string": "", "integer": 0, "boolean": False}


def reduced(document: Mapping[str, Any]) -> dict[str, Any]:
    """Extract the part that core.json contains from an OpenAPI v3 document of batch/v1 (including core/v1)."""
    source = document["components"]["schemas"]
    found: dict[str, Schema] = {}
    waiting = list(ROOTS.values())
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = _simplified(source[name])
            waiting += _references(found[name])
    return {"kubernetes": document["info"]["version"], "schemas": dict(sorted(found.items()))}


def core_text(core: Mapping[str, Any]) -> str:
    """Return core.json as text: one definition per line, so that a new Kubernetes version gives a readable diff."""
    lines = [f"  {json.dumps(name)}: {json.dumps(schema, sort_keys=True)}" for name, schema in core["schemas"].items()]
    body = ",\n".join(lines)
    return f'{{"kubernetes": {json.dumps(core["kubernetes"])}, "schemas": {{\n{body}\n}}}}\n'


def embedded_schemas(core: Mapping[str, Any]) -> dict[str, Schema]:
    """Return the complete structural schema of each root, keyed by the name that wire types use."""
    return PLAIN | {short: _inlined({"$ref": name}, core["schemas"]) for short, name in ROOTS.items()}


def committed_core() -> dict[str, Any]:
    """Return the schemas in core.json, which is committed so that `make generate` needs no cluster."""
    core: dict[str, Any] = json.loads(CORE_FILE.read_text(encoding="utf-8"))
    return core


def _reference(node: Mapping[str, Any]) -> str | None:
    """Return the definition's name to which a schema refers by `$ref`, or by a single `allOf` entry with a default."""
    target = node.get("$ref") or next((part["$ref"] for part in node.get("allOf", []) if "$ref" in part), None)
    return str(target).removeprefix("#/components/schemas/") if target else None


def _simplified(node: Mapping[str, Any]) -> Schema:
    name = _reference(node)
    if name:
        return _REPLACED.get(name) or {"$ref": name}
    result = {key: value for key, value in node.items() if key in _KEPT}
    # The API server's OpenAPI gives every Go zero value as a default; such a default would break enums.
    if not result.get("default", True):
        del result["default"]
    return with_parts(result, _simplified)


def _references(node: Mapping[str, Any]) -> Iterator[str]:
    if "$ref" in node:
        yield node["$ref"]
    for child in (*node.get("properties", {}).values(), node.get("items"), node.get("additionalProperties")):
        if isinstance(child, dict):
            yield from _references(child)


def _inlined(node: Schema, schemas: Mapping[str, Schema]) -> Schema:
    if "$ref" in node:
        return _inlined(schemas[node["$ref"]], schemas)
    result = with_parts(node, lambda part: _inlined(part, schemas))
    for key in result.get("x-kubernetes-list-map-keys", []):
        # A key of a list map must be required or have a default; core/v1 leaves that to its Go types.
        item, member = result["items"], result["items"]["properties"][key]
        if key not in item.get("required", []) and "default" not in member:
            item["properties"][key] = {**member, "default": _ZEROS[member["type"]]}
    return result
