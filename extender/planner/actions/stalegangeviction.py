"""Evicts what is left of a gang that lost members and could not be completed in time.

After KAI-Scheduler's action of the same name, with two differences: members that failed count as present (whether a
failure ends a job is its owner's decision), and members that finished protect the others (its issue 1968). What counts
is the minimum that the gang started with: a Job that is scaled up keeps what runs while there is no room for more.
"""

from extender.planner import reasons
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView


class StaleGangEviction:
    """Looks at gangs that were whole once. The grace period stands in the cycle's inputs; negative means never."""

    name = "stalegangeviction"

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def execute(self, session: Session) -> None:
        """Decides Evict for every member of a gang whose grace period is over."""
        grace_s = session.inputs.staleness_grace_s
        stale = {gang.uid: gang for gang in session.snapshot.gangs if session.attempt(gang, _stale)}
        self._since = {uid: self._since.get(uid, session.now) for uid in stale}
        if grace_s < 0:
            return
        for uid, gang in stale.items():
            if session.now - self._since[uid] >= grace_s:
                self._evict(session, gang)

    @staticmethod
    def _evict(session: Session, gang: GangView) -> None:
        needed = gang.started_with().min_member
        reason = reasons.placements.incomplete(taken=gang.taken, needed=needed)
        for pod in gang.pods:
            if pod.node and not pod.terminating and pod.phase in {"Pending", "Running"}:
                session.decide(decisions.Evict(gang, pod, reason, started=True))


def _stale(_session: Session, gang: GangView) -> bool:
    return is_stale(gang)


def is_stale(gang: GangView) -> bool:
    """Started once, some members run, none has finished, and fewer are left than it started with."""
    if not gang.started or any(pod.phase == "Succeeded" for pod in gang.pods):
        return False
    counts = {pod_set.name: len(pod_set.taken) for pod_set in gang.pod_sets}
    for pod in gang.pods:
        if pod.phase == "Failed" and pod.slot is not None and pod.slot.pod_set in counts:
            counts[pod.slot.pod_set] += 1
    return any(pod_set.taken for pod_set in gang.pod_sets) and not gang.viable(counts)
