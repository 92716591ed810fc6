"""The priority of a gang: that of its PodGroup, as far as its pods have it.

A PodGroup names its PriorityClass itself. That of a pod is checked by the API server: by ResourceQuotas, which may
allow a namespace some pods of a class or none, and by whatever else admits pods. So a gang has no more than the highest
of its pods; before they exist, of the templates of its Job; and with neither, no more than a pod of no class.
"""

from collections.abc import Iterable, Sequence

from extender.planner.state.pods import PodRecord
from extender.planner.state.templates import Template
from muster.api.kubernetes.core import PriorityClass

NEVER = "Never"


class Priorities:
    """The PriorityClasses of the cluster."""

    def __init__(self) -> None:
        self._classes: dict[str, PriorityClass] = {}

    def put(self, name: str, new: PriorityClass | None) -> None:
        """Take a class that changed; None if it is gone."""
        self._classes.pop(name, None)
        if new is not None:
            self._classes[name] = new

    def of_gang(self, name: str, pods: Sequence[PodRecord], templates: Iterable[Template]) -> tuple[int, bool]:
        """Return the priority of a gang whose PodGroup names this class, and True if it may preempt."""
        living = [pod for pod in pods if pod.waiting or pod.alive]
        if living:
            most = max(self._of_pod(pod) for pod in living)
            preempts = any(pod.preempts for pod in living)
        else:
            given = [each.priority_class for each in templates if each.task.replicas > 0] or [""]
            most = max(map(self._of_new_pod, given))
            preempts = any(self._preempts(each) for each in given)
        return min(self._value(name), most), preempts and self._preempts(name)

    def _value(self, name: str) -> int:
        known = self._classes.get(name)
        return known.value if known else 0

    def _preempts(self, name: str) -> bool:
        known = self._classes.get(name)
        return known is None or known.preemption_policy != NEVER

    def _of_pod(self, pod: PodRecord) -> int:
        """Return what the API server wrote into the pod, or would have written into one of a file."""
        return self._of_new_pod(pod.priority_class) if pod.priority is None else pod.priority

    def _of_new_pod(self, name: str) -> int:
        if name:
            return self._value(name)
        defaults = [each.value for each in self._classes.values() if each.global_default]
        return min(defaults, default=0)
