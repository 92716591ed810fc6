"""Capabilities of queues, for the nodes that a gang asks for: none is asked for that its queue could not use."""

from collections.abc import Mapping

from extender.planner import reasons
from extender.planner.framework.demand import amounts_of
from extender.planner.framework.session import Session
from extender.planner.framework.turns import upwards
from extender.planner.state.gangs import GangView
from muster.resources.vector import Vector, add, scale, vector


class Capabilities:
    """What queues use in one cycle, each with those below it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._used: dict[str, Vector] = {}
        for name, use in session.snapshot.queue_use.items():
            for above in upwards(session.snapshot.queues, name):
                self._used[above] = add(add(self._used.get(above, {}), use.staying), use.leaving)

    def refusal(self, gang: GangView, wanted: Mapping[str, int]) -> str:
        """Why its queue may not use so many more pods of each set, in words; empty if it may.

        Plugins are asked first. The queues' capabilities are compared besides, since a resource that no node has yet
        is on no plugin's axis.
        """
        snapshot = self._session.snapshot
        refusal = self._session.hooks.is_job_over_queue_capacity.call(gang, amounts_of(snapshot, gang, wanted))
        if refusal is not None:
            return str(refusal.message)
        asked: Vector = {}
        for pod_set in gang.pod_sets:
            if pod_set.cls is not None:
                asked = add(asked, scale(pod_set.cls.requests, wanted[pod_set.name]))
        return next(filter(None, (self._over(name, asked) for name in upwards(snapshot.queues, gang.queue))), "")

    def _over(self, name: str, asked: Vector) -> str:
        queue, used = self._session.snapshot.queues.get(name), self._used.get(name, {})
        try:
            capability = vector(queue.spec.capability) if queue else {}
        except ValueError as error:  # admission was bypassed; its gangs go on, and ask for nothing
            return reasons.queues.unreadable_capability(queue=name, error=error)
        for resource, limit in capability.items():
            wanted, there = asked.get(resource, 0), used.get(resource, 0)
            if wanted and there + wanted > limit:
                return reasons.queues.no_nodes_for(name, resource, limit=limit, used=there, asked=wanted)
        return ""
