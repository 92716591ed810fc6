"""Resource vectors are plain exact arithmetic by name; people get short amounts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.resources.vector import add, amount_text, maximum, scale, subtract, to_quantities, vector, vector_text

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
    assert a == {name: amount for name, amount in subtract(add(a, b), b).items() if amount or name in a}
    assert before == (a, b)


@given(vectors, vectors)
def test_the_maximum_has_the_larger_amount_of_each(a: dict[str, int], b: dict[str, int]) -> None:
    """A resource of one vector alone counts as it is; the sum is no less."""
    larger = maximum(a, b)
    assert larger == {name: max(each[name] for each in (a, b) if name in each) for name in a | b}
    assert all(amount <= add(a, b)[name] for name, amount in larger.items())


@given(vectors, st.integers(0, 50))
def test_scaling_is_repeated_adding(a: dict[str, int], n: int) -> None:
    """N pods need n times what one needs."""
    total: dict[str, int] = scale(a, 0)
    for _ in range(n):
        total = add(total, a)
    assert scale(a, n) == total


@given(vectors)
def test_quantities_read_back(a: dict[str, int]) -> None:
    """What is written to the API means the same when it comes back."""
    assert a == vector(to_quantities(a))


@pytest.mark.parametrize(
    ("resource", "amount", "words"),
    [
        ("cpu", 500, "0.5"), ("cpu", 16000, "16"), ("cpu", 1_234_567, "1235"), ("memory", 16 << 30, "16Gi"),
        ("memory", 1_500_000_000, "1.4Gi"), ("memory", 1024, "1Ki"), ("memory", 700, "700"), ("memory", -2048, "-2Ki"),
        ("hugepages-2Mi", 4 << 20, "4Mi"), ("nvidia.com/gpu", 8000, "8"), ("nvidia.com/gpu", 500, "0.5"),
        ("pods", 4096, "4096"),
    ],
)  # fmt: skip
def test_an_amount_is_short(resource: str, amount: int, words: str) -> None:
    """In the unit that people use, with three digits."""
    assert amount_text(resource, amount) == words


def test_a_vector_begins_with_what_everybody_knows() -> None:
    """The pod itself goes without saying, and so does what is not asked for."""
    assert vector_text({"nvidia.com/gpu": 8000, "pods": 1, "memory": 1 << 30, "cpu": 1000, "x": 0}) == (
        "1 cpu, 1Gi memory, 8 nvidia.com/gpu"
    )
    assert vector_text({"pods": 1}) == "nothing"
