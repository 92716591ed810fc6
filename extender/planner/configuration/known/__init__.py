"""All names that Volcano's and KAI-Scheduler's configurations know, as data: what becomes of each in Muster.

`entry` has what is said about one name; `actions`, `volcano` and `kai` (plugins and their arguments), `switches` and
`sections` the names. An action or plugin has an effect as soon as it is registered; only until then its entry's
`without` is what the report says.
"""

from extender.planner.configuration.known.actions import ACTION_ARGUMENTS, ACTIONS
from extender.planner.configuration.known.entry import Argument, Name, Plugin, Switch
from extender.planner.configuration.known.kai import PLUGINS as KAI_PLUGINS
from extender.planner.configuration.known.sections import METRICS, SECTIONS, USAGE_DB
from extender.planner.configuration.known.switches import SWITCHES
from extender.planner.configuration.known.volcano import PLUGINS as VOLCANO_PLUGINS

PLUGINS: dict[str, Plugin] = VOLCANO_PLUGINS | {
    name: plugin.joined(VOLCANO_PLUGINS[name]) if name in VOLCANO_PLUGINS else plugin
    for name, plugin in KAI_PLUGINS.items()
}
"""The plugins of both; one that both have knows the arguments of both."""

__all__ = [
    "ACTIONS",
    "ACTION_ARGUMENTS",
    "METRICS",
    "PLUGINS",
    "SECTIONS",
    "SWITCHES",
    "USAGE_DB",
    "Argument",
    "Name",
    "Plugin",
    "Switch",
]
