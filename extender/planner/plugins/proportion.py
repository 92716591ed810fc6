"""Fair shares of queues: their order, what a queue refuses, and what it may reclaim from others.

The arithmetic is in `planner.fairshare`; here it meets a session. What gangs wait for is added up anew only for gangs
that changed, the tree is made anew only when queues change, and fair shares are divided at the first question.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from extender.planner.fairshare.allocations import Accounts
from extender.planner.fairshare.shares import UsageBook
from extender.planner.framework.ordering import Keyed
from extender.planner.framework.registry import OwnArgument, PlainPlugin, refuse_arguments
from extender.planner.framework.session import Session
from extender.planner.plugins.queueshares import QueueShares
from muster.resources.runtime import parse_duration_s

MULTIPLIER = "relcaimerSaturationMultiplier"
"""KAI's spelling, which is the live one."""
ROUNDING = "rounding"
HALF_LIFE = "halfLife"
ARGUMENTS = (ROUNDING, "kValue", MULTIPLIER, HALF_LIFE)


class Proportion(PlainPlugin):
    """Its arguments: `rounding` (exact or kai), `kValue`, `halfLife`, and with `kai` `relcaimerSaturationMultiplier`.

    With a `halfLife` (168h, 30m) past usage counts; without one it is not kept. `kValue` is how much it counts: 1 if it
    is not given, 0 for not at all.
    """

    name = "proportion"
    OWN_ARGUMENTS: ClassVar[Mapping[str, OwnArgument]] = {
        ROUNDING: OwnArgument("exact", "`exact`, or `kai` for KAI-Scheduler's shares to the unit (docs/queues.md)"),
        HALF_LIFE: OwnArgument("", "past usage counts, half as much after each such time (`168h`); else it does not"),
    }

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments, ARGUMENTS)
        self._rounding = str(arguments.get(ROUNDING, "exact"))
        if self._rounding not in {"exact", "kai"}:
            raise ValueError(f"plugin 'proportion': rounding is {self._rounding!r}; it may be 'exact' or 'kai'")
        self._usage_weight = self._number(arguments, "kValue")
        self._multiplier = self._number(arguments, MULTIPLIER)
        if self._multiplier < 1:
            raise ValueError(f"plugin 'proportion': {MULTIPLIER} is {self._multiplier}; it must be 1 or more")
        self._accounts = Accounts()
        self._usage: UsageBook | None = None
        if HALF_LIFE in arguments:
            try:
                half_life_s = parse_duration_s(str(arguments[HALF_LIFE]))
            except ValueError as error:
                raise ValueError(f"plugin 'proportion': {HALF_LIFE}: {error}") from None
            if half_life_s <= 0:
                raise ValueError(f"plugin 'proportion': {HALF_LIFE} is {half_life_s:g} s; it must be more than 0")
            self._usage = UsageBook(half_life_s)

    def _number(self, arguments: Mapping[str, Any], key: str) -> float:
        try:
            return float(arguments.get(key, 1.0))
        except (TypeError, ValueError):
            raise ValueError(f"plugin 'proportion': {key} is {arguments[key]!r}, which is no number") from None

    def on_session_open(self, session: Session) -> None:
        """Registers everything that queues decide, over an account of this session's own."""
        shares = QueueShares(
            session,
            self._accounts.allocations(session.snapshot),
            rounding=self._rounding,
            usage_weight=self._usage_weight,
            multiplier=self._multiplier,
            usage=self._usage,
        )
        if self._usage is not None:
            shares.keep_usage(self._usage)
        session.hooks.queue_order.add(Keyed(shares.order, shares.key))
        session.hooks.is_job_over_queue_capacity.add(shares.over_capacity)
        session.hooks.is_non_preemptible_job_over_queue_quota.add(shares.over_quota)
        session.hooks.allocated.add(shares.placed)
        session.hooks.deallocated.add(shares.taken_back)
        session.hooks.evicted.add(shares.taken_back)
        session.hooks.unevicted.add(shares.placed)
        session.hooks.can_reclaim_resources.add(shares.can_reclaim)
        session.hooks.reclaim_victim_filter.add(shares.reclaimable)
        session.hooks.reclaim_scenario_validator.add(shares.reclaim_agreed)
        session.hooks.get_queue_allocated_resources.add(shares.allocated_of)
        session.hooks.get_queue_deserved_resources.add(shares.deserved_of)
        session.hooks.get_queue_fair_share.add(shares.fair_share_of)
        session.hooks.queue_standings.add(shares.standings)
