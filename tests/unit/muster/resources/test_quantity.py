"""Quantities are read as the API server reads them, exactly, and written so that they can be read again."""

from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kubernetes.utils.quantity import parse_quantity

from muster.resources.quantity import LARGEST, exact, format_quantity, parse

SUFFIXES = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]

numbers = st.from_regex(r"[+-]?([0-9]{1,12}(\.[0-9]{0,12})?|\.[0-9]{1,12})", fullmatch=True).filter(str.isascii)
exponents = st.integers(-20, 20).flatmap(lambda n: st.sampled_from([f"e{n}", f"E{n}", f"e{n:+}"]))


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", 0), ("2", 2), ("+2", 2), ("-2", -2), ("1.", 1), (".5", 1), ("1.5", 2), ("1500m", 2), ("1n", 1),
        ("1k", 1000), ("1.5k", 1500), ("1Ki", 1024), ("1.5Gi", 3 * 2**29), ("1E", 10**18), ("1E3", 1000),
        ("1e3", 1000), ("12e-1", 2), ("1e+2", 100), ("128974848", 128974848), ("129M", 129 * 10**6), ("1Ti", 2**40),
        ("1Pi", 2**50), ("2T", 2 * 10**12), ("3P", 3 * 10**15), ("999999u", 1), ("-1.5", -1), (7, 7), (0.5, 1),
        (1e3, 1000),
    ],
)  # fmt: skip
def test_examples(text: str | float, amount: int) -> None:
    """Every suffix and form, in base units, rounded up."""
    assert amount == parse(text)


@pytest.mark.parametrize(
    ("text", "milli"),
    [("1", 1000), ("500m", 500), ("0.0005", 1), ("100u", 1), ("1.5", 1500), ("2k", 2_000_000), (0.25, 250)],
)
def test_milli_examples(text: str | float, milli: int) -> None:
    """CPU is counted in thousandths, rounded up."""
    assert milli == parse(text, milli=True)


def of_kubernetes(text: str) -> Decimal:
    """What the kubernetes package computes, with more than the 28 digits that Python's decimals have otherwise."""
    with localcontext(prec=100):
        amount: Decimal = parse_quantity(text)
    return amount


@given(numbers, st.sampled_from(SUFFIXES))
def test_agrees_with_the_kubernetes_package(number: str, suffix: str) -> None:
    """On valid input the value is what the kubernetes package computes, rounded up and capped."""
    exact = of_kubernetes(number + suffix)
    for milli in (False, True):
        rounded = ceil(Fraction(exact) * (1000 if milli else 1))
        assert max(-LARGEST, min(rounded, LARGEST)) == parse(number + suffix, milli=milli)


@given(numbers, st.sampled_from(SUFFIXES))
@example("10000000001", "Ei")
def test_the_exact_amount_is_neither_rounded_nor_capped(number: str, suffix: str) -> None:
    """It is what the kubernetes package computes."""
    assert exact(number + suffix) == Fraction(of_kubernetes(number + suffix))


@given(numbers, exponents)
def test_exponents_agree_with_decimal(number: str, exponent: str) -> None:
    """A decimal exponent means what it means everywhere."""
    rounded = int(Decimal(number + exponent).to_integral_value(ROUND_CEILING))
    assert max(-LARGEST, min(rounded, LARGEST)) == parse(number + exponent)


@pytest.mark.parametrize(
    "text",
    ["", " ", "1 ", " 1", "one", "1K", "1ki", "1mi", "1e", "1e3Mi", "1_000", "NaN", "Infinity", "--1", "1.2.3", ".",
     "+",
     "٣", "1٣", "0x10", "1Gib", "1 Gi", "½", "1" * 257, "1\n", True, None, float("nan"), float("inf")],
)  # fmt: skip
def test_refuses_what_is_no_quantity(text: str) -> None:
    """Anything else is refused with a sentence that shows the input and says what would be right."""
    with pytest.raises(ValueError, match="is not a quantity: write a number with an optional unit"):
        parse(text)


def test_huge_exponents_cost_nothing() -> None:
    """An absurd exponent is capped without computing the number."""
    assert parse("1e999999999999") == LARGEST
    assert parse("-1e999999999999") == -LARGEST
    assert parse("1e-999999999999") == 1
    assert parse("0e999999999999") == 0
    assert parse(f"0.{'0' * 240}1e300") == LARGEST
    assert parse(f"1{'0' * 240}e-300") == 1


@given(st.integers(-LARGEST, LARGEST), st.booleans())
def test_formatted_amounts_read_back(value: int, milli: bool) -> None:  # noqa: FBT001 - hypothesis chooses it
    """Whatever is written is read back as the same amount."""
    assert value == parse(format_quantity(value, milli=milli), milli=milli)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (8, "8"), (2000, "2k"), (2500, "2500"), (1024, "1024"), (10**9, "1G"), (2**20, "1Mi"),
     (3 * 2**29, "1536Mi"), (256 * 2**30, "256Gi"), (-(2**30), "-1Gi")],
)  # fmt: skip
def test_formats_as_people_write(value: int, text: str) -> None:
    """Bytes get binary suffixes, counts decimal ones."""
    assert text == format_quantity(value)


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (1, "1m"), (1500, "1500m"), (2000, "2"), (64000, "64")])
def test_formats_cpu_as_people_write(value: int, text: str) -> None:
    """Whole CPUs are written as such."""
    assert text == format_quantity(value, milli=True)
