"""Plugins for the order of gangs, of a gang's pod sets and of a pod set's pods, and the plugin for reservations.

If no plugin decides, the older gang, the pod set that is earlier in the spec, and the lower rank come first.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar, get_args

from extender.planner.framework.answers import ReservationMode, ReservationRules
from extender.planner.framework.operations import Eviction, Operation
from extender.planner.framework.ordering import by_key
from extender.planner.framework.registry import OwnArgument, PlainPlugin, duration_s, refuse_arguments
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.state.pods import PodRecord
from extender.planner.state.podset import PodSetView
from muster.api.names import TASK_PRIORITY

_MODES = get_args(ReservationMode)
_MOST_HEADS = 256
"""Maximum of the argument `heads`, because each gang is compared with every reservation."""


class GangPlugin(PlainPlugin):
    """Readiness of gangs (enough members exist to start), and an order in which partly started gangs come first."""

    name = "gang"

    def on_session_open(self, session: Session) -> None:
        """Register the readiness and the order of gangs; partly started gangs come first because they hold capacity."""
        session.hooks.job_ready.add(has_members)
        session.hooks.job_order.add(by_key(lambda gang: not gang.incomplete))


class Priority(PlainPlugin):
    """Order of gangs by the value of their PodGroup's priority class, the highest first."""

    name = "priority"

    def on_session_open(self, session: Session) -> None:
        """Register the order of gangs by priority."""
        session.hooks.job_order.add(by_key(lambda gang: -gang.priority))


class Elastic(PlainPlugin):
    """Order of gangs by stage: gangs below their minimum first, then gangs at their minimum, then larger gangs."""

    name = "elastic"

    def on_session_open(self, session: Session) -> None:
        """Register the order by stage, so that additional pods of a gang never keep another gang from starting.

        Slots that this cycle has placed count as members.
        """
        given: Counter[str] = Counter()

        def count(entry: Operation | Eviction, sign: int) -> None:
            given[entry.gang.key] += sign * entry.size

        session.hooks.follow(count)
        session.hooks.job_order.add(by_key(lambda gang: _stage(gang, given.get(gang.key, 0))))


class SubGroupOrder(PlainPlugin):
    """Order of a gang's pod sets: pod sets below their minimum first, then by the filled fraction of the minimum."""

    name = "subgrouporder"

    def on_session_open(self, session: Session) -> None:
        """Register the order of pod sets; slots that this cycle has placed count as members."""
        given: Counter[int] = Counter()
        """Maps a pod set's id (names are not unique) to the number of its slots placed in this cycle."""

        def count(operation: Operation, sign: int) -> None:
            for pod_set in operation.gang.pod_sets:
                if pod_set.name == operation.pod_set:
                    given[id(pod_set)] += sign * operation.size

        session.hooks.allocated.add(lambda operation: count(operation, 1))
        session.hooks.deallocated.add(lambda operation: count(operation, -1))
        session.hooks.pod_set_order.add(by_key(lambda pod_set: share_of_minimum(pod_set, given[id(pod_set)])))


class TaskOrder(PlainPlugin):
    """Order of a pod set's pods by the integer label muster.dev/task-priority, largest first; other pods come last."""

    name = "taskorder"

    def on_session_open(self, session: Session) -> None:
        """Register the order of existing pods."""
        session.hooks.task_order.add(by_key(_task_priority))


def has_members(gang: GangView) -> bool:
    """Return True if enough members to start the gang exist or can be created from a template."""
    if gang.started:
        return True
    slots = gang.open_slots
    return gang.satisfied({pod_set.name: len(pod_set.taken) + len(slots[pod_set.name]) for pod_set in gang.pod_sets})


def share_of_minimum(pod_set: PodSetView, given: int = 0) -> tuple[bool, float]:
    """Return a pod set's sort key with `given` more slots: below the minimum first, then by filled fraction."""
    taken, minimum = len(pod_set.taken) + given, pod_set.minimum
    return taken >= minimum, taken / max(minimum, 1)


def _stage(gang: GangView, given: int) -> int:
    if not gang.started and not given:
        return 0
    return 1 if gang.taken + given <= gang.min_member else 2


def _task_priority(pod: PodRecord) -> tuple[bool, int]:
    """Return the sort key for a pod's task priority; pods whose label is missing or not an integer come last."""
    text = pod.labels.get(TASK_PRIORITY, "")
    is_integer = text.lstrip("-").isascii() and text.lstrip("-").isdigit()
    return not is_integer, -int(text) if is_integer else 0


class Reservations(PlainPlugin):
    """Rules for the reservations of nodes that the action `allocate` makes."""

    name = "reservations"
    OWN_ARGUMENTS: ClassVar[Mapping[str, OwnArgument]] = {
        "mode": OwnArgument(
            "reserve", "what other gangs may do while the first gang waits: `strict`, `reserve`, `besteffort`"
        ),
        "patience": OwnArgument(
            "10m", "waiting time after which nodes are reserved for the first gang, even without known runtimes"
        ),
        "expiry": OwnArgument("4h", "time after which other queues may ignore the reservation, for `patience`"),
        "heads": OwnArgument("16", f"number of gangs with a reservation at the same time, 0 to {_MOST_HEADS}"),
    }

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments, tuple(self.OWN_ARGUMENTS))
        rules = ReservationRules()
        mode, heads = arguments.get("mode", rules.mode), arguments.get("heads", rules.heads)
        if mode not in _MODES:
            raise ValueError(f"plugin 'reservations': mode is {mode!r}; it must be one of {', '.join(_MODES)}")
        if not isinstance(heads, int) or isinstance(heads, bool) or not 0 <= heads <= _MOST_HEADS:
            raise ValueError(f"plugin 'reservations': heads is {heads!r}; it must be a number from 0 to {_MOST_HEADS}")
        patience_s = duration_s(self.name, arguments, "patience", rules.patience_s)
        expiry_s = duration_s(self.name, arguments, "expiry", rules.expiry_s)
        self._rules = ReservationRules(mode=mode, patience_s=patience_s, expiry_s=expiry_s, heads=heads)

    def on_session_open(self, session: Session) -> None:
        """Register the rules for reservations."""
        session.hooks.reservation_rules.add(lambda: self._rules)
