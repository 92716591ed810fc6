"""Pods that the cluster itself needs are nobody's victims, by the rule of Volcano's plugin `conformance`."""

from extender.planner.framework.hooks import HOOKS
from extender.planner.framework.registry import PlainPlugin
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView

SYSTEM_NAMESPACE = "kube-system"
SYSTEM_CRITICAL = 2_000_000_000
"""The value of system-cluster-critical; only Kubernetes' own two classes have so much."""
SYSTEM_CLASSES = frozenset({"system-cluster-critical", "system-node-critical"})


class Conformance(PlainPlugin):
    """Never evicts from kube-system, nor of the two classes of priority that Kubernetes keeps for itself."""

    name = "conformance"

    def on_session_open(self, session: Session) -> None:
        """Registers the filter of victims, as far as any action asks for one."""
        for hook in ("reclaim_victim_filter", "preempt_victim_filter"):
            if hook in HOOKS:
                session.add(hook, lambda _, victim: not of_the_system(victim))


def of_the_system(gang: GangView) -> bool:
    """Whether the cluster itself may need the pods of this gang."""
    group = gang.group
    return (
        group.metadata.namespace == SYSTEM_NAMESPACE
        or group.spec.priority_class_name in SYSTEM_CLASSES
        or gang.priority >= SYSTEM_CRITICAL
        or any(pod.system for pod in gang.pods)
    )
