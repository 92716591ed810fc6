"""Orders: of gangs, of the pod sets of a gang, and of the pods of a pod set.

Comparisons are negative if `left` comes first and 0 if a plugin has no opinion; then the next plugin is asked, and in
the end the older gang, the pod set that is written first, the lower rank.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, get_args

from extender.planner.framework.answers import ReservationMode, ReservationRules
from extender.planner.framework.ordering import by_key
from extender.planner.framework.registry import OwnArgument, PlainPlugin, refuse_arguments
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.state.podrecord import PodRecord
from extender.planner.state.podset import PodSetView
from muster.api.names import TASK_PRIORITY
from muster.resources.duration import parse_duration_s


class Gang(PlainPlugin):
    """A gang is tried only when it has enough members to start; one that was begun goes before one that was not."""

    name = "gang"

    def on_session_open(self, session: Session) -> None:
        """Registers which gangs are ready, and that incomplete ones come first: they take room and do nothing."""
        session.hooks.job_ready.add(has_members)
        session.hooks.job_order.add(by_key(lambda gang: not gang.incomplete))


class Priority(PlainPlugin):
    """Gangs of a higher priority class go first, by the value of their PodGroup's class."""

    name = "priority"

    def on_session_open(self, session: Session) -> None:
        """Registers the order; how much room a gang needs does not matter to it."""
        session.hooks.job_order.add(by_key(lambda gang: -gang.priority))


class Elastic(PlainPlugin):
    """Gangs below their minimum go before gangs at it, and those before gangs that have more."""

    name = "elastic"

    def on_session_open(self, session: Session) -> None:
        """Registers the order, so that no gang's surplus keeps another one from starting."""
        session.hooks.job_order.add(by_key(_stage))


class SubGroupOrder(PlainPlugin):
    """Of one gang, pod sets below their minimum go first, then those that have the smallest share of it."""

    name = "subgrouporder"

    def on_session_open(self, session: Session) -> None:
        """Registers the order in which what is above the gang's minimum is filled."""
        session.hooks.pod_set_order.add(compare_pod_sets)


class TaskOrder(PlainPlugin):
    """Of one pod set, where not all get a node: the largest integer in the label muster.dev/task-priority goes first.

    Pods with the label go before pods without.
    """

    name = "taskorder"

    def on_session_open(self, session: Session) -> None:
        """Registers the order; it is asked only about pods that exist."""
        session.hooks.task_order.add(compare_pods)


def has_members(gang: GangView) -> bool:
    """Whether enough members exist (or can be made from a template) to start."""
    slots = gang.open_slots()
    counts = {pod_set.name: len(pod_set.taken) + len(slots[pod_set.name]) for pod_set in gang.pod_sets}
    return gang.started or gang.satisfied(counts)


def compare_pod_sets(left: PodSetView, right: PodSetView) -> int:
    """Negative if `left` comes first."""
    lacks = int(len(right.taken) < right.minimum) - int(len(left.taken) < left.minimum)
    if lacks:
        return lacks
    shares = [len(pod_set.taken) / pod_set.minimum if pod_set.minimum else 0.0 for pod_set in (left, right)]
    return (shares[0] > shares[1]) - (shares[0] < shares[1])


def compare_pods(left: PodRecord, right: PodRecord) -> int:
    """Negative if `left` comes first."""
    priorities = [_task_priority(left), _task_priority(right)]
    if priorities[0] == priorities[1]:
        return 0
    if priorities[0] is None or priorities[1] is None:
        return 1 if priorities[0] is None else -1
    return priorities[1] - priorities[0]


def _stage(gang: GangView) -> int:
    if not gang.started:
        return 0
    return 1 if gang.taken <= gang.min_member else 2


def _task_priority(pod: PodRecord) -> int | None:
    """The label's value; None without the label, or if it is no integer."""
    text = pod.labels.get(TASK_PRIORITY, "")
    return int(text) if text.lstrip("-").isascii() and text.lstrip("-").isdigit() else None


_MODES = get_args(ReservationMode)
_MOST_HEADS = 256
"""More would cost every gang a look at each of them."""


class Reservations(PlainPlugin):
    """Sets the rules; without it they are the default ones. `allocate` makes the reservations.

    Arguments: `mode` (strict, reserve or besteffort), `patience` (a duration) and `heads` (how many at once).
    """

    name = "reservations"
    OWN_ARGUMENTS: ClassVar[Mapping[str, OwnArgument]] = {
        "mode": OwnArgument("reserve", "what gangs may do behind a head that waits: `strict`, `reserve`, `besteffort`"),
        "patience": OwnArgument("10m", "after so long a head has nodes reserved for it although no end is known"),
        "heads": OwnArgument("16", f"gangs that have a reservation at once, 0 to {_MOST_HEADS}"),
    }

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments, tuple(self.OWN_ARGUMENTS))
        rules = ReservationRules()
        self._rules = ReservationRules(
            mode=_mode(arguments.get("mode", rules.mode)),
            patience_s=_patience_s(arguments.get("patience", f"{rules.patience_s:.0f}s")),
            heads=_heads(arguments.get("heads", rules.heads)),
        )

    def on_session_open(self, session: Session) -> None:
        """Registers the rules."""
        session.hooks.reservation_rules.add(lambda: self._rules)


def _mode(value: object) -> ReservationMode:
    if value not in _MODES:
        raise ValueError(f"plugin 'reservations': mode is {value!r}; it must be one of {', '.join(_MODES)}")
    return value  # type: ignore[return-value]  # it is one of them


def _patience_s(value: object) -> float:
    try:
        return parse_duration_s(str(value))
    except ValueError as error:
        raise ValueError(f"plugin 'reservations': patience: {error}") from error


def _heads(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MOST_HEADS:
        raise ValueError(f"plugin 'reservations': heads is {value!r}; it must be a number from 0 to {_MOST_HEADS}")
    return value
