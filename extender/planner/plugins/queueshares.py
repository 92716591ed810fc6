"""The queues of one session: their allocations, in step with what the session places and evicts, and its answers."""

from collections.abc import Mapping
from contextlib import suppress

import numpy as np

from extender.planner.fairshare.allocations import Allocations
from extender.planner.fairshare.capacity import over_capacity, over_quota
from extender.planner.fairshare.order import Key, Row, Standing, compare, key_of
from extender.planner.fairshare.reclaim import Loss, ReclaimRules
from extender.planner.fairshare.shares import UsageBook, fair_shares
from extender.planner.fairshare.tree import Shares
from extender.planner.framework.answers import QueueRefusal, QueueStanding
from extender.planner.framework.demand import minimum_amounts
from extender.planner.framework.operations import Eviction, Operation, Scenario
from extender.planner.framework.session import Session
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from muster.api.kubernetes.meta import parse_time
from muster.resources.vector import Vector, vector


class QueueShares:
    """The queues of one session; the allocations follows what the session places and evicts."""

    def __init__(
        self,
        session: Session,
        allocations: Allocations,
        *,
        rounding: str,
        usage_weight: float,
        multiplier: float,
        usage: UsageBook | None = None,
    ) -> None:
        self.session = session
        self.allocations = allocations
        self._rounding = rounding
        self._usage_weight = usage_weight
        self._multiplier = multiplier
        self._usage = usage
        self._rules: ReclaimRules | None = None
        """As things were when the gang was found that wants to reclaim now."""
        self._fair: Shares | None = None
        self._standings: list[tuple[int, Standing] | None] = [None] * len(allocations.tree.names)
        self._keys: dict[tuple[int, Row], tuple[int, Key]] = {}
        self._wanted: dict[str, Row] = {}
        self._rows: dict[str, int] = {}
        self._quota = allocations.tree.quota

    @property
    def fair(self) -> Shares:
        """The fair share of every queue, divided at the first question."""
        if self._fair is None:
            rounding = "kai" if self._rounding == "kai" else "exact"
            past = None
            if self._usage is not None:
                past = {name: self._row(mean) for name, mean in self._usage.means.items()}
            self._fair = fair_shares(self.allocations, rounding, self._usage_weight, past)  # type: ignore[arg-type]
        return self._fair

    def _row(self, amounts: Mapping[str, float]) -> Shares:
        row = np.zeros(len(self.allocations.total), dtype=np.float64)
        for resource, amount in amounts.items():
            column = self.session.snapshot.axis.get(resource)
            if column is not None:
                row[column] = amount
        return row

    def _vector(self, amounts: Amounts | Shares) -> Vector:
        axis = self.session.snapshot.axis
        return {name: int(amounts[row]) for name, row in axis.items() if amounts[row]}

    def keep_usage(self, book: UsageBook) -> None:
        """Goes on with what queues used over time; the first time with what their status says."""
        now = self.session.now
        if book.at is None:
            for name, queue in self.session.snapshot.queues.items():
                with suppress(ValueError, OverflowError):  # what cannot be read is as if it had not been kept
                    if queue.status.usage and (at := parse_time(queue.status.usage_time)) is not None:
                        book.load(name, vector(queue.status.usage), at, now)
        names = self.allocations.tree.names
        book.advance(now, {name: self._vector(self.allocations.allocated[row]) for row, name in enumerate(names)})

    def standings(self) -> dict[str, QueueStanding]:
        """Where every queue stands, for its status."""
        tree = self.allocations.tree
        return {
            name: QueueStanding(
                self._vector(self.fair[row]),
                self._vector(tree.deserved[row]),
                None if self._usage is None else _whole(self._usage.means.get(name, {})),
            )
            for row, name in enumerate(tree.names)
        }

    # -- order ------------------------------------------------------------------------------------------------------

    def order(self, left: GangView, right: GangView) -> int:
        """Compares the queues right below the lowest common ancestor, each with the gang that it has in hand."""
        tree = self.allocations.tree
        one, other = tree.fork(tree.row(left.queue), tree.row(right.queue))
        if one == other:
            return 0
        return compare(self._key(one, left), self._key(other, right))

    def key(self, queue: str, gang: GangView) -> Key:
        """The same as a key, for queues right below one that they have in common."""
        return self._key(self.allocations.tree.row(queue), gang)

    def _standing(self, row: int) -> Standing:
        known, version = self._standings[row], self.allocations.versions[row]
        if known is not None and known[0] == version:
            return known[1]
        tree = self.allocations.tree
        standing = Standing(
            allocated=self.allocations.allocated[row].tolist(),
            fair=self.fair[row].tolist(),
            quota=self._quota[row].tolist(),
            limit=tree.limit[row].tolist(),
            total=self.allocations.total.tolist(),
            priority=tree.priority[row],
            born=tree.born[row],
        )
        self._standings[row] = version, standing
        return standing

    def _key(self, row: int, gang: GangView) -> Key:
        wanted = self._wanted.get(gang.key)
        if wanted is None:
            wanted = self._wanted[gang.key] = tuple(minimum_amounts(self.session.snapshot, gang).tolist())
        known, version = self._keys.get((row, wanted)), self.allocations.versions[row]
        if known is not None and known[0] == version:
            return known[1]
        key = key_of(self._standing(row), wanted)
        self._keys[row, wanted] = version, key
        return key

    # -- what a queue refuses ---------------------------------------------------------------------------------------

    def over_capacity(self, gang: GangView, amounts: Amounts) -> QueueRefusal | None:
        """The queue, the gang's or one above it, that would have more than it may; None if none would."""
        tree = self.allocations.tree
        return over_capacity(self.allocations, self.session.snapshot.axis, tree.row(gang.queue), amounts)

    def over_quota(self, gang: GangView, amounts: Amounts) -> QueueRefusal | None:
        """The queue that would have more than it deserves, with a gang that may not be displaced, or None."""
        if gang.preemptable or not self.allocations.tree.quoted.any():
            return None
        tree = self.allocations.tree
        return over_quota(self.allocations, self.session.snapshot.axis, tree.row(gang.queue), amounts)

    # -- reclaiming -------------------------------------------------------------------------------------------------

    def can_reclaim(self, gang: GangView, amounts: Amounts) -> bool:
        """True if the gang's queue would stay within its share; remembers how things are before anything is tried."""
        allocations = self.allocations
        rules = ReclaimRules(allocations.tree, self.fair, allocations.allocated, allocations.fixed, self._multiplier)
        if not rules.may_start(allocations.tree.row(gang.queue), amounts, fixed=not gang.preemptable):
            return False
        self._rules = ReclaimRules(
            allocations.tree, self.fair, allocations.allocated.copy(), allocations.fixed.copy(), self._multiplier
        )
        return True

    def reclaimable(self, gang: GangView, victim: GangView) -> bool:
        """True if the victim's queue, and those above it up to the common one, let others reclaim from them."""
        tree = self.allocations.tree
        mine, other = tree.row(gang.queue), tree.row(victim.queue)
        gains, loses = tree.fork(mine, other)
        if gains == loses or not victim.preemptable:
            return False
        chain = tree.chains[other]
        return all(tree.reclaimable[row] for row in chain[: chain.index(loses) + 1])

    def reclaim_agreed(self, scenario: Scenario) -> bool:
        """True if the rules of reclaiming allow it, as things were before the trial; pods that move are no loss."""
        rules, row_of = self._rules, self.allocations.tree.row
        if rules is None:
            return False
        losses = [Loss(row_of(chunk.gang.queue), chunk.amounts) for chunk in scenario.chunks if not chunk.moved]
        return rules.validate(
            row_of(scenario.gang.queue),
            scenario.requested,
            losses,
            fixed=not scenario.gang.preemptable,
            strict=self._rounding == "kai",
        )

    def allocated_of(self, queue: str) -> Amounts:
        """The amounts that a queue and those below it use, without pods that are being deleted."""
        amounts: Amounts = self.allocations.allocated[self.allocations.tree.row(queue)].copy()
        return amounts

    def deserved_of(self, queue: str) -> Shares:
        """The amounts that a queue deserves; one above others deserves their sum where it says nothing itself."""
        share: Shares = self.allocations.tree.deserved[self.allocations.tree.row(queue)].copy()
        return share

    def fair_share_of(self, queue: str) -> Shares:
        """The fair share of a queue."""
        share: Shares = self.fair[self.allocations.tree.row(queue)].copy()
        return share

    # -- what the session does --------------------------------------------------------------------------------------

    def placed(self, operation: Operation | Eviction) -> None:
        """Members of a gang have got a place, or keep theirs after all."""
        self._count(operation, 1)

    def taken_back(self, operation: Operation | Eviction) -> None:
        """They have lost it again, as it was only a trial, or are to go."""
        self._count(operation, -1)

    def _count(self, operation: Operation | Eviction, sign: int) -> None:
        gang = operation.gang
        self.allocations.place(
            self.allocations.tree.row(gang.queue), operation.amount, sign, fixed=not gang.preemptable
        )


def _whole(amounts: Mapping[str, float]) -> Vector:
    return {name: round(amount) for name, amount in amounts.items() if round(amount)}
