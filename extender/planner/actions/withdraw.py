"""Withdraws eviction notices that nobody needs any more: their asker has gone, or has got its room in another way.

A placement is what counts: a pod that was told to go, and that no active placement names as a victim, stays. This
action runs after all others in every cycle, so that a gang which asks anew for the same victims keeps their time.
"""

from extender.planner.actions.makeroom import awaits_room
from extender.planner.framework import decisions
from extender.planner.framework.session import Session

AT_ONCE = 256
"""Pods in one cycle: users may write such an annotation themselves."""


class WithdrawNotices:
    """Decides WithdrawNotice for pods that stay after all."""

    name = "withdraw"

    def execute(self, session: Session) -> None:
        """Look at the pods that were told, which are mostly none."""
        if not session.snapshot.told:
            return
        asked = {pod.uid for place in session.decided(decisions.Place) for _, pod in place.victims}
        for gang in session.snapshot.gangs:
            if awaits_room(gang) and gang.placement is not None:
                asked.update(victim.uid for victim in gang.placement.spec.victims)
        stays = (pod for pod in session.snapshot.told.values() if pod.uid not in asked)
        for pod, _ in zip(stays, range(AT_ONCE), strict=False):
            told = session.gang(pod.gang or "")
            if told is not None:
                session.decide(decisions.WithdrawNotice(told, pod))
