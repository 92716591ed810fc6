"""Wire types become structural schemas: no references, no nulls, a type everywhere."""

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, field

from muster.api.base import Wire
from muster.crds.files import DEFINITIONS, kind_schemas
from muster.crds.openapi import PLAIN, ROOTS, committed_core, embedded_schemas
from muster.crds.schema import QUANTITY, Schema, definitions_of, field_descriptions, merged


class Wheel(Wire):
    """A wheel.

    It turns.
    """

    size: Annotated[int, Meta(ge=1)]
    """Its size
    in inches."""


class Car(Wire):
    """A car."""

    colour: Literal["red", "blue"] | None = None
    """Its colour."""
    wheel_list: list[Wheel] = field(default_factory=list)
    spare: Wheel | None = None
    """In the boot."""
    slots: int = 4
    doors: int = 0
    mileage: Annotated[int, Meta(le=10**15)] = 0
    open: bool = False
    load: dict[str, str | int | float] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    driver: Annotated[dict[str, Any], Meta(extra_json_schema={"x-muster-schema": "Driver"})] = field(
        default_factory=dict
    )


def car(overlays: dict[str, Schema] | None = None) -> dict[str, Schema]:
    """The properties of a car."""
    properties: dict[str, Schema] = definitions_of((Car,), overlays or {}, {"Driver": {"type": "string"}})["Car"][
        "properties"
    ]
    return properties


def test_references_are_inlined() -> None:
    """A nested type stands where it is used, with the field's text before the type's own."""
    wheel = {"type": "integer", "minimum": 1, "format": "int32", "description": "Its size in inches."}
    assert car()["spare"] == {
        "type": "object",
        "properties": {"size": wheel},
        "required": ["size"],
        "description": "In the boot.",
    }
    assert car()["wheelList"]["items"]["description"] == "A wheel. It turns."


def test_a_limit_beyond_32_bits_takes_64() -> None:
    """The API server refuses a schema whose limit does not fit its format."""
    assert (car()["mileage"]["format"], car()["doors"]["format"]) == ("int64", "int32")


def test_optional_is_left_out_and_not_null() -> None:
    """A union with None is the other type; enums have a type; None is no default."""
    assert car()["colour"] == {"enum": ["blue", "red"], "type": "string", "description": "Its colour."}


def test_only_defaults_that_say_something_are_kept() -> None:
    """Zeros are Go's defaults and would only clutter objects."""
    properties = car()
    assert properties["slots"]["default"] == 4
    assert not [name for name in ("doors", "open", "load", "wheelList") if "default" in properties[name]]


def test_quantities_maps_and_embedded_schemas() -> None:
    """A quantity is int-or-string, an untyped map keeps unknown fields, a marked field gets the schema it names."""
    properties = car()
    assert properties["load"]["additionalProperties"] == QUANTITY
    assert properties["notes"] == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert properties["driver"] == {"type": "string"}


def test_overlays_reach_a_type_wherever_it_is_used() -> None:
    """An overlay adds to a type in all its places."""
    properties = car({"Wheel": {"properties": {"size": {"default": 17}}, "required": []}})
    for wheel in (properties["spare"], properties["wheelList"]["items"]):
        assert (wheel["properties"]["size"]["default"], wheel["properties"]["size"]["minimum"]) == (17, 1)
        assert wheel["required"] == []


def test_an_overlay_of_no_struct_is_an_error() -> None:
    """A name in overlays.yaml that no Struct has would be without effect."""
    with pytest.raises(ValueError, match="no Struct for the overlays Wheels"):
        car({"Wheels": {"required": []}})


def test_a_union_that_a_crd_cannot_express_is_an_error() -> None:
    """The generator does not guess."""

    class Odd(Wire):
        """Odd."""

        either: int | list[str]

    with pytest.raises(ValueError, match="cannot express this union"):
        definitions_of((Odd,), {}, {})


def test_field_descriptions_use_wire_names() -> None:
    """The string after a field describes it, under its name on the wire."""
    assert field_descriptions(Car) == {"colour": "Its colour.", "spare": "In the boot."}


def test_merged_leaves_its_arguments_as_they_are() -> None:
    """An overlay is used for many types."""
    schema = {"a": {"b": 1}}
    assert merged(schema, {"a": {"c": 2}, "d": []}) == {"a": {"b": 1, "c": 2}, "d": []}
    assert schema == {"a": {"b": 1}}


def nodes(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """Every schema below this one, with its path."""
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from nodes(schema[key], f"{path}[]")


@cache
def embedded() -> dict[str, Schema]:
    """Inline the API server's own schemas once for all kinds."""
    return kind_schemas(embedded_schemas(committed_core()))


@cache
def stubbed() -> dict[str, Schema]:
    """Make the schemas of all kinds without what templates have in them."""
    return kind_schemas({name: {"type": "object"} for name in (*ROOTS, *PLAIN)})


@pytest.mark.parametrize("kind", [definition.resource.kind for definition in DEFINITIONS])
def test_generated_schemas_are_structural(kind: str) -> None:
    """What the API server would refuse as non-structural occurs nowhere."""
    for path, node in nodes(embedded()[kind], kind):
        assert node.keys().isdisjoint({"$ref", "allOf", "oneOf", "title", "nullable", "x-muster-schema"}), path
        assert "type" in node or node.get("x-kubernetes-int-or-string"), path
        assert node.get("default", "") is not None, path
        assert "additionalProperties" not in node or "properties" not in node, path


@pytest.mark.parametrize("kind", [definition.resource.kind for definition in DEFINITIONS])
def test_every_field_of_ours_has_a_description(kind: str) -> None:
    """`kubectl explain` always says something; templates are left to Kubernetes' own documentation."""
    missing = [
        f"{path}.{name}"
        for path, node in nodes(stubbed()[kind], kind)
        for name, child in node.get("properties", {}).items()
        if "description" not in child and name != "metadata"
    ]
    assert missing == []
