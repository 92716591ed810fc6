"""Writes of the condition PodScheduled and of eviction annotations to pods, at limited rates.

Each change of a condition costs a write of a pod. A condition is therefore written only if it changes, only after the
gang has waited for a moment, and at most once every few seconds. The total rate of writes for all gangs is also
limited. The last condition is not kept in memory, because the pod contains it.

A pod gets the annotations about eviction when it is bound; `EvictionAnnotations` applies later changes of the queue.
Annotations that Muster has not written stay unchanged.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

from extender.planner import reasons
from extender.planner.framework.decisions import AnnotateEviction, SetCondition
from extender.planner.framework.session import Session
from extender.planner.scaleup.preferences import EVICTION_KEYS, annotated, evictable_of
from extender.planner.state.gangs import GangView
from extender.planner.state.pods import PodRecord
from muster.api.muster.reason import NOTHING, Reason

SETTLE_S = 2.0
"""Time, in seconds, before a gang's first condition is written, because most gangs start earlier."""
SENTENCE_EVERY_S = 5.0
"""Minimum time, in seconds, between two messages of one gang; the message may change with every node."""
ASKS_PER_S = 100.0
"""Pods per second that begin or stop to request nodes; a gang's pods should begin within seconds."""
ASKS_AT_ONCE = 100.0
SENTENCES_PER_S = 10.0
SENTENCES_AT_ONCE = 10.0
ANNOTATIONS_PER_S = 20.0
ANNOTATIONS_AT_ONCE = 20.0


class WaitingMessage(NamedTuple):
    """The message to the pods of one waiting gang, and the gang's request for nodes, in this cycle."""

    gang: GangView
    why: Reason
    asks: Mapping[str, int] | None = None
    """Maps a pod set to the number of its pods that request nodes; None if no pod requests nodes."""


class Bucket:
    """A token bucket with `rate` tokens a second and at most `most` tokens."""

    def __init__(self, rate: float, most: float) -> None:
        self._rate, self._most = rate, most
        self.left = most
        self._at: float | None = None

    def fill(self, now: float) -> None:
        """Add the tokens of the time that has passed; `now` is in seconds."""
        passed = max(0.0, now - self._at) if self._at is not None else 0.0
        self.left, self._at = min(self._most, self.left + passed * self._rate), now

    def take_token(self) -> bool:
        """Take a token; return False if no token is left."""
        if self.left < 1:
            return False
        self.left -= 1
        return True


@dataclass(slots=True)
class _Written:
    """The last writes to one gang's pods."""

    since: float
    message_at: float = 0.0
    view: GangView | None = None
    """The view of the gang at the time when all its pods were last up to date."""
    words: tuple[Reason, Mapping[str, int] | None] = (NOTHING, None)
    """The last written reason, and the last written numbers of pods that request nodes."""
    may_ask: bool = True
    """True if some pods may still have the condition by which they request nodes."""


class PodConditions:
    """Writer of the conditions of pods, at limited rates."""

    def __init__(self) -> None:
        self._written: dict[str, _Written] = {}
        self._asks = Bucket(ASKS_PER_S, ASKS_AT_ONCE)
        self._sentences = Bucket(SENTENCES_PER_S, SENTENCES_AT_ONCE)

    def writes(self, now: float, messages: Iterable[WaitingMessage], waiting: AbstractSet[str]) -> list[SetCondition]:
        """Return the writes, with gangs that request nodes first; `now` is in seconds since the epoch.

        `waiting` contains the UIDs of all waiting gangs, also of gangs without a message in this cycle.
        """
        self._asks.fill(now)
        self._sentences.fill(now)
        for uid in self._written.keys() - waiting:
            del self._written[uid]
        found: list[SetCondition] = []
        for message in sorted(messages, key=lambda message: message.asks is None):
            known = self._written.setdefault(message.gang.uid, _Written(now))
            changed = known.view is not message.gang or known.words != message[1:]
            if changed and now - known.since >= SETTLE_S:
                found += self._of_one(now, message, known)
        return found

    def _of_one(self, now: float, message: WaitingMessage, known: _Written) -> Iterator[SetCondition]:
        too_early = now - known.message_at < SENTENCE_EVERY_S or self._sentences.left < 1
        if too_early and message.asks is None and not known.may_ask:
            return
        new = differences(message)
        if message.asks is not None:
            known.may_ask = True
        elif all(write.asks == write.pod.asks for write in new):
            known.may_ask = False
        if not new:
            known.view, known.words = message.gang, (message.why, message.asks)
        for write in new:
            if write.asks != write.pod.asks:
                if self._asks.take_token():
                    yield write
            elif not too_early and self._sentences.take_token():
                known.message_at = now
                yield write


def differences(message: WaitingMessage) -> list[SetCondition]:
    """Return the conditions to write.

    The gang's first pod gets the gang's message. Other pods that request nodes get a reference to the first pod.
    """
    members = gated_pods(message.gang)
    if not members:
        return []
    first = members[0]
    left = Counter(message.asks or {})
    found = []
    for pod in members:
        asks = pod.slot is not None and left[pod.slot.pod_set] > 0
        if asks and pod.slot is not None:
            left[pod.slot.pod_set] -= 1
        more = reasons.scaleup.after_the_first(pod=first.name) if asks else ""
        words = str(message.why) if pod is first else more
        if (pod.asks, pod.says) != (asks, words):
            found.append(SetCondition(message.gang, pod, asks, words))
    return found


def gated_pods(gang: GangView) -> list[PodRecord]:
    """Return the gang's pods with Muster's gate and no other gates, in the order of pod sets and ranks."""
    return [
        pod
        for pod_set in gang.pod_sets
        for _, pod in sorted(pod_set.waiting.items())
        if pod.gated and not pod.other_gates
    ]


class EvictionAnnotations:
    """Writer of eviction annotations, which remembers the gangs whose pods are up to date."""

    def __init__(self) -> None:
        self._settled: dict[str, tuple[GangView, Mapping[str, str]]] = {}
        """Maps a gang's UID to its view and its queue's annotations at the time when all its pods were last up to
        date."""
        self._bucket = Bucket(ANNOTATIONS_PER_S, ANNOTATIONS_AT_ONCE)

    def decide(self, session: Session) -> None:
        """Decide AnnotateEviction for pods of gangs that have started, at a limited rate."""
        self._bucket.fill(session.now)
        annotations: dict[str, Mapping[str, str]] = {}
        settled, self._settled = self._settled, {}
        for gang in session.snapshot.gangs:
            if not gang.started:
                continue
            if gang.queue not in annotations:
                annotations[gang.queue] = annotated(session.snapshot.queues, gang.queue, EVICTION_KEYS)
            of_queue, known = annotations[gang.queue], settled.get(gang.uid)
            if known is not None and known[0] is gang and known[1] == of_queue:
                self._settled[gang.uid] = known
            elif self._bucket.left >= 1:
                value = evictable_of(of_queue, gang.group, gang.pods[0].labels if gang.pods else {})
                alive = (pod for pod in gang.pods if pod.alive and pod.evictable != value)
                wrong = [pod for pod in alive if (pod.evictable_by_us if pod.evictable else value)]
                for pod in wrong:
                    if self._bucket.take_token():
                        session.decide(AnnotateEviction(gang, pod, value))
                if not wrong:
                    self._settled[gang.uid] = (gang, of_queue)
