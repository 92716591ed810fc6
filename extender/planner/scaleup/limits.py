"""Whether a queue may use the nodes that a gang asks for: no node is asked for that its capability forbids."""

from collections.abc import Mapping

import numpy as np

from extender.planner import reasons
from extender.planner.framework.session import Session
from extender.planner.scaleup.wishes import chain
from extender.planner.state.gangs import GangView
from muster.api.volcano.scheduling import Queue
from muster.resources.vector import Vector, add, scale, vector


class Capabilities:
    """What queues use in one cycle, counted when it is first asked."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._used: dict[str, Vector] | None = None

    def refusal(self, gang: GangView, wanted: Mapping[str, int]) -> str:
        """Why its queue may not use so many more pods of each set, in words; empty if it may.

        Plugins are asked first. The queues' capabilities are compared besides, since a resource that no node has yet
        is on no plugin's axis.
        """
        amounts = np.zeros(self._session.snapshot.free.shape[0], dtype=np.int64)
        asked: Vector = {}
        for pod_set in gang.pod_sets:
            if pod_set.cls is not None and wanted[pod_set.name]:
                amounts = amounts + self._session.snapshot.row_of(pod_set.cls) * wanted[pod_set.name]
                asked = add(asked, scale(pod_set.cls.requests, wanted[pod_set.name]))
        refusal = self._session.hooks.is_job_over_queue_capacity.call(gang, amounts)
        if refusal is not None:
            return str(refusal.message)
        limited = [queue for queue in chain(self._session.snapshot.queues, gang.queue) if queue.spec.capability]
        return next(filter(None, (self._over(queue, asked) for queue in limited)), "")

    def _over(self, queue: Queue, asked: Vector) -> str:
        name = queue.metadata.name
        used = self._uses().get(name, {})
        try:
            capability = vector(queue.spec.capability)
        except ValueError as error:  # admission was bypassed; its gangs go on, and ask for nothing
            return reasons.queues.unreadable_capability(queue=name, error=error)
        for resource, limit in capability.items():
            wanted, there = asked.get(resource, 0), used.get(resource, 0)
            if wanted and there + wanted > limit:
                return reasons.queues.no_nodes_for(name, resource, limit=limit, used=there, asked=wanted)
        return ""

    def _uses(self) -> dict[str, Vector]:
        """What the gangs of each queue, and of those below it, have on nodes."""
        if self._used is None:
            own: dict[str, Vector] = {}
            for gang in self._session.snapshot.gangs:
                for pod_set in gang.pod_sets:
                    if pod_set.alive and pod_set.cls is not None:
                        requests = scale(pod_set.cls.requests, pod_set.alive)
                        own[gang.queue] = add(own.get(gang.queue, {}), requests)
            self._used = {}
            for name, amounts in own.items():
                for queue in chain(self._session.snapshot.queues, name):
                    above = queue.metadata.name
                    self._used[above] = add(self._used.get(above, {}), amounts)
        return self._used
