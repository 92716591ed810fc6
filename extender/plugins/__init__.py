"""The built-in plugins: what they know, as hooks of the session.

They promise no I/O and no clock: a plugin looks at the session's snapshot, and what it keeps from cycle to cycle it can
make anew. They import the framework and the state, and must not import actions or what serves and writes. Start at
`order`, which has the simplest ones; then `predicates`, with `interpodaffinity`, `volumes` and `nodeselector`, is which
nodes a pod can be on, `scores` and `nodeorder` which of them are better, `admission` and `resourcequota` who is let in
and in what order, `conformance` who is nobody's victim, `pages` what is shown over HTTP, `reservations` what is kept
for gangs that wait.
"""

from extender.framework.registry import PluginBuilder
from extender.plugins.admission import Drf, Overcommit, Sla
from extender.plugins.conformance import Conformance
from extender.plugins.nodeorder import Binpack, NodeOrder
from extender.plugins.order import Elastic, Gang, Priority, SubGroupOrder, TaskOrder
from extender.plugins.pages import ReflectJobOrder, Snapshot
from extender.plugins.predicates import Predicates
from extender.plugins.reservations import Reservations
from extender.plugins.resourcequota import QuotaRoom
from extender.plugins.scores import GpuPack, GpuSpread, NodeAvailability, NodePlacement, PodAffinity, ResourceType

PLUGINS: dict[str, PluginBuilder] = {
    plugin.name: plugin
    for plugin in (
        Gang,
        Predicates,
        Priority,
        Elastic,
        NodeAvailability,
        NodePlacement,
        ResourceType,
        GpuPack,
        GpuSpread,
        SubGroupOrder,
        TaskOrder,
        PodAffinity,
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
    )
}
"""By the name that configurations call them by."""
