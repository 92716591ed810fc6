"""Kubernetes' own functions in expressions: quantities and semantic versions.

Both kinds of value are maps of one text, which the expression language compares and passes on as it does any other
value: equal values have equal texts. The functions are those of the API server's quantity and semver libraries, as far
as selectors use them; an expression with another one does not compile, and is left to kube-scheduler.
"""

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

from cel_expr_python import cel

QUANTITY, SEMVER = "quantity", "semver"
Value = dict[str, str]
_MAX_CHARS = 256
_QUANTITY = re.compile(
    r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE]([+-]?[0-9]{1,3})|([KMGTPE]i|[numkMGTPE]?))", re.ASCII
)
_SCALE = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_NUMBER = r"(?:0|[1-9][0-9]*)"
_SEMVER = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})"
    rf"(?:-((?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?",
    re.ASCII,
)
Release = tuple[int, int, int]


def quantity_value(text: str | float) -> Value:
    """A quantity as a value of the language; ValueError if it is none."""
    return {QUANTITY: str(_quantity(str(text)))}


def semver_value(text: str) -> Value:
    """A semantic version as a value of the language; ValueError if it is none. What it was built from never counts."""
    _semver(text)
    return {SEMVER: text.partition("+")[0]}


def declarations() -> list[cel.FunctionDecl]:
    """The functions with their overloads, for an environment of the language."""
    of_text: list[tuple[str, Any, Callable[..., Any]]] = [
        ("quantity", _VALUE, quantity_value),
        ("isQuantity", cel.Type.BOOL, lambda text: _is(_quantity, text)),
        ("semver", _VALUE, semver_value),
        ("isSemver", cel.Type.BOOL, lambda text: _is(_semver, text)),
    ]
    of_two: list[tuple[str, Any, Callable[..., Any]]] = [
        ("compareTo", cel.Type.INT, _compare),
        ("isGreaterThan", cel.Type.BOOL, lambda left, right: _compare(left, right) > 0),
        ("isLessThan", cel.Type.BOOL, lambda left, right: _compare(left, right) < 0),
    ]
    of_one: list[tuple[str, Any, Callable[..., Any]]] = [
        ("sign", cel.Type.INT, lambda value: (amount := _amount(value)) and (1 if amount > 0 else -1)),
        ("isInteger", cel.Type.BOOL, lambda value: _amount(value).denominator == 1),
        ("asInteger", cel.Type.INT, lambda value: _integer(_amount(value))),
        ("asApproximateFloat", cel.Type.DOUBLE, lambda value: float(_amount(value))),
        ("major", cel.Type.INT, lambda value: _release(value)[0]),
        ("minor", cel.Type.INT, lambda value: _release(value)[1]),
        ("patch", cel.Type.INT, lambda value: _release(value)[2]),
    ]
    return [
        *(_declared(name, result, [cel.Type.STRING], fn, member=False) for name, result, fn in of_text),
        *(_declared(name, result, [_VALUE, _VALUE], fn, member=True) for name, result, fn in of_two),
        *(_declared(name, result, [_VALUE], fn, member=True) for name, result, fn in of_one),
    ]


_VALUE = cel.Type.Map(cel.Type.STRING, cel.Type.STRING)


def _declared(name: str, result: Any, given: list[Any], fn: Callable[..., Any], *, member: bool) -> cel.FunctionDecl:
    overload = cel.Overload(f"muster_{name}", return_type=result, parameters=given, is_member=member, impl=fn)
    return cel.FunctionDecl(name, [overload])


def _is(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


def _compare(left: Value, right: Value) -> int:
    if QUANTITY in left and QUANTITY in right:
        a, b = _amount(left), _amount(right)
        return (a > b) - (a < b)
    if SEMVER in left and SEMVER in right:
        newer, older = _precedence(left[SEMVER]), _precedence(right[SEMVER])
        return (newer > older) - (newer < older)
    raise ValueError("only two quantities, or two versions, can be compared")


def _amount(value: Value) -> Fraction:
    if QUANTITY not in value:
        raise ValueError("this is no quantity")
    return Fraction(value[QUANTITY])


def _integer(amount: Fraction) -> int:
    if amount.denominator != 1:
        raise ValueError("the quantity is no whole number")
    return amount.numerator


def _release(value: Value) -> Release:
    if SEMVER not in value:
        raise ValueError("this is no version")
    return _semver(value[SEMVER])[0]


@lru_cache(maxsize=4096)
def _quantity(text: str) -> Fraction:
    match = _QUANTITY.fullmatch(text) if len(text) <= _MAX_CHARS else None
    if match is None:
        raise ValueError("this is no quantity")
    sign, number, exponent, suffix = match.groups()
    if suffix in _BINARY:
        scale = Fraction(2 ** _BINARY[suffix])
    else:
        tens = int(exponent) if exponent else _SCALE[suffix or ""]
        scale = Fraction(10**tens) if tens >= 0 else Fraction(1, 10**-tens)
    return Fraction(f"{sign}{number}") * scale


@lru_cache(maxsize=4096)
def _semver(text: str) -> tuple[Release, tuple[str, ...]]:
    """Numbers and pre-release parts (semver.org 2.0)."""
    match = _SEMVER.fullmatch(text) if len(text) <= _MAX_CHARS else None
    if match is None:
        raise ValueError("this is no semantic version")
    major, minor, patch, pre, _ = match.groups()
    return (int(major), int(minor), int(patch)), tuple(pre.split(".")) if pre else ()


def _precedence(text: str) -> tuple[Release, bool, tuple[tuple[bool, int, str], ...]]:
    """Sorts as versions do: a pre-release comes before its release, numbers before words."""
    release, pre = _semver(text)
    parts = tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in pre)
    return release, not pre, parts
