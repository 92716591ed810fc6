"""Environment of CEL expressions: the interpreter with Kubernetes' functions for quantities and semantic versions.

The interpreter represents a quantity or version as a map with a single string. Equal values have equal maps. The module
has only the functions of the API server that selectors of devices use. An expression with another function does not
compile.
"""

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

from muster.resources.quantity import exact

QUANTITY, SEMVER = "quantity", "semver"
Value = dict[str, str]
_MAX_CHARS = 256
_NUMBER = r"(?:0|[1-9][0-9]*)"
_SEMVER = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})"
    rf"(?:-((?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?",
    re.ASCII,
)
Release = tuple[int, int, int]


def quantity_value(text: str | float) -> Value:
    """Return a quantity as a CEL value. Raises ValueError if the text is not a quantity."""
    return {QUANTITY: str(exact(str(text)))}


def semver_value(text: str) -> Value:
    """Return a semantic version as a CEL value, without build metadata. Raises ValueError for another text."""
    parse_semver(text)
    return {SEMVER: text.partition("+")[0]}


def readable(read: Callable[[str], object], text: str) -> bool:
    """Return True if the parsing function `read` accepts the text."""
    try:
        read(text)
    except ValueError:
        return False
    return True


def compare(left: Value, right: Value) -> int:
    """Return 1 if the first is larger or newer, 0 if both are equal, else -1. Raises ValueError for mixed types."""
    if QUANTITY in left and QUANTITY in right:
        a, b = amount_of(left), amount_of(right)
        return (a > b) - (a < b)
    if SEMVER in left and SEMVER in right:
        newer, older = _precedence(left[SEMVER]), _precedence(right[SEMVER])
        return (newer > older) - (newer < older)
    raise ValueError("only two quantities, or two versions, can be compared")


def amount_of(value: Value) -> Fraction:
    """Return the number that a quantity represents. Raises ValueError if the value is not a quantity."""
    if QUANTITY not in value:
        raise ValueError("the value is not a quantity")
    return Fraction(value[QUANTITY])


def integer(amount: Fraction) -> int:
    """Return the number as an integer. Raises ValueError if the number is not whole."""
    if amount.denominator != 1:
        raise ValueError("the quantity is not a whole number")
    return amount.numerator


def release_of(value: Value) -> Release:
    """Return the major, minor and patch numbers of a version. Raises ValueError if the value is not a version."""
    if SEMVER not in value:
        raise ValueError("the value is not a version")
    return parse_semver(value[SEMVER])[0]


@lru_cache(maxsize=4096)
def parse_semver(text: str) -> tuple[Release, tuple[str, ...]]:
    """Return the three numbers and pre-release of a version (semver.org 2.0). Raises ValueError for another text."""
    match = _SEMVER.fullmatch(text) if len(text) <= _MAX_CHARS else None
    if match is None:
        raise ValueError("the text is not a semantic version")
    major, minor, patch, pre, _ = match.groups()
    return (int(major), int(minor), int(patch)), tuple(pre.split(".")) if pre else ()


def _precedence(text: str) -> tuple[Release, bool, tuple[tuple[bool, int, str], ...]]:
    """Return a sort key for versions: a pre-release comes before its release, and numbers come before words."""
    release, pre = parse_semver(text)
    parts = tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in pre)
    return release, not pre, parts


@lru_cache(maxsize=1)
def environment() -> Any:
    """Create the environment of expressions once: a device, and functions for quantities and versions."""
    from cel_expr_python import cel  # noqa: PLC0415 - 10 MiB that most clusters never need
    from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings  # noqa: PLC0415 - as above

    kind = cel.Type
    value = kind.Map(kind.STRING, kind.STRING)
    of_text: list[tuple[str, Any, Callable[..., Any]]] = [
        ("quantity", value, quantity_value),
        ("isQuantity", kind.BOOL, lambda text: readable(quantity_value, text)),
        ("semver", value, semver_value),
        ("isSemver", kind.BOOL, lambda text: readable(parse_semver, text)),
    ]
    of_two: list[tuple[str, Any, Callable[..., Any]]] = [
        ("compareTo", kind.INT, compare),
        ("isGreaterThan", kind.BOOL, lambda left, right: compare(left, right) > 0),
        ("isLessThan", kind.BOOL, lambda left, right: compare(left, right) < 0),
    ]
    of_one: list[tuple[str, Any, Callable[..., Any]]] = [
        ("sign", kind.INT, lambda value: ((amount := amount_of(value)) > 0) - (amount < 0)),
        ("isInteger", kind.BOOL, lambda value: amount_of(value).denominator == 1),
        ("asInteger", kind.INT, lambda value: integer(amount_of(value))),
        ("asApproximateFloat", kind.DOUBLE, lambda value: float(amount_of(value))),
        ("major", kind.INT, lambda value: release_of(value)[0]),
        ("minor", kind.INT, lambda value: release_of(value)[1]),
        ("patch", kind.INT, lambda value: release_of(value)[2]),
    ]

    def declared(functions: list[tuple[str, Any, Callable[..., Any]]], given: list[Any], *, member: bool) -> list[Any]:
        return [
            cel.FunctionDecl(
                name,
                [cel.Overload(f"muster_{name}", return_type=result, parameters=given, is_member=member, impl=function)],
            )
            for name, result, function in functions
        ]

    return cel.NewEnv(
        variables={"device": kind.Map(kind.STRING, kind.DYN)},
        extensions=[ext_bindings.ExtBindings(), ext_optional.ExtOptional(), ext_strings.ExtStrings()],
        functions=[
            *declared(of_text, [kind.STRING], member=False),
            *declared(of_two, [value, value], member=True),
            *declared(of_one, [value], member=True),
        ],
    )
