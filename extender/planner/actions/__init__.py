"""Actions, the steps of a planning cycle: each reads the session, calls the session's hooks and records decisions.

Actions do no I/O and read no clock: decisions are data that `extender.commit` carries out. Actions import the framework
and the state. Actions call plugins through hooks, so they must not import plugins. Actions must not import code that
serves requests or writes to the API server.

Start reading at `enqueue`, then `allocate`, which uses `search` and `fill`, and `growth` for pods above the minimum.
The action `backfill` is in the module `allocate`. `displace` (preempt and reclaim) and `consolidate` share the base
class in `evicting`. `attempts` determines the order of the waiting gangs for which these actions search for victims.
`progress` is not in the table `ACTIONS`, because `progress` and `avoidance` run first in every cycle.
"""

from extender.planner.actions.allocate import Allocate
from extender.planner.actions.backfill import Backfill
from extender.planner.actions.consolidate import Consolidate
from extender.planner.actions.displace import Preempt, Reclaim
from extender.planner.actions.enqueue import Enqueue
from extender.planner.actions.repair import Repair
from extender.planner.actions.stalegangeviction import StaleGangEviction
from extender.planner.framework.registry import ActionBuilder

ACTIONS: dict[str, ActionBuilder] = {
    "repair": Repair,
    "enqueue": Enqueue,
    "allocate": Allocate,
    "consolidate": Consolidate,
    "reclaim": Reclaim,
    "preempt": Preempt,
    "backfill": Backfill,
    "stalegangeviction": StaleGangEviction,
}
