"""Orders: of gangs, of the pod sets of a gang, and of the pods of a pod set.

Comparisons are negative if `left` comes first and 0 if a plugin has no opinion; then the next plugin is asked, and in
the end the older gang, the pod set that is written first, the lower rank.
"""

from extender.planner.framework.ordering import by_key
from extender.planner.framework.registry import PlainPlugin
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.state.pods import PodRecord
from extender.planner.state.podset import PodSetView
from muster.api.names import TASK_PRIORITY


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
