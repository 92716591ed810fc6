"""Plugins for gangs that are never victims: recently started gangs (`minruntime`) and system pods (`conformance`)."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from extender.planner.framework.operations import Scenario
from extender.planner.framework.registry import PlainPlugin, duration_s, refuse_arguments
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.state.pods import of_the_system
from muster.api.kubernetes.meta import parse_time
from muster.api.names import PREEMPT_MIN_RUNTIME, RECLAIM_MIN_RUNTIME
from muster.api.volcano.scheduling import Queue
from muster.resources.runtime import parse_days_s
from muster.volcano.access import lineage

_ARGUMENTS = ("defaultPreemptMinRuntime", "defaultReclaimMinRuntime", "reclaimResolveMethod")
_METHODS = ("lca", "queue")
SYSTEM_CRITICAL = 2_000_000_000
"""Value of system-cluster-critical; only Kubernetes' own two priority classes have so high a value."""


class MinRuntime(PlainPlugin):
    """Protection of gangs, except pods above the minimum, for some time after their start (`status.startedAt`).

    The plugin follows KAI-Scheduler's plugin minruntime. Preemption within the queue and reclaim have separate minimum
    times. The victim's queue, or else its nearest ancestor with an annotation, sets both times. With
    `reclaimResolveMethod: lca` (default), the search for the reclaim time starts at the victim's ancestor directly
    below the lowest common ancestor of victim and reclaimer. With `reclaimResolveMethod: queue`, the search starts at
    the victim's own queue.
    """

    name = "minruntime"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments, _ARGUMENTS)
        self._preempt_s = duration_s(self.name, arguments, "defaultPreemptMinRuntime", 0.0, parse_days_s)
        self._reclaim_s = duration_s(self.name, arguments, "defaultReclaimMinRuntime", 0.0, parse_days_s)
        self._method = arguments.get("reclaimResolveMethod", "lca")
        if self._method not in _METHODS:
            raise ValueError(f"reclaimResolveMethod is {self._method!r}; valid: {', '.join(_METHODS)}")

    def on_session_open(self, session: Session) -> None:
        """Register filters that shorten the search for victims, and validators that make the final decision."""
        hooks = session.hooks
        hooks.preempt_victim_filter.add(lambda _, victim: self._may_lose(session, victim, None))
        hooks.reclaim_victim_filter.add(lambda gang, victim: self._may_lose(session, victim, gang))
        hooks.preempt_scenario_validator.add(lambda scenario: self._agrees(session, scenario, None))
        hooks.reclaim_scenario_validator.add(lambda scenario: self._agrees(session, scenario, scenario.gang))

    def _may_lose(self, session: Session, victim: GangView, reclaimer: GangView | None) -> bool:
        """Return True if the victim has pods above its minimum, or has run for its minimum time."""
        return victim.has_extras or not self._protected(session, victim, reclaimer)

    def _agrees(self, session: Session, scenario: Scenario, reclaimer: GangView | None) -> bool:
        gone: dict[str, set[str]] = {}
        for chunk in scenario.chunks:
            uids = gone.setdefault(chunk.gang.key, set())
            uids.update(pod.uid for pod in chunk.pods)
            keeps_minimum = chunk.gang.started and chunk.gang.viable_without(uids)
            if not keeps_minimum and self._protected(session, chunk.gang, reclaimer):
                return False
        return True

    def _protected(self, session: Session, victim: GangView, reclaimer: GangView | None) -> bool:
        """Return True if the victim has not run for its minimum time yet; `reclaimer` is None for preemption."""
        text = victim.placement.status.started_at if victim.placement else ""
        since = parse_time(text) if text else None
        if since is None:
            return False
        queues = session.snapshot.queues
        chain = list(lineage(victim.queue, queues.get))
        if reclaimer is None:
            return session.now < since + _from(chain, PREEMPT_MIN_RUNTIME, self._preempt_s)
        if self._method == "lca":
            shared = {queue.metadata.name for queue in lineage(reclaimer.queue, queues.get)}
            below = [queue for queue in chain if queue.metadata.name not in shared]
            chain = chain[max(len(below) - 1, 0) :]
        return session.now < since + _from(chain, RECLAIM_MIN_RUNTIME, self._reclaim_s)


def _from(chain: list[Queue], annotation: str, default_s: float) -> float:
    """Return the minimum time, in seconds, from the first queue in the chain whose annotation is valid."""
    for queue in chain:
        if annotation in queue.metadata.annotations:
            with suppress(ValueError):
                return parse_days_s(queue.metadata.annotations[annotation])
    return default_s


class Conformance(PlainPlugin):
    """Protection of pods in kube-system and of pods with Kubernetes' own two priority classes, as in Volcano."""

    name = "conformance"

    def on_session_open(self, session: Session) -> None:
        """Register the filter of victims."""
        session.hooks.reclaim_victim_filter.add(lambda _, victim: not needed_by_the_cluster(victim))
        session.hooks.preempt_victim_filter.add(lambda _, victim: not needed_by_the_cluster(victim))


def needed_by_the_cluster(gang: GangView) -> bool:
    """Return True if the cluster may need this gang's pods to work, even if the PodGroup has a low priority class."""
    in_system = of_the_system(gang.group.metadata.namespace, "")
    return gang.priority >= SYSTEM_CRITICAL or in_system or any(pod.system for pod in gang.pods)
