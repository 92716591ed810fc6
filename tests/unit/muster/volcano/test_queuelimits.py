"""Limits of queues in annotations: what they say, when windows are open, and what is wrong with them."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api import names
from muster.api.limits import LIMIT_WINDOWS
from muster.volcano.queuelimits import NONE, UsageBudget, is_model, limits_of, mistakes, read_weights

SAID = {
    names.MAX_PER_USER: "nvidia.com/gpu=16, pods=100",
    names.MAX_BY_MODEL: "H100=64,A100=128",
    names.WINDOWS: "Mon-Fri 08:00-18:00 Europe/Berlin nvidia.com/gpu=32; Sat,Sun 22:00-06:00 pods=5",
    names.BUDGET: "nvidia.com/gpu=10000h/month, cpu=0.5h/day,nvidia.com/gpu=100h/week",
    names.BUDGET_MODE: "enforce",
}


def at(text: str, zone: str = "UTC") -> float:
    """A moment on the wall clock of a zone, in seconds since the epoch."""
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def test_what_they_say() -> None:
    """In thousandths where resources are counted so; a budget in unit-seconds."""
    limits = limits_of(SAID)
    assert limits.per_user == {"nvidia.com/gpu": 16_000, "pods": 100}
    assert limits.by_model == {"H100": 64_000, "A100": 128_000}
    assert [window.limits for window in limits.windows] == [{"nvidia.com/gpu": 32_000}, {"pods": 5}]
    assert limits.budgets == (
        UsageBudget("nvidia.com/gpu", "month", 36_000_000_000),
        UsageBudget("cpu", "day", 1_800_000),
        UsageBudget("nvidia.com/gpu", "week", 360_000_000),
    )
    assert limits.enforced
    assert not list(mistakes(SAID, "metadata.annotations"))
    assert limits_of({}) == NONE
    assert not NONE


@pytest.mark.parametrize(("key", "text"), [
    (names.MAX_PER_USER, ""),
    (names.MAX_PER_USER, "nvidia.com/gpu"),
    (names.MAX_PER_USER, "nvidia.com/gpu=many"),
    (names.MAX_PER_USER, "nvidia.com/gpu=-1"),
    (names.MAX_PER_USER, "pods=1,pods=2"),
    (names.MAX_PER_USER, ",".join(f"r{number}=1" for number in range(65))),
    (names.MAX_BY_MODEL, "H 100=1"),
    (names.WINDOWS, "Mon-Fri 08:00-18:00"),
    (names.WINDOWS, "Mon-Someday 08:00-18:00 UTC pods=1"),
    (names.WINDOWS, "Mon 08:00-25:00 UTC pods=1"),
    (names.WINDOWS, "Mon 08:00-08:00 UTC pods=1"),
    (names.WINDOWS, "Mon 08:00-24:30 UTC pods=1"),
    (names.WINDOWS, "Mon 08:00-18:00 Europe/Nowhere pods=1"),
    (names.WINDOWS, "Mon 08:00-18:00 ../etc pods=1"),
    (names.WINDOWS, ";".join(["Mon 08:00-18:00 UTC pods=1"] * (LIMIT_WINDOWS.value + 1))),
    (names.BUDGET, "nvidia.com/gpu=10000h/year"),
    (names.BUDGET, "nvidia.com/gpu=1h/week,nvidia.com/gpu=2h/week"),
    (names.BUDGET, "nvidia.com/gpu=h/week"),
    (names.BUDGET, "nvidia.com/gpu=10000"),
    (names.BUDGET_MODE, "Enforce"),
])  # fmt: skip
def test_a_mistake_is_told_and_has_no_effect(key: str, text: str) -> None:
    """At its path, one for each annotation; the others count."""
    said = {**SAID, key: text}
    [error] = mistakes(said, "metadata.annotations")
    assert error.path == f"metadata.annotations[{key}]"
    assert len(str(error)) < 4000
    fields = dict(zip(names.QUEUE_LIMIT_KEYS, limits_of(SAID), strict=True))
    assert limits_of(said) == (*({**fields, key: NONE[names.QUEUE_LIMIT_KEYS.index(key)]}.values()),)


def test_a_mode_without_a_budget_is_a_mistake() -> None:
    """It would do nothing."""
    [error] = mistakes({names.BUDGET_MODE: "warn"}, "a")
    assert error.path == f"a[{names.BUDGET_MODE}]"


@pytest.mark.parametrize(("moment", "until"), [
    (at("2026-11-26T07:59:59", "Europe/Berlin"), None),
    (at("2026-11-26T08:00:00", "Europe/Berlin"), at("2026-11-26T18:00:00", "Europe/Berlin")),
    (at("2026-11-26T18:00:00", "Europe/Berlin"), None),
    (at("2026-11-28T10:00:00", "Europe/Berlin"), None),
    (at("2026-03-30T12:00:00", "Europe/Berlin"), at("2026-03-30T18:00:00", "Europe/Berlin")),
])  # fmt: skip
def test_a_window_of_working_hours(moment: float, until: float | None) -> None:
    """By the wall clock of its zone, on its days."""
    assert limits_of(SAID).windows[0].until(moment) == until


def test_a_window_goes_on_after_midnight() -> None:
    """Of Sunday's the end is on Monday."""
    window = limits_of(SAID).windows[1]
    assert window.until(at("2026-11-30T05:59:00")) == at("2026-11-30T06:00:00")
    assert window.until(at("2026-11-30T22:30:00")) is None
    assert window.until(at("2026-11-28T23:00:00")) == at("2026-11-29T06:00:00")


@given(st.integers(0, 2_000_000_000))
def test_a_window_ends_when_it_says(moment: int) -> None:
    """It ends when it is said to, and stays open until then."""
    for window in limits_of(SAID).windows:
        until = window.until(moment)
        if until is not None:
            assert until > moment
            assert window.until(until - 1) == until
            assert window.until(until) is None
            local = datetime.fromtimestamp(until, UTC).astimezone(window.zone)
            assert (local.hour * 60 + local.minute) % 1440 == window.end % 1440


@pytest.mark.parametrize(("model", "product", "meant"), [
    ("H100", "NVIDIA-H100-80GB-HBM3", True),
    ("h100-80gb", "NVIDIA-H100-80GB-HBM3", True),
    ("NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-80GB-HBM3", True),
    ("H10", "NVIDIA-H100-80GB-HBM3", False),
    ("H100-HBM3", "NVIDIA-H100-80GB-HBM3", False),
    ("A100", "", False),
])  # fmt: skip
def test_a_model_is_a_part_of_the_label(model: str, product: str, meant: bool) -> None:  # noqa: FBT001 - a table
    """Whole words beside each other, in any case."""
    assert is_model(model, product) is meant


@pytest.mark.parametrize(("text", "weights"), [
    ("", {}),
    ("nvidia.com/gpu=0", {"nvidia.com/gpu": 0.0}),
    ("nvidia.com/gpu=0.5, cpu = 3,", {"nvidia.com/gpu": 0.5, "cpu": 3.0}),
    ("*=0,cpu=65535", {"*": 0.0, "cpu": 65535.0}),
])  # fmt: skip
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
