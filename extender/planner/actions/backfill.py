"""The action that places gangs without requests while the first gang of their strictly ordered queue waits.

Volcano's action backfill places all pods without requests. In Muster, backfill places best-effort gangs of strictly
ordered queues while the first gang of the queue waits for capacity. A pod without requests uses only one of its node's
pod slots, and reserved pod slots stay reserved.
"""

from extender.planner import reasons
from extender.planner.actions.allocate import wants_nodes
from extender.planner.actions.obstacles import obstacle
from extender.planner.actions.search import place_whole
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from muster.resources.vector import PODS


class Backfill:
    """The action that places best-effort gangs that wait only because of strict order, after the action `allocate`."""

    name = "backfill"

    def execute(self, session: Session) -> None:
        """Decide Place for best-effort gangs that fit and wait only because their queue is strictly ordered."""
        for waits in session.decided(decisions.Unschedulable):
            behind = waits.reason == reasons.queues.STRICT_ORDER
            if behind and _best_effort(waits.gang) and session.attempt(waits.gang, _try_to_place):
                session.decisions.remove(waits)


def _best_effort(gang: GangView) -> bool:
    """Return True if all pods of the gang are known and request no resources."""
    classes = gang.all_classes
    return bool(classes) and all(
        cls and not any(amount for name, amount in cls.requests.items() if name != PODS) for cls in classes
    )


def _try_to_place(session: Session, gang: GangView) -> bool:
    return wants_nodes(session, gang) and obstacle(session, gang) is None and place_whole(session, gang)
