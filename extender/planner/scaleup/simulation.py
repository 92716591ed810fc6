"""What an autoscaler would find before it adds nodes: whether the nodes that exist hold the pods, one by one.

cluster-autoscaler first packs pending pods onto what is free, by kube-scheduler's own rules, and knows neither gangs
nor topology nor who was refused where; what fits so adds no node. Such a gang need not ask, and its owner is told.
"""

from collections.abc import Hashable, Mapping

import numpy as np

from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView


class ExistingNodes:
    """What the nodes that exist would hold, found once in a cycle for gangs of the same shape."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[Hashable, bool] = {}

    def hold(self, gang: GangView, wanted: Mapping[str, int]) -> bool:
        """True if so many pods of each set of this gang fit onto them, one by one."""
        shape = tuple((each.cls.key if each.cls else b"", wanted[each.name]) for each in gang.pod_sets)
        if shape not in self._known:
            self._known[shape] = self._hold(gang, wanted)
        return self._known[shape]

    def _hold(self, gang: GangView, wanted: Mapping[str, int]) -> bool:
        """The answer by what is free at the end of this cycle.

        Where pods depend on where others are, it is no: a request in vain is better than a gang that waits for ever.
        """
        session, free = self._session, self._session.snapshot.free.copy()
        for pod_set in gang.pod_sets:
            count, cls = wanted[pod_set.name], pod_set.cls
            if not count:
                continue
            if cls is None or session.snapshot.one_by_one(cls):
                return False
            codes = session.node_codes(cls)
            neighbours = session.hooks.neighbour_predicate.call(cls)
            room = np.where(codes == 0, np.minimum(session.room(cls, free), count), 0)
            if neighbours is not None:
                room = np.where(neighbours == 0, room, 0)
            if room.sum() < count:
                return False
            before = np.cumsum(room) - room
            taken = np.clip(count - before, 0, room)
            free -= session.snapshot.row_of(cls)[:, None] * taken[None, :]
        return True
