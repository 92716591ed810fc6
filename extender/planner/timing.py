"""Times and limits that the planner's cycles use."""

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
    """Times and limits of one installation; `extender.settings.ExtenderSettings` explains them.

    Published data, recordings and snapshots use the same field names as settings files.
    """

    recovery_s: Seconds = field(name="recoveryTimeout", default=30.0)
    """Time after which the members of a partly bound gang are evicted."""
    staleness_grace_s: float = field(name="stalenessGrace", default=60.0)
    """Time for which a gang may lack lost members before its other members are evicted; a negative time means no
    limit."""
    growth_delay_s: Seconds = field(name="growthDelay", default=1.0)
    """Time from a gang's start until the gang may exceed its minimum; with 0, the gang grows at once if capacity is
    free."""
    longest_notice_s: NoticeSeconds = field(name="longestNotice", default=600.0)
    """Maximum time between an eviction notice and the eviction; with 0, pods get no notice."""
    node_fault_grace_s: Seconds = field(name="nodeFaultGrace", default=30.0)
    """Time for which gangs wait for an unresponsive node to recover, unless a gang sets its own time."""
    fault_stop: Part = field(name="faultStop", default=0.55)
    """Fraction of all nodes, from 0 to 1. If a larger fraction of the nodes is faulty at once, no gang is repaired."""

    @property
    def longest_grace_s(self) -> float:
        """Maximum grace period of a pod that is evicted for another gang, even if the pod requests more time."""
        return max(self.longest_notice_s, DEFAULT_GRACE_S)


DEFAULTS: Final = Timing()
DEADLINE_S: Final = 30.0
DEADLINE_PER_SLOT_S: Final = 0.1
"""Seconds per slot in a placement's deadline: a busy API server creates and binds ten pods a second."""
MAX_PLACEMENT_DELAY_S: Final = 600.0
"""Longest delay of another placement after pods were not created in time, or of evictions for the gang."""
MOST_SLOTS: Final = 20_000
"""Number of slots above which the deadline of a placement does not grow any further."""
CLOCKS_S: Final = 60.0
"""Maximum seconds between two machines' clocks; a larger difference means that a clock was set back."""


def arrival_s(slots: int) -> float:
    """Return the seconds within which the members for this number of slots must be created and bound."""
    return DEADLINE_S + DEADLINE_PER_SLOT_S * min(slots, MOST_SLOTS)


def is_over(until_s: float, now_s: float, most_s: float) -> bool:
    """Return True for a time that has passed or is more than `most_s` seconds in the future.

    Times are set at most `most_s` in the future. A later time means that the clock was set back, so waiting would take
    too long.
    """
    return not now_s < until_s <= now_s + most_s + CLOCKS_S


def timing_of(values: Mapping[str, Any]) -> tuple[Timing, list[str]]:
    """Parse times and limits, named as in settings files; also return a sentence for each unusable value.

    An unusable value is replaced by its default. Unknown names are ignored, because a later version of Muster may
    publish and record more values.
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
