"""Fair shares of queues: whose turn it is, what a queue refuses, and who may take from whom.

The arithmetic is in `extender.fairshare`; here it meets a session. What gangs wait for is added up anew only for gangs
that changed, the tree is made anew only when queues change, and fair shares are divided when somebody asks for them.
"""

from collections.abc import Mapping
from typing import Any

from extender.fairshare.accounts import Accounts
from extender.fairshare.capacity import over_capacity, over_quota
from extender.fairshare.ledger import Ledger
from extender.fairshare.order import Key, Row, Standing, compare, key_of
from extender.fairshare.preemptibility import preemptible
from extender.fairshare.reclaim import Books, Loss
from extender.fairshare.shares import fair_shares
from extender.fairshare.tree import Shares
from extender.framework.demand import minimum_amounts
from extender.framework.refusal import QueueRefusal
from extender.framework.registry import refuse_arguments
from extender.framework.scenario import Scenario
from extender.framework.session import Session
from extender.framework.statement import Eviction, Operation
from extender.state.amounts import Amounts
from extender.state.gangs import GangView

MULTIPLIER = "relcaimerSaturationMultiplier"
"""KAI's spelling, which is the live one."""
ARGUMENTS = ("rounding", "kValue", MULTIPLIER)


class Proportion:
    """Its arguments: `rounding` (exact or kai), `kValue`, and with `kai` also `relcaimerSaturationMultiplier`.

    `kValue` is how much past usage counts: 1 if it is not given, 0 for not at all.
    """

    name = "proportion"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments, ARGUMENTS)
        self._rounding = str(arguments.get("rounding", "exact"))
        if self._rounding not in {"exact", "kai"}:
            raise ValueError(f"plugin 'proportion': rounding is {self._rounding!r}; it may be 'exact' or 'kai'")
        self._usage_weight = self._number(arguments, "kValue")
        self._multiplier = self._number(arguments, MULTIPLIER)
        if self._multiplier < 1:
            raise ValueError(f"plugin 'proportion': {MULTIPLIER} is {self._multiplier}; it must be 1 or more")
        self._accounts = Accounts()

    def _number(self, arguments: Mapping[str, Any], key: str) -> float:
        try:
            return float(arguments.get(key, 1.0))
        except (TypeError, ValueError):
            raise ValueError(f"plugin 'proportion': {key} is {arguments[key]!r}, which is no number") from None

    def on_session_open(self, session: Session) -> None:
        """Registers everything that queues decide, over an account of this session's own."""
        shares = QueueShares(
            session,
            self._accounts.ledger(session.snapshot),
            rounding=self._rounding,
            usage_weight=self._usage_weight,
            multiplier=self._multiplier,
        )
        session.add("queue_order", shares.order)
        session.add("is_job_over_queue_capacity", shares.over_capacity)
        session.add("is_non_preemptible_job_over_queue_quota", shares.over_quota)
        session.add("allocated", shares.placed)
        session.add("deallocated", shares.taken_back)
        session.add("evicted", shares.taken_back)
        session.add("unevicted", shares.placed)
        session.add("can_reclaim_resources", shares.can_reclaim)
        session.add("reclaim_victim_filter", shares.reclaimable)
        session.add("reclaim_scenario_validator", shares.reclaim_agreed)
        session.add("get_queue_allocated_resources", shares.allocated_of)
        session.add("get_queue_deserved_resources", shares.deserved_of)
        session.add("get_queue_fair_share", shares.fair_share_of)

    def on_session_close(self, session: Session) -> None:
        """Keeps what was added up, for the next cycle."""


class QueueShares:
    """The queues of one session; the ledger follows what the session places and evicts."""

    def __init__(
        self, session: Session, ledger: Ledger, *, rounding: str, usage_weight: float, multiplier: float
    ) -> None:
        self.session = session
        self.ledger = ledger
        self._rounding = rounding
        self._usage_weight = usage_weight
        self._multiplier = multiplier
        self._books: Books | None = None
        """As things were when the gang was found that wants to reclaim now."""
        self._fair: Shares | None = None
        self._standings: list[tuple[int, Standing] | None] = [None] * len(ledger.tree.names)
        self._keys: dict[tuple[int, Row], tuple[int, Key]] = {}
        self._wanted: dict[str, Row] = {}
        self._rows: dict[str, int] = {}
        self._quota = ledger.tree.quota

    @property
    def fair(self) -> Shares:
        """The fair share of every queue, divided at the first question."""
        if self._fair is None:
            rounding = "kai" if self._rounding == "kai" else "exact"
            self._fair = fair_shares(self.ledger, rounding, self._usage_weight)  # type: ignore[arg-type]
        return self._fair

    # -- whose turn it is -------------------------------------------------------------------------------------------

    def order(self, left: GangView, right: GangView) -> int:
        """Compares the queues right below the lowest common ancestor, each with the gang that it has in hand."""
        tree = self.ledger.tree
        one, other = tree.fork(tree.row(left.queue), tree.row(right.queue))
        if one == other:
            return 0
        return compare(self._standing(one), self._standing(other), self._key(one, left), self._key(other, right))

    def _standing(self, row: int) -> Standing:
        known, version = self._standings[row], self.ledger.versions[row]
        if known is not None and known[0] == version:
            return known[1]
        tree = self.ledger.tree
        standing = Standing(
            allocated=self.ledger.allocated[row].tolist(),
            fair=self.fair[row].tolist(),
            quota=self._quota[row].tolist(),
            limit=tree.limit[row].tolist(),
            total=self.ledger.total.tolist(),
            priority=tree.priority[row],
            born=tree.born[row],
        )
        self._standings[row] = version, standing
        return standing

    def _key(self, row: int, gang: GangView) -> Key:
        wanted = self._wanted.get(gang.key)
        if wanted is None:
            wanted = self._wanted[gang.key] = tuple(minimum_amounts(self.session.snapshot, gang).tolist())
        known, version = self._keys.get((row, wanted)), self.ledger.versions[row]
        if known is not None and known[0] == version:
            return known[1]
        key = key_of(self._standing(row), wanted)
        self._keys[row, wanted] = version, key
        return key

    # -- what a queue refuses ---------------------------------------------------------------------------------------

    def over_capacity(self, gang: GangView, amounts: Amounts) -> QueueRefusal | None:
        """Whether the gang's queues would have more than they may."""
        tree = self.ledger.tree
        return over_capacity(self.ledger, self.session.snapshot.axis, tree.row(gang.queue), amounts)

    def over_quota(self, gang: GangView, amounts: Amounts) -> QueueRefusal | None:
        """Whether a gang that may not be displaced would take more than its queues deserve."""
        if preemptible(gang) or not self.ledger.tree.quoted.any():
            return None
        tree = self.ledger.tree
        return over_quota(self.ledger, self.session.snapshot.axis, tree.row(gang.queue), amounts)

    # -- who may take from whom -------------------------------------------------------------------------------------

    def can_reclaim(self, gang: GangView, amounts: Amounts) -> bool:
        """Whether the gang's queue would stay within its share; remembers how things are before anything is tried."""
        ledger = self.ledger
        books = Books(ledger.tree, self.fair, ledger.allocated, ledger.fixed, self._multiplier)
        if not books.may_start(ledger.tree.row(gang.queue), amounts, fixed=not preemptible(gang)):
            return False
        self._books = Books(ledger.tree, self.fair, ledger.allocated.copy(), ledger.fixed.copy(), self._multiplier)
        return True

    def reclaimable(self, gang: GangView, victim: GangView) -> bool:
        """Whether the victim's queue, and those above it up to the common one, let others reclaim from them."""
        tree = self.ledger.tree
        mine, other = tree.row(gang.queue), tree.row(victim.queue)
        gains, loses = tree.fork(mine, other)
        if gains == loses or not preemptible(victim):
            return False
        chain = tree.chains[other]
        return all(tree.reclaimable[row] for row in chain[: chain.index(loses) + 1])

    def reclaim_agreed(self, scenario: Scenario) -> bool:
        """Whether the rules of reclaiming allow it, as things were before the trial; pods that move are no loss."""
        books, row_of = self._books, self.ledger.tree.row
        if books is None:
            return False
        losses = [Loss(row_of(chunk.gang.queue), chunk.amounts) for chunk in scenario.chunks if not chunk.moved]
        return books.validate(
            row_of(scenario.gang.queue),
            scenario.requested,
            losses,
            fixed=not preemptible(scenario.gang),
            strict=self._rounding == "kai",
        )

    def allocated_of(self, queue: str) -> Amounts:
        """What a queue and those below it use, without pods that are being deleted."""
        amounts: Amounts = self.ledger.allocated[self.ledger.tree.row(queue)].copy()
        return amounts

    def deserved_of(self, queue: str) -> Shares:
        """What a queue deserves, which for one above others is the sum of theirs where it says nothing itself."""
        share: Shares = self.ledger.tree.deserved[self.ledger.tree.row(queue)].copy()
        return share

    def fair_share_of(self, queue: str) -> Shares:
        """What a queue is due."""
        share: Shares = self.fair[self.ledger.tree.row(queue)].copy()
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
        self.ledger.place(self.ledger.tree.row(gang.queue), operation.amount, sign, fixed=not preemptible(gang))
