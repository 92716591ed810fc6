"""Amounts as people say them."""

import pytest

from muster.resources.vector import amount_words, vector_words


@pytest.mark.parametrize(
    ("resource", "amount", "words"),
    [
        ("cpu", 500, "0.5"),
        ("cpu", 16000, "16"),
        ("memory", 16 << 30, "16Gi"),
        ("memory", 1_500_000_000, "1.4Gi"),
        ("memory", 700, "700"),
        ("nvidia.com/gpu", 8000, "8"),
        ("nvidia.com/gpu", 500, "0.5"),
    ],
)
def test_an_amount_is_short(resource: str, amount: int, words: str) -> None:
    """In the unit that people use, with three digits."""
    assert amount_words(resource, amount) == words


def test_a_vector_begins_with_what_everybody_knows() -> None:
    """The pod itself goes without saying, and so does what is not asked for."""
    assert vector_words({"nvidia.com/gpu": 8000, "pods": 1, "memory": 1 << 30, "cpu": 1000, "x": 0}) == (
        "1 cpu, 1Gi memory, 8 nvidia.com/gpu"
    )
    assert vector_words({"pods": 1}) == "nothing"
