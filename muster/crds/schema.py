"""Conversion of msgspec's JSON schema into the structural schema of a CustomResourceDefinition.

A structural schema has no `$ref` and no `null` (an optional field is left out), every node has a type, and unknown
fields are dropped unless the schema preserves them. Defaults that equal the type's zero value are left out, so that
objects stay as their authors wrote them. If the API server should set a zero value as a default, the type's overlay
contains this default.
"""

import ast
import inspect
from collections.abc import Callable, Mapping
from textwrap import dedent
from typing import Any

import msgspec

Schema = dict[str, Any]

_INT32_MAX = 2**31 - 1
INT_OR_STRING: Schema = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
_NUMBER = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)"
QUANTITY: Schema = {**INT_OR_STRING, "pattern": rf"^[-+]?{_NUMBER}([KMGTPE]i|[numkMGTPE]|[eE][-+]?{_NUMBER})?$"}
"""A resource quantity. As everywhere in CRDs, a fraction must be written as a string (`"0.5"`) or in thousandths
(`500m`)."""


def definitions_of(
    types: tuple[type[msgspec.Struct], ...], overlays: Mapping[str, Schema], embedded: Mapping[str, Schema]
) -> dict[str, Schema]:
    """Return the structural schema of each of the types, keyed by class name.

    `overlays` are merged into the schema of the Struct with their name; a ValueError lists overlays without a Struct.
    `embedded` contains the schemas that fields name by `x-muster-schema`.
    """
    _, components = msgspec.json.schema_components(types, ref_template="{name}")
    if unknown := overlays.keys() - components.keys():
        raise ValueError(f"there is no Struct for the overlays {', '.join(sorted(unknown))}")
    for struct in _structs(types):
        for wire_name, text in field_descriptions(struct).items():
            components[struct.__name__]["properties"][wire_name]["description"] = text
    converter = _Converter(components, overlays, embedded)
    return {struct.__name__: converter.named(struct.__name__) for struct in types}


def field_descriptions(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return the docstrings of the fields in a class body, keyed by wire name."""
    wire_names = dict(zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True))
    body = ast.parse(dedent(inspect.getsource(struct))).body[0]
    if not isinstance(body, ast.ClassDef):  # pragma: no cover - inspect gives the class statement
        return {}
    texts: dict[str, str] = {}
    for statement, following in zip(body.body, body.body[1:], strict=False):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[wire_names[name]] = " ".join(text.split())
    return texts


def with_parts(schema: Mapping[str, Any], change: Callable[[Any], Schema]) -> Schema:
    """Return the schema after changing the schemas of its fields, elements and values."""
    result = dict(schema)
    if "properties" in result:
        result["properties"] = {name: change(part) for name, part in result["properties"].items()}
        if not result["properties"]:  # the API server stores no empty fields
            del result["properties"]
    for key in ("items", "additionalProperties"):
        if isinstance(result.get(key), dict):
            result[key] = change(result[key])
    return result


def without_defaults_in_lists(schema: Schema, *, inside: bool = False, atomic: bool = False) -> Schema:
    """Return the schema without the defaults of fields in lists; list keys keep their defaults outside `atomic` lists.

    The API server compares an atomic list as a whole. An atomic list with defaults would differ from the manifest, so
    server-side apply by a second manager would conflict. `kubectl apply` compares all lists as a whole, and would never
    report "unchanged". Programs that read the objects apply these defaults.
    """
    whole = "items" in schema and schema.get("x-kubernetes-list-type", "atomic") == "atomic"
    deeper = {"inside": inside or "items" in schema, "atomic": atomic or whole}
    result = with_parts(schema, lambda part: without_defaults_in_lists(part, **deeper))
    if inside:
        result.pop("default", None)
    keys = {*result.get("x-kubernetes-list-map-keys", ())} - {*result.get("items", {}).get("required", ())}
    if keys and atomic:
        del result["x-kubernetes-list-map-keys"], result["x-kubernetes-list-type"]
    for key in keys & result.get("items", {}).get("properties", {}).keys() if not atomic else ():
        result["items"]["properties"][key] = schema["items"]["properties"][key]
    return result


def merged(schema: Schema, overlay: Mapping[str, Any]) -> Schema:
    """Return the schema with the overlay merged into it; nested objects are merged, other values are replaced."""
    result = dict(schema)
    for key, value in overlay.items():
        known = result.get(key)
        result[key] = (
            merged(known, value) if isinstance(known, dict) and isinstance(value, Mapping) and value else value
        )
    return result


def _structs(types: tuple[type[msgspec.Struct], ...]) -> list[type[msgspec.Struct]]:
    """Return these types and all Structs that they contain."""
    found: dict[type[msgspec.Struct], None] = {}
    waiting: list[msgspec.inspect.Type] = list(msgspec.inspect.multi_type_info(types))
    while waiting:
        node = waiting.pop()
        match node:
            case msgspec.inspect.StructType() if node.cls not in found:
                found[node.cls] = None
                waiting += [member.type for member in node.fields]
            case msgspec.inspect.ListType():
                waiting.append(node.item_type)
            case msgspec.inspect.DictType():
                waiting.append(node.value_type)
            case msgspec.inspect.UnionType():
                waiting += node.types
            case msgspec.inspect.Metadata():
                waiting.append(node.type)
    return list(found)


class _Converter:
    """Converter of one set of definitions; its fields are the arguments that every step of the recursion needs."""

    def __init__(
        self, components: Mapping[str, Schema], overlays: Mapping[str, Schema], embedded: Mapping[str, Schema]
    ) -> None:
        self._components = components
        self._overlays = overlays
        self._embedded = embedded

    def named(self, name: str) -> Schema:
        """Return the definition with this name."""
        return merged(self._converted(self._components[name]), self._overlays.get(name, {}))

    def _converted(self, node: Schema) -> Schema:
        own = {key: value for key, value in node.items() if key in {"description", "default"}}
        if own.get("default") in (None, "", 0, [], {}, False):
            own.pop("default", None)
        if "description" in own:
            own["description"] = " ".join(own["description"].split())
        if "$ref" in node:
            return {**self.named(node["$ref"]), **own}
        if "x-muster-schema" in node:
            return {**self._embedded[node["x-muster-schema"]], **own}
        if "anyOf" in node:
            return {**self._alternative(node["anyOf"]), **own}
        return {**self._plain(node), **own}

    def _alternative(self, alternatives: list[Schema]) -> Schema:
        present = [alternative for alternative in alternatives if alternative.get("type") != "null"]
        if len(present) == 1:
            return self._converted(present[0])
        if {"string", "integer"} <= {alternative.get("type") for alternative in present}:
            return dict(QUANTITY)
        raise ValueError(
            f"a CRD cannot express this union: {present}. Give the field one type, or mark it x-muster-schema."
        )

    def _plain(self, node: Schema) -> Schema:
        result = {key: value for key, value in node.items() if key not in {"title", "description", "default"}}
        if not result.get("required", True):
            del result["required"]
        if "enum" in result:
            result["type"] = "string"
        if result.get("type") == "integer":
            result["format"] = "int64" if result.get("maximum", 0) > _INT32_MAX else "int32"
        if (
            result.get("type") == "object"
            and "properties" not in result
            and not isinstance(result.get("additionalProperties"), dict)
        ):
            result["x-kubernetes-preserve-unknown-fields"] = True
        return with_parts(result, self._converted)
