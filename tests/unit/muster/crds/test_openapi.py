"""The API server's OpenAPI becomes schemas that fit into a CRD."""

from typing import Any

from muster.crds.openapi import ROOTS, committed_core, core_text, embedded_schemas, reduced
from muster.crds.schema import INT_OR_STRING, QUANTITY, Schema

CORE = "io.k8s.api.core.v1"


def reference(name: str, **more: Any) -> Schema:
    """A reference as the API server writes it: wrapped, so that it can carry a default."""
    return {"allOf": [{"$ref": f"#/components/schemas/{name}"}], **more}


def document() -> dict[str, Any]:
    """A small OpenAPI document in the API server's style."""
    target = reference("io.k8s.apimachinery.pkg.util.intstr.IntOrString")
    number = {"type": "integer", "format": "int32", "default": 0}
    protocol = {"type": "string", "default": "TCP"}
    properties = {"number": number, "protocol": protocol, "host": {"type": "string"}, "target": target}
    port = {"type": "object", "description": "A port.", "required": ["number"], "properties": properties}
    template = {
        "type": "object",
        "properties": {
            "metadata": reference("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", default={}),
            "memory": reference("io.k8s.apimachinery.pkg.api.resource.Quantity"),
            "description": {"type": "string", "description": "A field with an awkward name."},
            "mode": {"type": "string", "enum": ["A", "B"], "default": ""},
            "ports": {
                "type": "array",
                "items": reference(f"{CORE}.Port", default={}),
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["number", "protocol", "host"],
                "x-kubernetes-patch-strategy": "merge",
            },
        },
    }
    schemas = {
        **{name: {"type": "object"} for name in ROOTS.values()},
        ROOTS["PodTemplateSpec"]: template,
        f"{CORE}.Port": port,
        f"{CORE}.Unused": {"type": "object"},
    }
    return {"info": {"version": "1.37"}, "components": {"schemas": schemas}}


def template() -> Schema:
    """The embedded schema of the small document's template."""
    return embedded_schemas(reduced(document()))["PodTemplateSpec"]


def test_only_what_the_roots_need_is_kept() -> None:
    """core.json holds the definitions that templates and claims are made of, sorted."""
    core = reduced(document())
    assert list(core["schemas"]) == sorted([*ROOTS.values(), f"{CORE}.Port"])
    assert core["kubernetes"] == "1.37"


def test_text_and_zero_defaults_are_dropped_and_real_defaults_kept() -> None:
    """A `""` default would break an enum; `protocol: TCP` means something. A field may be called `description`."""
    properties = template()["properties"]
    assert properties["mode"] == {"type": "string", "enum": ["A", "B"]}
    assert properties["description"] == {"type": "string"}
    port = properties["ports"]["items"]
    assert port["properties"]["protocol"]["default"] == "TCP"
    assert "default" not in port["properties"]["number"]
    assert "x-kubernetes-patch-strategy" not in properties["ports"]


def test_keys_of_list_maps_get_a_default_where_they_need_one() -> None:
    """The API server refuses a list map whose key is neither required nor defaulted."""
    assert template()["properties"]["ports"]["items"]["properties"]["host"]["default"] == ""


def test_quantities_and_metadata_are_replaced() -> None:
    """Quantities are checked by pattern, and a template has no resourceVersion."""
    properties = template()["properties"]
    assert properties["memory"] == QUANTITY
    assert properties["ports"]["items"]["properties"]["target"] == INT_OR_STRING
    assert set(properties["metadata"]["properties"]) == {"annotations", "finalizers", "labels", "name", "namespace"}


def test_core_file_is_in_its_own_form() -> None:
    """Writing what was read gives the same text, so a renewal changes only what changed in Kubernetes."""
    text = core_text(committed_core())
    assert text.count("\n") == len(committed_core()["schemas"]) + 2
    assert "resourceVersion" not in text
