"""Kubernetes' own functions in expressions: quantities and semantic versions.

Both kinds of value are maps of one text, which the expression language compares and passes on as it does any other
value: equal values have equal texts. The functions are those of the API server's quantity and semver libraries, as far
as selectors use them; an expression with another one does not compile, and is left to kube-scheduler.
"""

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

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
    """A quantity as a value of the language; ValueError if it is none."""
    return {QUANTITY: str(exact(str(text)))}


def semver_value(text: str) -> Value:
    """A semantic version as a value of the language; ValueError if it is none. What it was built from never counts."""
    parse_semver(text)
    return {SEMVER: text.partition("+")[0]}


def readable(read: Callable[[str], object], text: str) -> bool:
    """True if `read` can read the text."""
    try:
        read(text)
    except ValueError:
        return False
    return True


def compare(left: Value, right: Value) -> int:
    """1, 0 or -1: whether the first is more, or newer. ValueError for values of two kinds."""
    if QUANTITY in left and QUANTITY in right:
        a, b = amount_of(left), amount_of(right)
        return (a > b) - (a < b)
    if SEMVER in left and SEMVER in right:
        newer, older = _precedence(left[SEMVER]), _precedence(right[SEMVER])
        return (newer > older) - (newer < older)
    raise ValueError("only two quantities, or two versions, can be compared")


def amount_of(value: Value) -> Fraction:
    """How much a quantity is; ValueError if the value is none."""
    if QUANTITY not in value:
        raise ValueError("this is no quantity")
    return Fraction(value[QUANTITY])


def integer(amount: Fraction) -> int:
    """A whole number; ValueError if it is none."""
    if amount.denominator != 1:
        raise ValueError("the quantity is no whole number")
    return amount.numerator


def release_of(value: Value) -> Release:
    """Major, minor and patch; ValueError if the value is no version."""
    if SEMVER not in value:
        raise ValueError("this is no version")
    return parse_semver(value[SEMVER])[0]


@lru_cache(maxsize=4096)
def parse_semver(text: str) -> tuple[Release, tuple[str, ...]]:
    """Numbers and pre-release parts (semver.org 2.0); ValueError if the text is no version."""
    match = _SEMVER.fullmatch(text) if len(text) <= _MAX_CHARS else None
    if match is None:
        raise ValueError("this is no semantic version")
    major, minor, patch, pre, _ = match.groups()
    return (int(major), int(minor), int(patch)), tuple(pre.split(".")) if pre else ()


def _precedence(text: str) -> tuple[Release, bool, tuple[tuple[bool, int, str], ...]]:
    """Sorts as versions do: a pre-release comes before its release, numbers before words."""
    release, pre = parse_semver(text)
    parts = tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in pre)
    return release, not pre, parts
