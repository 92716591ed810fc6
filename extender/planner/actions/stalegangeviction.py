"""The action that evicts the remaining members of a gang that has lost members and got no new members in time.

This action follows KAI-Scheduler's action stalegangeviction, with two differences. Failed members count as present,
because the Job's controller handles failures. A gang with finished members is not evicted (KAI-Scheduler's issue 1968).
A gang is compared with the minimum that it had when it started. A Job that is scaled up therefore keeps its pods while
capacity for the additional pods is missing.

Members with a node in a placement count as present, even in a placement of this cycle. An evicted gang gets no nodes in
the same cycle. A gang that must wait because of an avoided node (`actions.avoidance`) is not evicted.
"""

from collections import Counter

from extender.planner import reasons
from extender.planner.actions.progress import evict_all
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView


class StaleGangEviction:
    """The action that evicts a gang below its minimum after the grace period; a negative grace period never ends."""

    name = "stalegangeviction"

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._sound: dict[str, GangView] = {}
        """Maps a gang's key to the view at the last check, if the gang was not stale; views never change."""

    def execute(self, session: Session) -> None:
        """Decide Evict for all members of gangs that are incomplete for longer than the grace period."""
        grace_s = session.inputs.timing.staleness_grace_s
        before, gangs = self._sound, session.snapshot.gangs
        checked = [gang for gang in gangs if before.get(gang.key) is not gang]
        stale = {gang.uid: gang for gang in checked if session.attempt(gang, _is_stale)}
        self._sound = {gang.key: gang for gang in gangs if gang.uid not in stale and gang.key not in session.failures}
        self._since = {uid: self._since.get(uid, session.now) for uid in stale}
        for uid, gang in stale.items() if grace_s >= 0 else ():
            waits = bool(session.failed_on.get(gang.key))  # it waits because a node is avoided after a failure
            if session.now - self._since[uid] < grace_s or waits or _is_completed(session, gang):
                continue
            session.withdraw(gang, decisions.Place)
            session.evicted.add(gang.key)
            reason = reasons.placements.incomplete(taken=gang.taken, needed=gang.started_with().min_member)
            evict_all(session, gang, reason)


def _is_stale(_session: Session, gang: GangView) -> bool:
    """Return True if a started gang has members, but fewer than its starting minimum, and none has finished."""
    if not gang.started:
        return False
    if any(pod_set.gone for pod_set in gang.pod_sets) or any(pod.phase == "Succeeded" for pod in gang.pods):
        return False
    placed = Counter(pod_set.name for _, _, pod_set in gang.placed_slots() if pod_set is not None)
    return any(pod_set.taken for pod_set in gang.pod_sets) and not _viable(gang, placed)


def _is_completed(session: Session, gang: GangView) -> bool:
    """Return True if a placement of this cycle provides the missing members."""
    places = (place for place in session.decided(decisions.Place) if place.gang is gang)
    return any(_viable(gang, _given(gang, place)) for place in places)


def _given(gang: GangView, place: decisions.Place) -> Counter[str]:
    """Return each pod set's number of members with nodes in a placement, including bound members."""
    whole = Counter({each.name: sum(run.count for run in each.runs) for each in place.pod_sets})
    return Counter({each.name: whole[each.name] - len(each.taken) for each in gang.pod_sets})


def _viable(gang: GangView, more: Counter[str]) -> bool:
    """Return True if the gang can continue with its members, failed members included, and `more` per pod set."""
    counts = {pod_set.name: len(pod_set.taken) + more[pod_set.name] for pod_set in gang.pod_sets}
    for pod in gang.pods:
        if pod.phase == "Failed" and pod.slot is not None and pod.slot.pod_set in counts:
            counts[pod.slot.pod_set] += 1
    return gang.viable(counts)
