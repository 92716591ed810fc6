"""Pods that the cluster itself needs are never victims, by the rule of Volcano's plugin `conformance`."""

from extender.planner.framework.registry import PlainPlugin
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.state.pods import of_the_system

SYSTEM_CRITICAL = 2_000_000_000
"""The value of system-cluster-critical; only Kubernetes' own two classes have so much."""


class Conformance(PlainPlugin):
    """Never evicts from kube-system, nor of the two classes of priority that Kubernetes keeps for itself."""

    name = "conformance"

    def on_session_open(self, session: Session) -> None:
        """Registers the filter of victims."""
        session.hooks.reclaim_victim_filter.add(lambda _, victim: not needed_by_the_cluster(victim))
        session.hooks.preempt_victim_filter.add(lambda _, victim: not needed_by_the_cluster(victim))


def needed_by_the_cluster(gang: GangView) -> bool:
    """True if the cluster itself may need the pods of this gang."""
    group = gang.group
    return (
        gang.priority >= SYSTEM_CRITICAL
        or of_the_system(group.metadata.namespace, group.spec.priority_class_name)
        or any(pod.system for pod in gang.pods)
    )
