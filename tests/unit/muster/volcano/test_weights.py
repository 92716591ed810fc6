"""Weights of a queue by resource, as its annotation says them."""

import pytest

from muster.volcano.queuelimits import read_weights


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("", {}),
        ("nvidia.com/gpu=0", {"nvidia.com/gpu": 0.0}),
        ("nvidia.com/gpu=0.5, cpu = 3,", {"nvidia.com/gpu": 0.5, "cpu": 3.0}),
        ("*=0,cpu=65535", {"*": 0.0, "cpu": 65535.0}),
    ],
)
def test_weights_are_read(text: str, weights: dict[str, float]) -> None:
    """By resource, also for all."""
    assert read_weights(text) == weights


@pytest.mark.parametrize("text", ["cpu", "=1", "cpu=-1", "cpu=x", "cpu=1=2", "cpu=70000", "cpu=1e3", "cpu=nan"])
def test_what_is_no_weight_is_refused(text: str) -> None:
    """With an example."""
    with pytest.raises(ValueError, match="write it like"):
        read_weights(text)


def test_a_resource_has_one_weight() -> None:
    """Two would leave open which counts."""
    with pytest.raises(ValueError, match="two weights"):
        read_weights("cpu=1,cpu=2")
