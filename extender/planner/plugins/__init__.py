"""The built-in plugins, as hooks of the session.

They promise no I/O and no clock: a plugin reads the session's snapshot, and can re-create what it keeps from cycle to
cycle. They import the framework and the state, and must not import actions or anything that serves and writes. Start at
`order`, which has the simplest ones. `predicates`, `interpodaffinity` and `dynamicresources` refuse nodes, `scores`,
`nodeorder` and `fragmentation` rank them, `topology` (with `domains`) keeps pods together, `proportion` has queues,
`admission` admits gangs, `protection` keeps gangs from being victims, `pages` are shown over HTTP.
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
"""By the name that configurations call them by."""
