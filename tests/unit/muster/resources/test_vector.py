"""Resource vectors are plain exact arithmetic by name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.resources.vector import add, fits, maximum, scale, subtract, to_quantities, vector

vectors = st.dictionaries(st.sampled_from(["cpu", "memory", "pods", "nvidia.com/gpu"]), st.integers(0, 10**15))


def test_counts_cpu_in_milli_and_the_rest_in_base_units() -> None:
    """The unit follows from the name."""
    quantities: dict[str, str | int | float] = {
        "cpu": "1.5",
        "memory": "1Gi",
        "nvidia.com/gpu": 8,
        "ephemeral-storage": "10M",
    }
    assert vector(quantities) == {"cpu": 1500, "memory": 2**30, "nvidia.com/gpu": 8000, "ephemeral-storage": 10**7}


def test_names_the_resource_whose_quantity_is_wrong() -> None:
    """A user finds the wrong line."""
    with pytest.raises(ValueError, match=r"^memory: '1GB' is not a quantity"):
        vector({"cpu": "1", "memory": "1GB"})


@given(vectors, vectors)
def test_subtracting_undoes_adding(a: dict[str, int], b: dict[str, int]) -> None:
    """Nothing is lost or rounded, and the arguments stay as they are."""
    before = (dict(a), dict(b))
    back = subtract(add(a, b), b)
    assert a == {name: amount for name, amount in back.items() if amount or name in a}
    assert before == (a, b)


@given(vectors, vectors)
def test_both_fit_into_their_maximum_and_sum(a: dict[str, int], b: dict[str, int]) -> None:
    """The maximum holds either, the sum both."""
    assert fits(a, maximum(a, b))
    assert fits(b, maximum(a, b))
    assert fits(maximum(a, b), add(a, b))


@given(vectors, st.integers(0, 50))
def test_scaling_is_repeated_adding(a: dict[str, int], n: int) -> None:
    """N pods need n times what one needs."""
    total: dict[str, int] = scale(a, 0)
    for _ in range(n):
        total = add(total, a)
    assert scale(a, n) == total


def test_fits_ignores_what_is_not_asked_for() -> None:
    """A resource that is overdrawn or missing matters only to those who ask for it."""
    assert fits({"cpu": 0, "nvidia.com/gpu": 0}, {"cpu": -5})
    assert fits({"memory": 5}, {"cpu": -5, "memory": 5})
    assert not fits({"memory": 6}, {"memory": 5})
    assert not fits({"nvidia.com/gpu": 1}, {"memory": 5})


@given(vectors)
def test_quantities_read_back(a: dict[str, int]) -> None:
    """What is written to the API means the same when it comes back."""
    assert a == vector(to_quantities(a))
