"""Let gangs in: their pods may be created once the queue is open and the gang could run at all."""

import numpy as np

from extender.framework import decisions
from extender.framework.gangs import GangView
from extender.framework.session import Session
from muster.api.names import ROOT_QUEUE


class Enqueue:
    """Looks at gangs whose PodGroup is Pending (or has no phase yet)."""

    name = "enqueue"

    def execute(self, session: Session) -> None:
        """Decide Enqueue, or Unschedulable with the reason."""
        waiting = [gang for gang in session.snapshot.gangs if gang.group.status.phase in {"", "Pending"}]
        for gang in session.ordered_gangs(waiting):
            if gang.started:
                continue
            reason, message = _closed(session, gang) or _hopeless(session, gang) or ("", "")
            if reason:
                session.decide(decisions.Unschedulable(gang, reason, message))
            else:
                session.enqueued.add(gang.key)
                session.decide(decisions.Enqueue(gang))


def _closed(session: Session, gang: GangView) -> tuple[str, str] | None:
    """The queue must exist, be open and not be the root of the tree."""
    queue = session.snapshot.queues.get(gang.queue)
    if queue is None:
        return "QueueNotFound", f"queue {gang.queue!r} does not exist"
    if gang.queue == ROOT_QUEUE:
        return "QueueNotOpen", "queue 'root' holds other queues and takes no gangs"
    if not queue.open:
        return "QueueNotOpen", f"queue {gang.queue!r} is {queue.status.state}"
    return None


def _hopeless(session: Session, gang: GangView) -> tuple[str, str] | None:
    """A pod set whose minimum would not fit even if nothing else ran keeps the gang out."""
    for pod_set in gang.pod_sets:
        need = min(pod_set.minimum or (gang.min_member if len(gang.pod_sets) == 1 else 0), pod_set.replicas)
        if pod_set.cls is None or not need:
            continue
        room = session.room(pod_set.cls, session.snapshot.allocatable)
        most = int(np.minimum(np.where(session.codes(pod_set.cls) == 0, room, 0), need).sum())
        if most < need:
            return (
                "NotEnoughResources",
                f"{pod_set.name}: {need} pods start together, but even an empty cluster has room for {most} of them",
            )
    return None
