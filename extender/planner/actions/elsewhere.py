"""Withdrawal of eviction notices that are no longer needed.

A notice is no longer needed if the gang that was to get the capacity is gone or has found other nodes. A notice period
may last for an hour, and other gangs may finish in the meantime. Therefore a gang that waits for its victims gets other
nodes once enough nodes are free without evictions. Gangs without victims are placed earlier in the same cycle, and
reservations for other gangs are respected.

A pod's notice is withdrawn if no active placement refers to the pod as a victim, and the pod stays. Notices are
withdrawn at the end of the cycle: if a gang selects the same victims again, their notice period does not restart.
"""

from extender.planner.actions.makeroom import awaiting_placement, victims_there
from extender.planner.actions.search import place_whole
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.framework.statement import counted_free
from extender.planner.state.gangs import GangView

ATTEMPTS = 4
"""Maximum number of waiting gangs for which one cycle searches for other nodes."""
AT_ONCE = 256
"""Maximum number of notices withdrawn per cycle; users can write any number of these annotations."""


class Elsewhere:
    """The action that decides Place for gangs whose victims need not be evicted after all."""

    name = "elsewhere"

    def __init__(self) -> None:
        self._seen: dict[str, int | None] = {}
        """Maps a gang's UID to the snapshot version of its last search."""

    def execute(self, session: Session) -> None:
        """Try to place gangs that wait for victims again if the cluster has changed since their last search."""
        before, self._seen = self._seen, {}
        kinds = (decisions.MakeRoom, decisions.ClosePlacement, decisions.RoomIsThere)
        decided = {each.gang.key for each in session.decisions if isinstance(each, kinds)}
        left = ATTEMPTS
        for gang in filter(None, map(session.gang, session.snapshot.placed)):
            placement = awaiting_placement(gang)
            if placement is None or not placement.spec.notices:
                continue
            self._seen[gang.uid] = before.get(gang.uid)
            due = gang.key not in decided and self._seen[gang.uid] != session.snapshot.version
            if due and left:
                left -= 1
                self._seen[gang.uid] = session.snapshot.version
                session.attempt(gang, _try)


def _try(session: Session, gang: GangView) -> None:
    snapshot, placement = session.snapshot, gang.placement
    there = victims_there(session, placement) if placement else []
    if all(pod.terminating for _, pod in there):
        return  # all victims are terminating, so the capacity will soon be free
    if gang.taken or any(
        cls is None or cls.gpu is not None or snapshot.one_by_one(cls) or cls.marks for cls in gang.all_classes
    ):
        return  # the resources of such gangs cannot be freed slot by slot
    slots = [
        (column, snapshot.row_of(pod_set.cls))
        for _, node, pod_set in gang.placed_slots()
        if pod_set is not None and pod_set.cls is not None and (column := snapshot.index.get(node)) is not None
    ]
    with counted_free(session, slots):
        place_whole(session, gang)


class WithdrawNotices:
    """The action that decides WithdrawNotice for pods that no longer need to be evicted."""

    name = "withdraw"

    def execute(self, session: Session) -> None:
        """Withdraw the eviction notices of pods that need not be evicted."""
        if not session.snapshot.reported:
            return
        asked = {pod.uid for place in session.decided(decisions.Place) for _, pod in place.victims}
        for gang in session.snapshot.gangs:
            if placement := awaiting_placement(gang):
                asked.update(victim.uid for victim in placement.spec.victims)
        stays = (pod for pod in session.snapshot.reported.values() if pod.uid not in asked)
        for pod, _ in zip(stays, range(AT_ONCE), strict=False):
            gang_of_pod = session.gang(pod.gang or "")
            if gang_of_pod is not None:
                session.decide(decisions.WithdrawNotice(gang_of_pod, pod))
