"""The steps of a planning cycle, a module each: they read the session, ask its hooks and leave decisions.

They promise no I/O and no clock: what they decide is data, and others carry it out. They import the framework and the
state, and must not import plugins (whose opinions come through hooks) or what serves and writes. Start at `enqueue`,
the shortest; then `allocate`, which uses `fill`. `progress` is not in the table below: it runs first in every cycle.
"""

from extender.planner.actions.allocate import Allocate
from extender.planner.actions.backfill import Backfill
from extender.planner.actions.consolidate import Consolidate
from extender.planner.actions.displace import Preempt, Reclaim
from extender.planner.actions.enqueue import Enqueue
from extender.planner.actions.stalegangeviction import StaleGangEviction
from extender.planner.framework.registry import ActionBuilder

ACTIONS: dict[str, ActionBuilder] = {
    "enqueue": Enqueue,
    "allocate": Allocate,
    "consolidate": Consolidate,
    "reclaim": Reclaim,
    "preempt": Preempt,
    "backfill": Backfill,
    "stalegangeviction": StaleGangEviction,
}
