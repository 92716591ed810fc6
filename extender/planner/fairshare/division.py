"""Division of one resource among the queues of one parent, by KAI-Scheduler's formulas (resource_division.go).

Every queue first gets its quota (`deserved`), but not more than its demand. The rest of the resource is divided, by
weight and in whole units, among the queues of the highest priority with unmet demand. Queues of lower priorities get
what is then left of the resource. The setting `rounding` selects one of two methods:

* `kai` computes the same numbers as KAI-Scheduler, including its quirks. Quotas are met in full even if their sum
  exceeds the total. Units that remain after rounding are distributed once all priorities have been processed. Queues of
  a lower priority may therefore get units that queues of a higher priority requested, and a queue may get more than it
  requested.
* `exact` never distributes more than exists or is requested, and serves one priority completely before the next
  priority. Quotas whose sum exceeds the total are reduced in proportion; guarantees are reduced last.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import floor, fsum, inf
from typing import Literal

Rounding = Literal["kai", "exact"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueClaim:
    """One queue's claim to one resource, in units that cannot be split."""

    deserved: float = 0.0
    """The queue's quota; `inf` means the total amount of the resource."""
    weight: float = 1.0
    request: float = 0.0
    """Sum of the amounts that the queue uses and requests."""
    limit: float = inf
    priority: int = 0
    usage: float = 0.0
    """Past usage of the queue, as a fraction (0 to 1) of the total amount of the resource."""
    guarantee: float = 0.0
    """The part of the queue's quota that is reduced last if the quotas exceed the total."""
    born: tuple[str, str] = ("", "")
    """Creation time and name of the queue; of two otherwise equal claims, the claim of the older queue comes first."""

    @property
    def requestable(self) -> float:
        """Maximum amount that the queue may get."""
        return min(self.limit, self.request)


def divide(
    total: float, claims: Sequence[QueueClaim], rounding: Rounding = "exact", usage_weight: float = 1.0
) -> list[float]:
    """Return each claim's fair share, in the given order; `usage_weight` (KAI's kValue) weighs past usage."""
    by_age = sorted(range(len(claims)), key=lambda index: claims[index].born)
    split = _kai if rounding == "kai" else _exact
    shares = split(total, [claims[index] for index in by_age], usage_weight)
    result = [0.0] * len(claims)
    for index, share in zip(by_age, shares, strict=True):
        result[index] = share
    return result


def _quota(total: float, claim: QueueClaim) -> float:
    return max(0.0, min(total if claim.deserved == inf else claim.deserved, claim.requestable))


def _buckets(claims: Sequence[QueueClaim]) -> list[list[int]]:
    """Return the positions of the claims, grouped by the queues' priority, the highest priority first."""
    order = sorted(range(len(claims)), key=lambda index: -claims[index].priority)
    return [list(group) for _, group in groupby(order, key=lambda index: claims[index].priority)]


def _pulls(claims: Sequence[QueueClaim], members: Sequence[int], usage_weight: float) -> dict[int, float]:
    """Return each claim's weight in the division of the remaining units: its own weight minus excess past usage."""
    weights = fsum(claims[index].weight for index in members)
    if weights <= 0:
        return dict.fromkeys(members, 0.0)
    pulls = {}
    for index in members:
        normal = claims[index].weight / weights
        pulls[index] = max(0.0, normal + usage_weight * (normal - claims[index].usage))
    return pulls


def _kai(total: float, claims: Sequence[QueueClaim], usage_weight: float) -> list[float]:
    fair = [_quota(total, claim) for claim in claims]
    left = total - sum(fair)
    if left <= 0:
        return fair
    fractions: dict[int, float] = {}
    for bucket in _buckets(claims):
        again = True
        while again and left > 0:
            left, again = _kai_round(left, claims, bucket, fair, fractions, usage_weight)
    for bucket in _buckets(claims):
        for index in sorted((each for each in bucket if fractions.get(each)), key=lambda each: -fractions[each]):
            unit = min(1.0, left)
            fair[index] += unit
            left -= unit
    return fair


def _kai_round(
    left: float,
    claims: Sequence[QueueClaim],
    bucket: Sequence[int],
    fair: list[float],
    fractions: dict[int, float],
    usage_weight: float,
) -> tuple[float, bool]:
    """Distribute the rest once by weight; return what remains, and True if a claim needed less than its part."""
    unsatisfied = [index for index in bucket if fair[index] < claims[index].requestable]
    pulls = _pulls(claims, unsatisfied, usage_weight)
    pull = fsum(pulls.values())
    if not pull:
        return left, False
    again, amount = False, left
    for index in unsatisfied:
        part = amount * pulls[index] / pull
        want = claims[index].requestable - fair[index]
        if want <= part:
            fractions.pop(index, None)
            given, again = want, again or want < part
        else:
            given = float(floor(part))
            fractions[index] = part - given
        fair[index] += given
        left -= given
    return left, again


def _exact(total: float, claims: Sequence[QueueClaim], usage_weight: float) -> list[float]:
    total = max(0.0, total)
    quotas = [_quota(total, claim) for claim in claims]
    if fsum(quotas) > total:
        return _shrunk(total, claims, quotas)
    fair = quotas
    left = total - fsum(fair)
    for bucket in _buckets(claims):
        wants = {index: claims[index].requestable - fair[index] for index in bucket}
        hungry = [index for index in bucket if wants[index] > 0 and claims[index].weight]
        while hungry and left > 0:
            pulls = _pulls(claims, hungry, usage_weight)
            if not any(pulls.values()):
                pulls = {index: claims[index].weight for index in hungry}
            given = _fill(left, {index: wants[index] for index in hungry}, pulls)
            left = max(0.0, left - fsum(given.values()))
            for index, amount in given.items():
                fair[index] += amount
                wants[index] -= amount
            # claims with weight 0 because of past usage get the rest
            hungry = [index for index in hungry if wants[index] > 0 and pulls[index] == 0 and claims[index].weight]
    return fair


def _shrunk(total: float, claims: Sequence[QueueClaim], quotas: list[float]) -> list[float]:
    """Return the quotas, reduced if their sum exceeds the total amount of the resource.

    If quotas are reduced, guarantees are met first. The rest of the resource is divided in proportion to the excess of
    each quota over its guarantee.
    """
    kept = [min(claim.guarantee, quota) for claim, quota in zip(claims, quotas, strict=True)]
    if fsum(kept) > total:
        given = _fill(total, dict(enumerate(kept)), dict(enumerate(kept)))
        return [given[index] for index in range(len(claims))]
    wants = {index: quotas[index] - kept[index] for index in range(len(claims))}
    deserved = [total if claim.deserved == inf else claim.deserved for claim in claims]
    pulls = {index: max(0.0, deserved[index] - kept[index]) for index in wants}
    more = _fill(total - fsum(kept), wants, pulls)
    return [kept[index] + more[index] for index in range(len(claims))]


def _fill(amount: float, wants: dict[int, float], pulls: dict[int, float]) -> dict[int, float]:
    """Distribute the `amount` in whole units, in proportion to the weights, up to the demand of each claim.

    The largest fractions get the units that remain after rounding; among equal fractions, the oldest claim comes first.
    """
    given = dict.fromkeys(wants, 0.0)
    hungry = [index for index in wants if wants[index] > 0 and pulls[index] > 0]
    while hungry:
        pull = fsum(pulls[index] for index in hungry)
        parts = {index: amount * (pulls[index] / pull) for index in hungry}
        enough = [index for index in hungry if wants[index] <= parts[index]]
        if not enough:
            _round(amount, parts, wants, given)
            break
        for index in enough:
            given[index] = wants[index]
        amount = max(0.0, amount - fsum(given[index] for index in enough))
        satisfied = set(enough)
        hungry = [index for index in hungry if index not in satisfied]
    return given


def _round(amount: float, parts: dict[int, float], wants: dict[int, float], given: dict[int, float]) -> None:
    for index, part in parts.items():
        given[index] = float(floor(part))
    left = amount - fsum(given[index] for index in parts)
    by_fraction = sorted(parts, key=lambda index: given[index] - parts[index])
    while left > 0:
        before = left
        for index in by_fraction:
            unit = max(0.0, min(1.0, left, wants[index] - given[index]))
            given[index] += unit
            left -= unit
        if left == before:
            return
