"""The built-in plugins: what they know, as hooks of the session. Pure: no I/O, no clock."""

from extender.framework.registry import PluginBuilder
from extender.plugins.elastic import Elastic
from extender.plugins.gang import Gang
from extender.plugins.gpudensity import GpuPack, GpuSpread
from extender.plugins.nodeavailability import NodeAvailability
from extender.plugins.nodeplacement import NodePlacement
from extender.plugins.podaffinity import PodAffinity
from extender.plugins.predicates import Predicates
from extender.plugins.priority import Priority
from extender.plugins.reflectjoborder import ReflectJobOrder
from extender.plugins.resourcetype import ResourceType
from extender.plugins.snapshot import Snapshot
from extender.plugins.subgrouporder import SubGroupOrder
from extender.plugins.taskorder import TaskOrder

PLUGINS: dict[str, PluginBuilder] = {
    "gang": Gang,
    "predicates": Predicates,
    "priority": Priority,
    "elastic": Elastic,
    "nodeavailability": NodeAvailability,
    "nodeplacement": NodePlacement,
    "resourcetype": ResourceType,
    "gpupack": GpuPack,
    "gpuspread": GpuSpread,
    "subgrouporder": SubGroupOrder,
    "taskorder": TaskOrder,
    "podaffinity": PodAffinity,
    "snapshot": Snapshot,
    "reflectjoborder": ReflectJobOrder,
}
