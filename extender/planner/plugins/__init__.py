"""The built-in plugins: what they know, as hooks of the session.

They promise no I/O and no clock: a plugin looks at the session's snapshot, and what it keeps from cycle to cycle it can
make anew. They import the framework and the state, and must not import actions or what serves and writes. Start at
`order`, which has the simplest ones; then `predicates`, with `interpodaffinity`, `volumes` and `nodeselector`, is which
nodes a pod can be on, `dynamicresources` which of them have the devices that it has claimed, `scores` and `nodeorder`
which of them are better, `proportion` what queues decide, `admission` and `resourcequota` which gangs are let in and in
what order, `conformance` and `minruntime` which gangs are no victims, `reservations` the rules of reserved room,
`topology` (with `domains`) which pods sit together, `pages` what is shown over HTTP.
"""

from extender.planner.framework.registry import PluginBuilder
from extender.planner.plugins.admission import Drf, Overcommit, QuotaRoom, Sla
from extender.planner.plugins.dynamicresources import DynamicResources
from extender.planner.plugins.fragmentation import Fragmentation
from extender.planner.plugins.nodeorder import Binpack, NodeOrder
from extender.planner.plugins.order import Elastic, Gang, Priority, Reservations, SubGroupOrder, TaskOrder
from extender.planner.plugins.pages import ReflectJobOrder, Snapshot
from extender.planner.plugins.predicates import Predicates
from extender.planner.plugins.proportion import Proportion
from extender.planner.plugins.protection import Conformance, MinRuntime
from extender.planner.plugins.scores import (
    GpuPack,
    GpuSharingOrder,
    GpuSpread,
    NodeAvailability,
    NodePlacement,
    PodAffinity,
    ResourceType,
)
from extender.planner.plugins.topology import Topology

PLUGINS: dict[str, PluginBuilder] = {
    plugin.name: plugin
    for plugin in (
        Gang,
        Predicates,
        DynamicResources,
        Priority,
        Elastic,
        Proportion,
        NodeAvailability,
        NodePlacement,
        ResourceType,
        GpuPack,
        GpuSpread,
        GpuSharingOrder,
        Fragmentation,
        SubGroupOrder,
        TaskOrder,
        PodAffinity,
        MinRuntime,
        Snapshot,
        ReflectJobOrder,
        Conformance,
        Overcommit,
        Sla,
        Drf,
        NodeOrder,
        Binpack,
        QuotaRoom,
        Reservations,
        Topology,
    )
}
"""By the name that configurations call them by."""
