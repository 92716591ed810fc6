"""What cluster-autoscaler is told about the eviction of pods on nodes: what their queue says now.

Most pods are told as they are bound, in the same write; this is for those that were bound before their queue changed
its mind. An annotation that is not Muster's own stays as it is.
"""

from extender.planner.framework.decisions import TellEviction
from extender.planner.framework.session import Session
from extender.planner.scaleup.voices import Bucket
from extender.planner.scaleup.wishes import annotated, evictable_of
from extender.planner.state.gangs import GangView
from muster.api.names import SAFE_TO_EVICT

PER_S = 20.0
AT_ONCE = 20.0


class Evictions:
    """Remembers which gangs have nothing to be told."""

    def __init__(self) -> None:
        self._settled: dict[str, tuple[GangView, str]] = {}
        self._bucket = Bucket(PER_S, AT_ONCE)

    def decide(self, session: Session) -> None:
        """Decides TellEviction for pods of gangs that have started, so many in a second."""
        self._bucket.fill(session.now)
        values: dict[str, str] = {}
        settled, self._settled = self._settled, {}
        for gang in session.snapshot.gangs:
            if not gang.started:
                continue
            if gang.queue not in values:
                said = annotated(session.snapshot.queues, gang.queue, (SAFE_TO_EVICT,))
                values[gang.queue] = evictable_of(said)
            value, known = values[gang.queue], settled.get(gang.uid)
            if known is not None and known[0] is gang and known[1] == value:
                self._settled[gang.uid] = known
            elif self._bucket.left >= 1:
                alive = (pod for pod in gang.pods if pod.alive and pod.evictable != value)
                wrong = [pod for pod in alive if (pod.evictable_by_us if pod.evictable else value)]
                for pod in wrong:
                    if self._bucket.take():
                        session.decide(TellEviction(gang, pod, value))
                if not wrong:
                    self._settled[gang.uid] = (gang, value)
