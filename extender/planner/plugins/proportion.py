"""Plugin for fair shares of queues: the order and the limits of queues, and the resources that they may reclaim.

The arithmetic is in the package `planner.fairshare`. Demands are added up again only for changed gangs, and the tree is
built again only when queues change. Fair shares are computed on first use in a cycle.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from operator import itemgetter
from typing import Any, ClassVar, cast

import numpy as np

from extender.planner.ask import amounts_of_claims
from extender.planner.dynamic.needs import SharedClaim
from extender.planner.fairshare.allocations import Accounts, Allocations
from extender.planner.fairshare.budgets import spent_budgets
from extender.planner.fairshare.division import Rounding
from extender.planner.fairshare.order import Key, QueueOrder, Row, compare
from extender.planner.fairshare.reclaim import Loss, ReclaimRules
from extender.planner.fairshare.refusals import (
    ClosingSizes,
    ModelLimits,
    beyond_quota,
    over_guarantee,
    over_quota,
    refusal,
)
from extender.planner.fairshare.shares import UsageMeans, fair_shares
from extender.planner.fairshare.tree import Shares, Sharing, sharing_of
from extender.planner.framework.answers import QueueRefusal, ReclaimState, StatusAmounts
from extender.planner.framework.operations import Eviction, Operation, Scenario
from extender.planner.framework.ordering import Keyed
from extender.planner.framework.registry import OwnArgument, PlainPlugin, duration_s, refuse_arguments
from extender.planner.framework.session import Session
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from muster.resources.vector import Vector, add, scale

MULTIPLIER = "relcaimerSaturationMultiplier"
"""Name of the argument for the saturation multiplier, spelled as in KAI-Scheduler's files."""
ROUNDING = "rounding"
HALF_LIFE = "halfLife"
ARGUMENTS = (ROUNDING, "kValue", MULTIPLIER, HALF_LIFE)


class Proportion(PlainPlugin):
    """The plugin `proportion`, which computes fair shares.

    Arguments: `rounding` (exact, kai), `kValue`, `halfLife`, `relcaimerSaturationMultiplier`. With a `halfLife` such as
    168h, past usage lowers a queue's share, weighted by `kValue` (default 1; 0 ignores past usage).
    `relcaimerSaturationMultiplier` has an effect only with the rounding `kai`.
    """

    name = "proportion"
    OWN_ARGUMENTS: ClassVar[Mapping[str, OwnArgument]] = {
        ROUNDING: OwnArgument("exact", "`exact`, or `kai` for exactly KAI-Scheduler's shares (docs/queues.md)"),
        HALF_LIFE: OwnArgument("", "half-life of past usage, e.g. `168h`; without it, past usage does not count"),
    }

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments, ARGUMENTS)
        rounding = str(arguments.get(ROUNDING, "exact"))
        if rounding not in {"exact", "kai"}:
            raise ValueError(f"plugin 'proportion': rounding is {rounding!r}; the value must be 'exact' or 'kai'")
        self.rounding = cast("Rounding", rounding)
        self.usage_weight = self._number(arguments, "kValue")
        self.multiplier = self._number(arguments, MULTIPLIER)
        if self.multiplier < 1:
            raise ValueError(f"plugin 'proportion': {MULTIPLIER} is {self.multiplier}; it must be 1 or more")
        self.usage: UsageMeans | None = None
        if HALF_LIFE in arguments:
            half_life_s = duration_s(self.name, arguments, HALF_LIFE, 0.0)
            if half_life_s <= 0:
                raise ValueError(f"plugin 'proportion': {HALF_LIFE} is {half_life_s:g} s; it must be more than 0")
            self.usage = UsageMeans(half_life_s)
        self._accounts = Accounts()
        self.closing = ClosingSizes()

    def _number(self, arguments: Mapping[str, Any], key: str) -> float:
        try:
            return float(arguments.get(key, 1.0))
        except (TypeError, ValueError):
            raise ValueError(f"plugin 'proportion': {key} is {arguments[key]!r}, which is not a number") from None

    def on_session_open(self, session: Session) -> None:
        """Register functions for the hooks about queues; the functions share one record of the queues' usage."""
        shares = QueueShares(session, self, self._accounts.allocations(session.snapshot))
        hooks = session.hooks
        hooks.queue_order.add(Keyed(shares.order, shares.key))
        hooks.is_job_over_queue_capacity.add(shares.over_capacity)
        hooks.is_non_preemptible_job_over_queue_quota.add(shares.over_quota)
        hooks.follow(shares.count)
        if shares.models:
            hooks.is_task_allocation_on_node_over_capacity.add(lambda gang, cls: shares.models.codes(gang.queue, cls))
        hooks.can_reclaim_resources.add(shares.can_reclaim)
        hooks.reclaim_standing.add(shares.reclaim_standing)
        hooks.reclaim_victim_filter.add(shares.reclaimable)
        hooks.reclaim_scenario_validator.add(shares.reclaim_agreed)
        hooks.holds_over_quota.add(lambda gang: gang.key in shares.beyond_quota)
        hooks.get_queue_allocated_resources.add(lambda queue: shares.allocations.allocated[shares.row(queue)].copy())
        hooks.get_queue_deserved_resources.add(lambda queue: shares.tree.deserved[shares.row(queue)])
        hooks.get_queue_fair_share.add(lambda queue: shares.fair[shares.row(queue)])
        hooks.queue_standings.add(shares.standings)


class QueueShares:
    """The queues of one session; placements and evictions of the session change the queues' allocations."""

    def __init__(self, session: Session, plugin: Proportion, allocations: Allocations) -> None:
        self._session = session
        self._plugin = plugin
        self.allocations = allocations
        self.tree, self.row = allocations.tree, allocations.tree.row
        self.limited = session.snapshot.limited.copy()
        self.limited.spent = spent_budgets(session.snapshot, session.now, session.inputs.usage)
        self._resources = sorted(session.snapshot.axis.items(), key=itemgetter(1))
        self.models = ModelLimits(session.snapshot, session.causes)
        self.closing = plugin.closing
        self.closing.begin(session.snapshot)
        self._rules: ReclaimRules | None = None
        """Rules for the last gang that may reclaim, with the allocations before any trial for it."""
        self._fair: Shares | None = None
        self._order = QueueOrder(allocations)
        self._wanted: dict[str, Row] = {}
        if plugin.usage is not None:
            self._keep_usage(plugin.usage)

    @property
    def fair(self) -> Shares:
        """The fair share of every queue, computed on first use."""
        if self._fair is None:
            past = None
            if self._plugin.usage is not None:
                past = {name: self._along_axis(mean) for name, mean in self._plugin.usage.means.items()}
            self._fair = fair_shares(self.allocations, self._plugin.rounding, self._plugin.usage_weight, past)
        return self._fair

    def _along_axis(self, amounts: Mapping[str, float]) -> Shares:
        row, axis = np.zeros(len(self.allocations.total)), self._session.snapshot.axis
        for resource in amounts.keys() & axis.keys():
            row[axis[resource]] = amounts[resource]
        return row

    def _keep_usage(self, means: UsageMeans) -> None:
        if means.at is None:
            means.load_all(self._session.snapshot.queues, self._session.now)
        allocated = self.allocations.allocated
        amounts = {name: self._session.snapshot.vector(allocated[row]) for row, name in enumerate(self.tree.names)}
        means.advance(self._session.now, amounts)

    def standings(self) -> dict[str, StatusAmounts]:
        """Return the resources of every queue for the queue's status."""
        usage, vector = self._plugin.usage, self._session.snapshot.vector
        past = {name: usage.rounded(name) for name in self.tree.names} if usage is not None else {}
        return {
            name: StatusAmounts(vector(self.fair[row]), vector(self.tree.deserved[row]), past.get(name))
            for row, name in enumerate(self.tree.names)
        }

    # -- order ------------------------------------------------------------------------------------------------------

    def order(self, left: GangView, right: GangView) -> int:
        """Compare the two queues' ancestors directly below their lowest common ancestor, each with its best gang."""
        one, other = self.tree.fork(self.row(left.queue), self.row(right.queue))
        return 0 if one == other else compare(self._key(one, left), self._key(other, right))

    def key(self, queue: str, gang: GangView) -> Key:
        """Return a queue's sort key for the comparison with other child queues of the same parent."""
        return self._key(self.row(queue), gang)

    def _key(self, row: int, gang: GangView) -> Key:
        wanted = self._wanted.get(gang.key)
        if wanted is None:
            least = self._session.amounts(self._session.ask(gang))
            wanted = self._wanted[gang.key] = tuple(least[self._order.weighed].tolist())
        return self._order.key(row, wanted, self.fair)

    # -- refusals and reclaiming ------------------------------------------------------------------------------------

    def over_capacity(self, gang: GangView, amounts: Amounts) -> QueueRefusal | None:
        """Return why the queue or an ancestor rejects the gang (closed, full, others' guarantees); None if accepted."""
        if (closed := self.closing.refusal(gang, amounts)) is not None:
            return closed
        session, row, new = self._session, self.row(gang.queue), self._new_claims(gang)
        asked, named = self._charge(gang, amounts, new), [each.claim for each in new]
        over = self.limited.over_capability(gang.queue, asked, named)
        over = over or over_guarantee(self.allocations, session.snapshot.axis, row, amounts, new)
        if asked and over is None:
            over = self.limited.over_limit(gang.queue, gang.creator, asked, session.now, named)
        return refusal(over, gang.creator) if over else None

    def _charge(self, gang: GangView, amounts: Amounts, new: Sequence[Sharing]) -> Vector:
        """Return by how much these requests would increase what the queue is charged for the gang.

        Devices of claims that the queue does not use yet are charged in addition to the gang's minResources.
        """
        if not new:
            return self.limited.minimums.growth(gang.key, self._asked(gang, amounts))
        devices = sum((each.devices for each in new), np.zeros_like(amounts))
        growth = self.limited.minimums.growth(gang.key, self._asked(gang, amounts - devices))
        return add(growth, self._asked(gang, devices))

    def _asked(self, gang: GangView, amounts: Amounts) -> Vector:
        """Return the requests that the limits of the gang's queue must permit; empty if the queue has no limits."""
        if not self.limited.limits.above(gang.queue):
            return {}
        values = amounts.tolist()
        return {resource: values[row] for resource, row in self._resources if values[row]}

    def over_quota(self, gang: GangView, amounts: Amounts) -> QueueRefusal | None:
        """Return a refusal if a gang that cannot be evicted would take a queue above its quota."""
        if not self.tree.quoted.any() or not self._fixed(gang):
            return None
        axis, new = self._session.snapshot.axis, self._new_claims(gang)
        over = over_quota(self.allocations, axis, self.row(gang.queue), amounts, new)
        return refusal(over, gang.creator) if over else None

    def _fixed(self, gang: GangView) -> bool:
        """Return True for a gang that cannot be evicted, so that it must stay within its queue's quota."""
        return not self._session.snapshot.guards.can_be_taken_back(gang)

    @cached_property
    def beyond_quota(self) -> frozenset[str]:
        """Keys of the gangs that cannot be evicted and take a queue above its quota."""
        snapshot = self._session.snapshot
        held = [gang for gang in snapshot.gangs if gang.key in snapshot.gang_use and self._fixed(gang)]
        return beyond_quota(self.allocations, snapshot, held)

    def can_reclaim(self, gang: GangView, amounts: Amounts) -> bool:
        """Return True if the gang's queue would stay within its share; remember the allocations before any trial."""
        rules = self._rules_now()
        if not rules.may_start(self.row(gang.queue), amounts, fixed=self._fixed(gang)):
            return False
        self._rules = replace(rules, allocated=rules.allocated.copy(), fixed=rules.fixed.copy())
        return True

    def _rules_now(self) -> ReclaimRules:
        known = self.allocations
        return ReclaimRules(self.tree, self.fair, known.allocated, known.fixed, self._plugin.multiplier)

    def reclaim_standing(self, gang: GangView, amounts: Amounts) -> ReclaimState:
        """Return which queues are above their share, and whether the gang's queue deserves the resources."""
        row, rules = self.row(gang.queue), self._rules_now()
        above = frozenset(self.tree.names[each] for each in rules.above(row, amounts))
        return ReclaimState(rules.owed(row, amounts), above)

    def reclaimable(self, gang: GangView, victim: GangView) -> bool:
        """Return True if the victim's queue and all its ancestors below the common ancestor are reclaimable."""
        other = self.row(victim.queue)
        gains, loses = self.tree.fork(self.row(gang.queue), other)
        if gains == loses:
            return False
        chain = self.tree.chains[other]
        return all(self.tree.reclaimable[row] for row in chain[: chain.index(loses) + 1])

    def reclaim_agreed(self, scenario: Scenario) -> bool:
        """Return True if the reclaim rules allow the scenario, given the allocations before the trial.

        Pods that only move to another node do not count as a loss of their queue.
        """
        losses = [Loss(self.row(chunk.gang.queue), chunk.amounts) for chunk in scenario.chunks if not chunk.moved]
        if self._rules is None or not losses:
            return not losses
        row, fixed, kai = self.row(scenario.gang.queue), self._fixed(scenario.gang), self._plugin.rounding == "kai"
        return self._rules.validate(row, scenario.requested, losses, fixed=fixed, strict=kai)

    def count(self, entry: Operation | Eviction, sign: int) -> None:
        """Update the allocations of queues by one step of a trial."""
        gang, minimums = entry.gang, self.limited.minimums
        self.closing.count(gang, sign * entry.size)
        most = self._session.snapshot.chargeable[:, entry.column]
        amount = np.minimum(entry.row, most) * entry.size  # as much as the ledger charges for the claim
        self._place(gang, amount, sign, minimums.count(gang.key, self._asked(gang, amount), sign))
        self.models.place(gang.queue, entry.column, sign * self.models.gpus(amount))
        for claim in entry.cls.needs.named:
            users = self._session.claims.user_count(claim.key, gang.queue)
            if not (users if sign < 0 else users - entry.size):  # first users arrive, or the last ones end
                self.limited.claims.set_user(claim.key, gang.queue, (False, gang.key, claim.rows) if sign > 0 else None)
                shared = self._sharing(claim, gang.queue)
                self._place(gang, shared.devices, sign, scale(self._asked(gang, shared.devices), sign), shared)

    def _place(self, gang: GangView, amounts: Amounts, sign: int, charge: Vector, claim: Sharing | None = None) -> None:
        """Change the allocations of the gang's queues by `amounts`, and their usage against limits by `charge`."""
        self.allocations.place(self.row(gang.queue), amounts, sign, fixed=self._fixed(gang), others=claim)
        self.limited.place(gang.queue, gang.creator, charge, claim=claim.claim if claim else "")

    def _new_claims(self, gang: GangView) -> list[Sharing]:
        """Return the claims that the gang requests and that no pod of its queue uses yet."""
        claims = self._session.ask(gang).claims
        return [self._sharing(claim, gang.queue) for claim in self._session.claims.new(claims, gang.queue)]

    def _sharing(self, claim: SharedClaim, queue: str) -> Sharing:
        """Return the devices of a claim, and the queues with pods that use the claim."""
        uses = {name: use for name, use in self.limited.claims.uses.get(claim.key, {}).items() if name != queue}
        held = {gang for _, gang, _ in uses.values() if (known := self._session.gang(gang)) and self._fixed(known)}
        devices = amounts_of_claims(self._session.snapshot, [claim])
        return sharing_of(self.tree, claim.key, uses, devices, self.allocations.left, held)
