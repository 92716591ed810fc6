"""How a placement ends that cannot be carried out, and what becomes of the pods that it has pinned.

A pin cannot be changed once a pod has it. So pods that are pinned by a placement which is over are deleted: they never
ran, and their owner makes them again.
"""

from extender.planner import reasons
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from muster.api.kubernetes.meta import parse_time
from muster.api.muster.placement import NodeRun, Placement, PodSetPlacement, node_of, nodes_of, runs_of

ORPHAN_AGE_S = 10.0
"""A pinned pod without any placement is deleted after this time, which is longer than a watch can lag."""


def give_up(
    session: Session,
    gang: GangView,
    placement: Placement,
    why: str,
    *,
    in_vain: bool = False,
    evicted_in_vain: bool = False,
) -> None:
    """Keeps what is bound if it is enough to run, else abandons the placement. Pins are frozen, so pinned pods go.

    A placement is made `in_vain` if pods of the gang were not created: the next one has to wait. If pods could not be
    `evicted_in_vain`, nobody is evicted for the gang for a while.
    """
    if gang.started:
        kept = [
            PodSetPlacement(name=pod_set.name, runs=_only(placement, pod_set.name, pod_set.taken))
            for pod_set in gang.pod_sets
            if pod_set.taken
        ]
        close = decisions.ClosePlacement(gang, "Bound", why, kept, evicted_in_vain=evicted_in_vain)
    else:
        close = decisions.ClosePlacement(gang, "Abandoned", why, in_vain=in_vain, evicted_in_vain=evicted_in_vain)
    session.decide(close)
    for pod in gang.pods:
        if pod.pinned:
            session.decide(decisions.Evict(gang, pod, why, started=False))


def drop_strays(session: Session, gang: GangView) -> None:
    """Deletes pods that are pinned by a placement which is no longer carried out: they can never be bound."""
    placement = gang.placement
    for pod in gang.pods:
        if not pod.pinned or pod.epoch is None:
            continue
        if placement is None:
            born = parse_time(pod.created)
            stray = born is not None and session.now - born > ORPHAN_AGE_S
        elif pod.epoch > placement.spec.epoch:
            stray = False  # its placement has not been seen yet
        else:
            node = node_of(placement, pod.slot.pod_set, pod.slot.rank) if pod.slot else None
            stray = not gang.active or pod.epoch < placement.spec.epoch or node != pod.pin
        if stray:
            session.decide(decisions.Evict(gang, pod, reasons.placements.STRAY, started=False))


def _only(placement: Placement, pod_set: str, taken: dict[int, str]) -> list[NodeRun]:
    """What the placement gives those members of a pod set that are taken."""
    runs = next((each.runs for each in placement.spec.pod_sets if each.name == pod_set), [])
    return runs_of(nodes_of(runs, taken))
