"""What pods tell autoscalers about their eviction; a run's checkpoints are believed for its own life only."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.kubernetes.meta import format_time
from muster.api.limits import CHECKPOINT_CHARS
from muster.api.muster.checkpoint import Checkpoint, answer_of, checkpoint_of, latest
from muster.api.muster.safetoevict import annotations_for, recorded_value
from muster.api.names import DO_NOT_DISRUPT, PODS_SAFE_TO_EVICT, SAFE_TO_EVICT


@pytest.mark.parametrize(("value", "held"), [("true", None), ("false", "true"), ("on-completion", "true")])
def test_both_autoscalers_are_told_the_same_and_it_is_read_again(value: str, held: str | None) -> None:
    """Karpenter has one word only, whose force ends with the pod."""
    written = annotations_for(value)
    assert written == {PODS_SAFE_TO_EVICT: value, SAFE_TO_EVICT: value, DO_NOT_DISRUPT: held}
    assert recorded_value({key: each for key, each in written.items() if each is not None}) == value


def test_nothing_takes_all_away() -> None:
    """A patch with these values leaves no annotation."""
    assert set(annotations_for("").values()) == {None}
    assert recorded_value({}) == ""


@pytest.mark.parametrize(
    "annotations", [{PODS_SAFE_TO_EVICT: "false"}, {DO_NOT_DISRUPT: "5m"}, {DO_NOT_DISRUPT: "true"}]
)
def test_annotations_that_do_not_agree_are_no_value_of_ours(annotations: dict[str, str]) -> None:
    """A user's own for one autoscaler, or those of an older Muster, which are then written anew."""
    assert recorded_value(annotations) not in {"", "true", "false", "on-completion"}


AT = 1_800_000_000.0


@pytest.mark.parametrize(("text", "found"), [
    (f"step=1200,at={format_time(AT)}", Checkpoint(AT, 1200)),
    (f"at={format_time(AT)}, step=0", Checkpoint(AT, 0)),
    (f"at={format_time(AT)}", Checkpoint(AT)),
    ("at=2027-01-15T09:00:00+01:00", Checkpoint(AT)),
    ("step=1200", None),
    ("at=soon", None),
    (f"step=-1,at={format_time(AT)}", None),
    (f"step=1e3,at={format_time(AT)}", None),
    (f"step=1,at={format_time(AT)},loss=0.1", None),
    ("", None),
    (None, None),
])  # fmt: skip
def test_a_checkpoint_is_a_time_and_maybe_a_step(text: str | None, found: Checkpoint | None) -> None:
    """In any order; nothing else."""
    assert checkpoint_of(text) == found


@given(st.text(max_size=CHECKPOINT_CHARS.value * 2))
def test_any_text_can_be_read(text: str) -> None:
    """Whoever may write a pod may write anything."""
    assert checkpoint_of(text) is None or len(text) <= CHECKPOINT_CHARS.value


@given(st.lists(st.floats(min_value=0, max_value=100), max_size=5))
def test_the_latest_of_a_life_counts(times: list[float]) -> None:
    """Neither one from before its start, nor one from the future."""
    found = latest([*(Checkpoint(each) for each in times), None], since=30, now=60)
    assert (found.at if found else None) == max([each for each in times if 30 <= each <= 60], default=None)


def test_a_pod_without_such_annotations_says_nothing() -> None:
    """Most pods."""
    assert answer_of({"muster.dev/rank": "0"}) is None
    assert answer_of({"muster.dev/evict-ready": "no"}) is not None
