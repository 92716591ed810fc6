"""The planner's public names: the web pages, the command line and the history may import only these from the planner.

| question | answer | |---|---| | What does the planner read? | `FEED`, a row per kind of object | | Which
configurations are valid, and which is the default? | `report_of`, `defaults`, `SchedulerConfig` | | Which native
PodGroups does Muster schedule as gangs? | `natives_of` | | Which data does the planner have about a gang? | `GangView`
| | Which times apply to reservations? | `ReservationRules` | | Which inputs of the planner are published for other
processes? | `PublishedInputs`, `published_inputs` | | Which limits does the planner have? | `PLACED_SLOTS`,
`SEARCHES_OF_A_CYCLE`, `SEARCHES_OF_A_QUEUE` | | How is the planner's documentation generated? | `documentation`,
`hook_table` |

`extender.explain` runs cycles over a dump of a cluster, and creates reports about these cycles. Importing
`extender.explain` takes a second of CPU time, so commands that do not plan must not import it.
"""

from extender.planner.actions import ACTIONS
from extender.planner.actions.evicting import ATTEMPTS as SEARCHES_OF_A_CYCLE
from extender.planner.actions.evicting import ATTEMPTS_PER_QUEUE as SEARCHES_OF_A_QUEUE
from extender.planner.actions.obstacles import LIMIT as PLACED_SLOTS
from extender.planner.configuration.tables import DocumentedTable, defaults, hook_table, tables
from extender.planner.cycle import report_of
from extender.planner.framework.answers import ReservationRules
from extender.planner.framework.config import SchedulerConfig
from extender.planner.framework.registry import Registry
from extender.planner.memory import PublishedInputs, published_inputs
from extender.planner.plugins import PLUGINS
from extender.planner.state.feed import FEED, natives_of
from extender.planner.state.gangs import GangView

__all__ = [
    "FEED", "PLACED_SLOTS", "SEARCHES_OF_A_CYCLE", "SEARCHES_OF_A_QUEUE", "DocumentedTable", "GangView",
    "PublishedInputs", "ReservationRules", "SchedulerConfig", "defaults", "documentation", "hook_table", "natives_of",
    "published_inputs", "report_of",
]  # fmt: skip


def documentation() -> dict[str, DocumentedTable]:
    """Return the tables of docs/scheduler-configuration.md for Muster's own plugins and actions."""
    return tables(Registry(PLUGINS, ACTIONS, installed=False))
