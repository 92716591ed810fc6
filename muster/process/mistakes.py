"""Every mistake in a document that should have the shape of a type: a decoder would stop at the first one. Pure."""

import operator
from collections.abc import Iterator
from typing import Any, Final

from msgspec import inspect

from muster.api.fields import FieldError

_SHAPES: Final[dict[type[inspect.Type], tuple[Any, str]]] = {
    inspect.StrType: (str, "text (in quotes, where YAML would take it for something else)"),
    inspect.IntType: (int, "a whole number"),
    inspect.FloatType: (int | float, "a number"),
    inspect.BoolType: (bool, "true or false"),
    inspect.ListType: (list, "a list"),
    inspect.VarTupleType: (list, "a list"),
    inspect.DictType: (dict, "a mapping"),
    inspect.StructType: (dict, "a mapping"),
}
_NUMBERS: Final = ("a whole number", "a number")


def mistakes(document: Any, shape: type, path: str) -> list[FieldError]:
    """What keeps `document` from being a `shape`, a Struct; a field that the type does not have is a mistake, too."""
    return list(_mistakes(document, inspect.type_info(shape), path))


def _mistakes(value: Any, shape: inspect.Type, path: str) -> Iterator[FieldError]:
    wanted, word = _SHAPES.get(type(shape), (object, ""))  # a shape that is none of these may be anything
    match shape:
        case inspect.UnionType():
            if value is not None:
                yield from _mistakes(value, next(each for each in shape.types if type(each) in _SHAPES), path)
        case _ if not isinstance(value, wanted) or (isinstance(value, bool) and word in _NUMBERS):
            yield FieldError(path, f"should be {word}", value)
        case inspect.LiteralType() | inspect.IntType() | inspect.FloatType():
            yield from _out_of_range(value, shape, path)
        case inspect.StructType():
            yield from _of_fields(value, shape, path)
        case inspect.DictType():
            for key, member in value.items():
                yield from _mistakes(key, shape.key_type, path)
                yield from _mistakes(member, shape.value_type, f"{path}[{key}]")
        case inspect.ListType() | inspect.VarTupleType():
            for index, member in enumerate(value):
                yield from _mistakes(member, shape.item_type, f"{path}[{index}]")


def _out_of_range(
    value: Any, shape: inspect.LiteralType | inspect.IntType | inspect.FloatType, path: str
) -> Iterator[FieldError]:
    if isinstance(shape, inspect.LiteralType):
        if value not in shape.values:
            message = f"should be one of {', '.join(map(str, shape.values))}"
            yield FieldError(path, message, value, reason="NotSupported")
        return
    limits = {
        "more than": (shape.gt, operator.gt),
        "at least": (shape.ge, operator.ge),
        "less than": (shape.lt, operator.lt),
        "at most": (shape.le, operator.le),
    }
    asked = {words: (limit, holds) for words, (limit, holds) in limits.items() if limit is not None}
    if not all(holds(value, limit) for limit, holds in asked.values()):
        told = " and ".join(f"{words} {limit:g}" for words, (limit, _) in asked.items())
        yield FieldError(path, f"should be {told}", value)


def _of_fields(value: dict[Any, Any], shape: inspect.StructType, path: str) -> Iterator[FieldError]:
    fields = {field.encode_name: field for field in shape.fields}
    for name, member in value.items():
        if name in fields:
            yield from _mistakes(member, fields[name].type, _below(path, name))
        else:
            message = f"there is no such field; there are {', '.join(fields)}"
            yield FieldError(_below(path, name), message, name, reason="NotSupported")
    for name, field in fields.items():
        if field.required and name not in value:
            yield FieldError(_below(path, name), "it is missing", reason="Required")


def _below(path: str, name: Any) -> str:
    """The path of a field; a name with a dot in it is no two."""
    if "." in str(name):
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else str(name)
