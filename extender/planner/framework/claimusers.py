"""Users of the claims to devices that pods name, in one session, trials included.

The API lets `MOST_PODS` pods use one claim, or any number where their native PodGroup shares it. Its devices count once
in each queue whose pods use it, however many do.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from extender.planner.dynamic.needs import SharedClaim
from extender.planner.framework.operations import Eviction, Operation
from extender.planner.state.podclass import PodClass
from muster.api.kubernetes.devices import MOST_PODS

ANY = int(np.iinfo(np.int64).max)


class ClaimUsers:
    """By claim, the pods on nodes and the placed slots that use it: in all, and by queue."""

    def __init__(self, users: Mapping[str, int], queues: Mapping[str, Mapping[str, int]]) -> None:
        self._users = Counter(dict(users))
        self._queues = Counter({(key, name): count for key, found in queues.items() for name, count in found.items()})

    def count(self, entry: Operation | Eviction, sign: int) -> None:
        """Follow a step of a trial."""
        for claim in entry.cls.needs.named:
            self._users[claim.key] += sign * entry.size
            self._queues[claim.key, entry.gang.queue] += sign * entry.size

    def of(self, key: str, queue: str | None = None) -> int:
        """Return the number of users of a claim, in a queue or in all."""
        return self._users[key] if queue is None else self._queues[key, queue]

    def hold(self, cls: PodClass) -> int:
        """Return the number of further pods of this class that may use the claims which it names."""
        claims = (claim for claim in cls.needs.named if not claim.grouped)
        return min((max(0, MOST_PODS - self._users[claim.key]) for claim in claims), default=ANY)

    def full(self, cls: PodClass, pods: int) -> str:
        """Return the claim that so many further pods of this class may not use; empty if there is none."""
        named = (claim.key for claim in cls.needs.named if not claim.grouped)
        return next((key for key in named if self._users[key] + pods > MOST_PODS), "")

    def new(self, claims: Iterable[SharedClaim], queue: str) -> list[SharedClaim]:
        """Return the claims that no pod of the queue uses, each once."""
        return [claim for claim in dict.fromkeys(claims) if not self._queues[claim.key, queue]]
