"""The built-in planner plugins, which register functions for the session's hooks.

The plugins do no I/O and read no clock. A plugin reads the session's snapshot, and keeps only caches from cycle to
cycle. The plugins import the framework and the state. The plugins must import neither actions nor code that serves
requests or writes to the API server. Start reading at `order`, which has the simplest plugins. `predicates`,
`interpodaffinity` and `dynamicresources` filter nodes; `scores`, `nodeorder` and `fragmentation` score nodes.
`topology` (with `domains`) keeps pods together, `proportion` divides capacity among queues, and `admission` admits
gangs. `protection` protects gangs from evictions, and `pages` serves the snapshot and the scheduling order over HTTP.
"""

from extender.planner.framework.registry import PluginBuilder
from extender.planner.plugins.admission import Drf, Overcommit, QuotaRoom, Sla
from extender.planner.plugins.dynamicresources import DynamicResources
from extender.planner.plugins.fragmentation import Fragmentation
from extender.planner.plugins.nodeorder import Binpack, NodeOrder, Preferences
from extender.planner.plugins.order import Elastic, GangPlugin, Priority, Reservations, SubGroupOrder, TaskOrder
from extender.planner.plugins.pages import ReflectJobOrder, SnapshotPages
from extender.planner.plugins.predicates import Predicates
from extender.planner.plugins.proportion import Proportion
from extender.planner.plugins.protection import Conformance, MinRuntime
from extender.planner.plugins.scores import (
    GpuPack,
    GpuSharingOrder,
    GpuSpread,
    NodeAvailability,
    NodePlacement,
    PodAffinityScore,
    ResourceType,
)
from extender.planner.plugins.topology import TopologyPlugin

PLUGINS: dict[str, PluginBuilder] = {
    plugin.name: plugin
    for plugin in (
        GangPlugin, Predicates, DynamicResources, Priority, Elastic, Proportion, NodeAvailability, NodePlacement,
        ResourceType, GpuPack, GpuSpread, GpuSharingOrder, Fragmentation, Preferences, SubGroupOrder, TaskOrder,
        PodAffinityScore, MinRuntime, SnapshotPages, ReflectJobOrder, Conformance, Overcommit, Sla, Drf, NodeOrder,
        Binpack, QuotaRoom, Reservations, TopologyPlugin,
    )
}  # fmt: skip
"""Maps a plugin's name in configurations to its builder."""
