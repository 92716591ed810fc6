"""The times and limits of an installation that its planner's cycles depend on."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct, field

from muster.api.limits import NOTICE

Seconds = Annotated[float, Meta(ge=0)]
NoticeSeconds = Annotated[float, Meta(ge=0, le=NOTICE.value)]
Part = Annotated[float, Meta(gt=0, le=1)]


class Timing(Struct, frozen=True, kw_only=True):
    """One installation's values; extender.settings.ExtenderSettings has the same, with the reason for each default.

    On the wire (published, recorded, in snapshots) fields have the names that files of settings use.
    """

    recovery_s: Seconds = field(name="recoveryTimeout", default=30.0)
    """Time after which the members of a gang that is bound in part are evicted."""
    staleness_grace_s: float = field(name="stalenessGrace", default=60.0)
    """Time that a gang which lost members may wait for them before the rest is evicted; negative means without end."""
    growth_delay_s: Seconds = field(name="growthDelay", default=1.0)
    """Time from a gang's start until it gets more than its minimum; 0 means at once, if capacity is free."""
    longest_notice_s: NoticeSeconds = field(name="longestNotice", default=600.0)
    """Longest time between the notice of an eviction and the eviction; 0: pods get no notice."""
    node_fault_grace_s: Seconds = field(name="nodeFaultGrace", default=30.0)
    """Time that gangs wait for a node that does not answer, unless a gang sets its own."""
    fault_stop: Part = field(name="faultStop", default=0.55)
    """Part of all nodes that are faulty at once from which on nothing is repaired."""


DEFAULTS: Final = Timing()
DEADLINE_S: Final = 30.0
DEADLINE_PER_SLOT_S: Final = 0.1
"""Seconds per pod from creation to binding where the API server is busy: ten pods a second."""
MAX_BACK_OFF_S: Final = 600.0
"""Longest delay of the next placement of a gang whose pods were not created in time."""
MOST_SLOTS: Final = 20_000
"""Slots beyond which no placement gets more time."""
CLOCKS_S: Final = 60.0
"""Difference of clocks in seconds that is no sign of a clock that was set back."""


def arrival_s(slots: int) -> float:
    """Return the seconds in which the members of so many slots have to arrive."""
    return DEADLINE_S + DEADLINE_PER_SLOT_S * min(slots, MOST_SLOTS)


def is_over(until_s: float, now_s: float, most_s: float) -> bool:
    """Return True for a time that is over, or further ahead than the `most_s` for which it was set.

    The clock was set back then: what waits for that time would wait too long by as much.
    """
    return not now_s < until_s <= now_s + most_s + CLOCKS_S


def timing_of(values: Mapping[str, Any]) -> tuple[Timing, list[str]]:
    """Read values by their names on the wire; return also a sentence for each that cannot be used.

    Such a value counts as its default. Other names are left out: a later version publishes and records more.
    """
    usable: dict[str, Any] = {}
    problems = []
    for each in msgspec.structs.fields(Timing):
        name = each.encode_name
        if name in values:
            try:
                usable[each.name] = msgspec.convert(values[name], each.type)
            except msgspec.ValidationError as error:
                problems.append(f"{name} is {values[name]!r} ({error}), and counts as its default, {each.default:g}")
    return Timing(**usable), problems
