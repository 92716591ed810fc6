"""The built-in plugins: what they know, as hooks of the session. Pure: no I/O, no clock."""

from extender.framework.registry import PluginBuilder
from extender.plugins.gang import Gang
from extender.plugins.predicates import Predicates
from extender.plugins.priority import Priority

PLUGINS: dict[str, PluginBuilder] = {
    "gang": Gang,
    "predicates": Predicates,
    "priority": Priority,
}
