"""The C++ interpreter of the Common Expression Language: 10 MiB, which are imported with the first expression."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

from extender.planner.dynamic.functions import (
    amount_of,
    compare,
    integer,
    parse_semver,
    quantity_value,
    readable,
    release_of,
    semver_value,
)

_VALUE = cel.Type.Map(cel.Type.STRING, cel.Type.STRING)


@lru_cache(maxsize=1)
def environment() -> cel.Env:
    """Make the environment of expressions, once: a device, and the functions on quantities and versions."""
    return cel.NewEnv(
        variables={"device": cel.Type.Map(cel.Type.STRING, cel.Type.DYN)},
        extensions=[ext_bindings.ExtBindings(), ext_optional.ExtOptional(), ext_strings.ExtStrings()],
        functions=_declarations(),
    )


def _declarations() -> list[cel.FunctionDecl]:
    of_text: list[tuple[str, Any, Callable[..., Any]]] = [
        ("quantity", _VALUE, quantity_value),
        ("isQuantity", cel.Type.BOOL, lambda text: readable(quantity_value, text)),
        ("semver", _VALUE, semver_value),
        ("isSemver", cel.Type.BOOL, lambda text: readable(parse_semver, text)),
    ]
    of_two: list[tuple[str, Any, Callable[..., Any]]] = [
        ("compareTo", cel.Type.INT, compare),
        ("isGreaterThan", cel.Type.BOOL, lambda left, right: compare(left, right) > 0),
        ("isLessThan", cel.Type.BOOL, lambda left, right: compare(left, right) < 0),
    ]
    of_one: list[tuple[str, Any, Callable[..., Any]]] = [
        ("sign", cel.Type.INT, lambda value: (amount := amount_of(value)) and (1 if amount > 0 else -1)),
        ("isInteger", cel.Type.BOOL, lambda value: amount_of(value).denominator == 1),
        ("asInteger", cel.Type.INT, lambda value: integer(amount_of(value))),
        ("asApproximateFloat", cel.Type.DOUBLE, lambda value: float(amount_of(value))),
        ("major", cel.Type.INT, lambda value: release_of(value)[0]),
        ("minor", cel.Type.INT, lambda value: release_of(value)[1]),
        ("patch", cel.Type.INT, lambda value: release_of(value)[2]),
    ]
    return [
        *(_declared(name, result, [cel.Type.STRING], fn, member=False) for name, result, fn in of_text),
        *(_declared(name, result, [_VALUE, _VALUE], fn, member=True) for name, result, fn in of_two),
        *(_declared(name, result, [_VALUE], fn, member=True) for name, result, fn in of_one),
    ]


def _declared(name: str, result: Any, given: list[Any], fn: Callable[..., Any], *, member: bool) -> cel.FunctionDecl:
    overload = cel.Overload(f"muster_{name}", return_type=result, parameters=given, is_member=member, impl=fn)
    return cel.FunctionDecl(name, [overload])
