"""The built-in plugins: what they know, as hooks of the session.

They promise no I/O and no clock: a plugin looks at the session's snapshot, and what it keeps from cycle to cycle it can
make anew. They import the framework and the state, and must not import actions or what serves and writes. Start at
`order`, which has the simplest ones; then `predicates`, with `interpodaffinity`, `volumes` and `nodeselector`, is which
nodes a pod can be on, `dynamicresources` which of them have the devices that it has claimed, `scores` and `nodeorder`
which of them are better, `proportion` what queues decide, `admission` and `resourcequota` who is let in and in what
order, `conformance` and `minruntime` who is nobody's victim, `reservations` what is kept for gangs that wait,
`topology` (with `domains`) who sits together, `pages` what is shown over HTTP.
"""

from extender.framework.registry import PluginBuilder
from extender.plugins.admission import Drf, Overcommit, Sla
from extender.plugins.conformance import Conformance
from extender.plugins.dynamicresources import DynamicResources
from extender.plugins.fragmentation import Fragmentation
from extender.plugins.minruntime import MinRuntime
from extender.plugins.nodeorder import Binpack, NodeOrder
from extender.plugins.order import Elastic, Gang, Priority, SubGroupOrder, TaskOrder
from extender.plugins.pages import ReflectJobOrder, Snapshot
from extender.plugins.predicates import Predicates
from extender.plugins.proportion import Proportion
from extender.plugins.reservations import Reservations
from extender.plugins.resourcequota import QuotaRoom
from extender.plugins.scores import (
    GpuPack,
    GpuSharingOrder,
    GpuSpread,
    NodeAvailability,
    NodePlacement,
    PodAffinity,
    ResourceType,
)
from extender.plugins.topology import Topology

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
