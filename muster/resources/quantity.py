"""Conversion of Kubernetes quantities ("500m", "1.5Gi", "3e2") to exact integers, and back.

Quantities have the API server's grammar. A quantity is an ASCII decimal number with an optional suffix. The suffix is
decimal (n u m k M G T P E), binary (Ki Mi Gi Ti Pi Ei) or an exponent (e3, E-2). Fractions of the requested unit are
rounded up, and quantities beyond 64 bits are capped, as in the API server.
"""

import re
from fractions import Fraction
from functools import lru_cache

LARGEST = 2**63 - 1
"""The largest quantity, at which larger values are capped."""

_MAX_CHARS = 256
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_PATTERN = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<whole>[0-9]+)(?:\.(?P<part>[0-9]*))?|\.(?P<only_part>[0-9]+))"
    r"(?:[eE](?P<exponent>[+-]?[0-9]+)|(?P<suffix>[KMGTPE]i|[numkMGTPE]?))"
)


def parse(text: str | float, *, milli: bool = False) -> int:
    """Return the quantity in base units (with `milli`, in thousandths), rounded up; ValueError describes an error."""
    if isinstance(text, str):
        return _parse(text, milli)
    if isinstance(text, bool) or not isinstance(text, int | float):
        raise ValueError(_complaint(text))  # noqa: TRY004 - quantities come from users' files: a wrong type is bad input
    return _parse(repr(text), milli)


@lru_cache(maxsize=65536)
def _parse(text: str, milli: bool) -> int:  # noqa: FBT001 - private, and positional arguments make the cheaper cache key
    amount, tens = _read_number(text)
    tens += 3 if milli else 0
    power: int = 10 ** abs(tens)
    # floor division of the negated number rounds up
    rounded = amount * power if tens >= 0 else -(-amount // power)
    return max(-LARGEST, min(rounded, LARGEST))


def exact(text: str) -> Fraction:
    """Return the exact quantity in base units, neither rounded nor capped; ValueError describes an error."""
    amount, tens = _read_number(text)
    return amount * Fraction(10) ** tens


def _read_number(text: str) -> tuple[int, int]:
    """Return a quantity as a whole number and the power of ten by which to multiply this number."""
    match = _PATTERN.fullmatch(text) if len(text) <= _MAX_CHARS else None
    if not match:
        raise ValueError(_complaint(text if len(text) <= _MAX_CHARS else f"{text[:20]}…"))
    part = match["part"] or match["only_part"] or ""
    amount = int(f"{match['sign']}{match['whole'] or ''}{part}")
    tens = -len(part)
    if match["exponent"]:
        # beyond this exponent, every mantissa of the allowed length exceeds the largest quantity or rounds to the
        # smallest
        tens += max(-2 * _MAX_CHARS, min(int(match["exponent"]), 2 * _MAX_CHARS))
    elif match["suffix"] in _BINARY:
        amount <<= _BINARY[match["suffix"]]
    else:
        tens += _DECIMAL[match["suffix"]]
    return amount, tens


def _complaint(text: object) -> str:
    return f"{text!r} is not a quantity: write a number with an optional unit, such as 2, 500m or 1.5Gi"


def format_quantity(value: int, *, milli: bool = False) -> str:
    """Return the shortest exact text of a quantity in base units (with `milli`, in thousandths).

    Multiples of 2^20 are assumed to be bytes and get a binary suffix. All other numbers get a decimal suffix, as in the
    API server. The result is exact: `parse(format_quantity(v)) == v`.
    """
    if milli:
        if value % 1000:
            return f"{value}m"
        value //= 1000
    if value and value % 2**20 == 0:
        for suffix, bits in reversed(_BINARY.items()):
            if value % 2**bits == 0:
                return f"{value >> bits}{suffix}"
    for suffix, tens in reversed(_DECIMAL.items()):
        if tens > 0 and value and value % 10**tens == 0:
            return f"{value // 10**tens}{suffix}"
    return str(value)
