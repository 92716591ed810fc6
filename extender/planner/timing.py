"""The times and limits on which the planner's cycles depend."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct, field

from muster.api.kubernetes.core import DEFAULT_GRACE_S
from muster.api.limits import NOTICE

Seconds = Annotated[float, Meta(ge=0)]
NoticeSeconds = Annotated[float, Meta(ge=0, le=NOTICE.value)]
Part = Annotated[float, Meta(gt=0, le=1)]


class Timing(Struct, frozen=True, kw_only=True):
    """One installation's values; extender.settings.ExtenderSettings has the same, with the reason for each default.

    On the wire (published, recorded, in snapshots) fields have their names in settings files.
    """

    recovery_s: Seconds = field(name="recoveryTimeout", default=30.0)
    """Time after which the members of a partly bound gang are evicted."""
    staleness_grace_s: float = field(name="stalenessGrace", default=60.0)
    """Time that a gang may wait for lost members before the rest is evicted; negative means forever."""
    growth_delay_s: Seconds = field(name="growthDelay", default=1.0)
    """Time from a gang's start until it gets more than its minimum; 0 means at once, if capacity is free."""
    longest_notice_s: NoticeSeconds = field(name="longestNotice", default=600.0)
    """Longest time between the notice of an eviction and the eviction; 0: pods get no notice."""
    node_fault_grace_s: Seconds = field(name="nodeFaultGrace", default=30.0)
    """Time that gangs wait for an unresponsive node, unless a gang sets its own time."""
    fault_stop: Part = field(name="faultStop", default=0.55)
    """Share of all nodes, from 0 to 1; while more are faulty at once, no gang is repaired."""

    @property
    def longest_grace_s(self) -> float:
        """Longest grace period of an evicted pod; a pod's own may be longer, and others wait for its capacity."""
        return max(self.longest_notice_s, DEFAULT_GRACE_S)


DEFAULTS: Final = Timing()
DEADLINE_S: Final = 30.0
DEADLINE_PER_SLOT_S: Final = 0.1
"""Seconds per pod from creation to binding on a busy API server: ten pods a second."""
MAX_PLACEMENT_DELAY_S: Final = 600.0
"""Longest delay of the next placement of a gang whose pods were not created in time, and of its next evictions."""
MOST_SLOTS: Final = 20_000
"""Slots beyond which no placement gets more time."""
CLOCKS_S: Final = 60.0
"""Difference in seconds between two machines' clocks that does not count as a clock set back."""


def arrival_s(slots: int) -> float:
    """Return the seconds within which the members of this number of slots must arrive."""
    return DEADLINE_S + DEADLINE_PER_SLOT_S * min(slots, MOST_SLOTS)


def is_over(until_s: float, now_s: float, most_s: float) -> bool:
    """Return True for a time that has passed, or that is more than `most_s` ahead.

    A time is set at most `most_s` ahead; if it is further, the clock was set back, and a wait for it would be too long.
    """
    return not now_s < until_s <= now_s + most_s + CLOCKS_S


def timing_of(values: Mapping[str, Any]) -> tuple[Timing, list[str]]:
    """Read values by their names on the wire; return also a sentence for each unusable one.

    An unusable value is replaced by its default. Unknown names are ignored: a later version publishes and records more.
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
