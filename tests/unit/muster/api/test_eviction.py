"""What pods tell cluster-autoscaler and Karpenter about their eviction."""

import pytest

from muster.api.muster.eviction import annotations_for, said_by
from muster.api.names import DO_NOT_DISRUPT, PODS_SAFE_TO_EVICT, SAFE_TO_EVICT


@pytest.mark.parametrize(("value", "held"), [("true", None), ("false", "true"), ("on-completion", "true")])
def test_both_autoscalers_are_told_the_same_and_it_is_read_again(value: str, held: str | None) -> None:
    """Karpenter has one word only, whose force ends with the pod."""
    written = annotations_for(value)
    assert written == {PODS_SAFE_TO_EVICT: value, SAFE_TO_EVICT: value, DO_NOT_DISRUPT: held}
    assert said_by({key: each for key, each in written.items() if each is not None}) == value


def test_nothing_takes_all_away() -> None:
    """A patch with these values leaves no annotation."""
    assert set(annotations_for("").values()) == {None}
    assert said_by({}) == ""


@pytest.mark.parametrize(
    "annotations", [{PODS_SAFE_TO_EVICT: "false"}, {DO_NOT_DISRUPT: "5m"}, {DO_NOT_DISRUPT: "true"}]
)
def test_annotations_that_do_not_agree_are_no_value_of_ours(annotations: dict[str, str]) -> None:
    """A user's own for one autoscaler, or those of an older Muster, which are then written anew."""
    assert said_by(annotations) not in {"", "true", "false", "on-completion"}
