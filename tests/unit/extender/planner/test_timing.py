"""The times and limits of an installation are read with care: they come from settings, a ConfigMap or a file."""

from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import astuple

from extender.planner.timing import DEFAULTS, Timing, timing_of
from extender.settings import ExtenderSettings

OTHER = Timing(
    recovery_s=1.0, staleness_grace_s=-1.0, growth_delay_s=600.0, longest_notice_s=3.0, node_fault_grace_s=4.0,
    fault_stop=0.5,
)  # fmt: skip


def test_settings_have_the_same_names_and_defaults() -> None:
    """What is published and recorded is called as in a file of settings."""
    assert ExtenderSettings().timing == DEFAULTS
    told = to_builtins(OTHER)
    assert told.items() <= to_builtins(ExtenderSettings(
        recovery_timeout_s=1.0, staleness_grace_s=-1.0, growth_delay_s=600.0, longest_notice_s=3.0,
        node_fault_grace_s=4.0, fault_stop=0.5,
    )).items()  # fmt: skip
    settings = ExtenderSettings(growth_delay_s=600.0, staleness_grace_s=-1.0, fault_stop=0.5)
    assert settings.timing == Timing(growth_delay_s=600.0, staleness_grace_s=-1.0, fault_stop=0.5)
    assert timing_of(told | {"suspectTaints": [], "later": 1}) == (OTHER, [])
    assert all(one != other for one, other in zip(astuple(OTHER), astuple(DEFAULTS), strict=True))


@pytest.mark.parametrize("bad", ["600", None, True, -1, [], float("nan")])
def test_a_value_that_cannot_be_used_counts_as_its_default(bad: Any) -> None:
    """With the reason; the others count."""
    timing, [problem] = timing_of({"growthDelay": bad, "faultStop": 1})
    assert timing == Timing(fault_stop=1.0)
    assert problem.startswith(f"growthDelay is {bad!r} (Expected `float`")
    assert problem.endswith("and counts as its default, 1")


def test_nothing_known_is_the_defaults() -> None:
    """As of an older version, which publishes no timing."""
    assert timing_of({}) == (DEFAULTS, [])
