"""What keeps a gang from being tried at all."""

from extender.planner import reasons
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView


def obstacle(session: Session, gang: GangView) -> decisions.Unschedulable | None:
    """What keeps the gang from being tried at all; None if nothing does."""
    if until := gang.waits_until(session.now):
        attempts = gang.placement.status.attempts if gang.placement else 0
        return decisions.Unschedulable(gang, reasons.pods.NOT_CREATED, reasons.pods.not_created(attempts, until))
    if not gang.started and (held := gang.gated_by_others):
        gates = sorted({gate for pod in held for gate in pod.other_gates})
        words = reasons.pods.gated(sorted(pod.name for pod in held), gates)
        return decisions.Unschedulable(gang, reasons.pods.GATED, words)
    if not session.hooks.job_ready.call(gang):
        have = sum(len(slots) for slots in gang.open_slots().values()) + gang.taken
        words = reasons.pods.too_few(have=have, wanted=gang.min_member)
        return decisions.Unschedulable(gang, reasons.pods.TOO_FEW, words)
    return None
