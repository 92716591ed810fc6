"""What keeps a gang from being tried at all, and the sentence that its owner reads."""

from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView

NAMED = 3
"""Pods that are named in a sentence."""


def obstacle(session: Session, gang: GangView) -> decisions.Unschedulable | None:
    """What keeps the gang from being tried at all; None if nothing does."""
    if until := gang.waits_until(session.now):
        attempts = gang.placement.status.attempts if gang.placement else 0
        times = "once" if attempts == 1 else f"{attempts} times in a row"
        words = f"its pods were not created in time, {times}; it is placed again at {until}, or once its pods exist"
        return decisions.Unschedulable(gang, "PodsNotCreated", words)
    if not gang.started and gang.held_by_others:
        return decisions.Unschedulable(gang, "SchedulingGated", _held_by_others(gang))
    if not session.hooks.job_ready.call(gang):
        return decisions.Unschedulable(gang, "NotEnoughPods", _not_ready(gang))
    return None


def _held_by_others(gang: GangView) -> str:
    pods = sorted((pod for pod in gang.held_by_others), key=lambda pod: pod.name)
    gates = sorted({gate for pod in pods for gate in pod.other_gates})
    more = f" and {len(pods) - NAMED} more" if len(pods) > NAMED else ""
    who = ", ".join(pod.name for pod in pods[:NAMED]) + more
    which = "the scheduling gate" if len(gates) == 1 else "the scheduling gates"
    verb = "waits" if len(pods) == 1 else "wait"
    return f"{len(pods)} of its pods {verb} for {which} {', '.join(gates)}, not Muster's: {who}"


def _not_ready(gang: GangView) -> str:
    have = sum(len(seats) for seats in gang.open_seats().values()) + gang.taken
    return f"{have} of the {gang.min_member} pods that start together exist"
