"""Table of the plugins of Volcano and KAI-Scheduler, their arguments, and their meaning in Muster."""

from extender.planner.configuration.known import KAI, KnownPlugin, Name, Switch

_CHECKED = Name(without="the planner always makes this check, because kube-scheduler does too", default=True)
_CHECKS = (
    "NodeAffinity NodePorts TaintToleration PodAffinity NodeVolumeLimits VolumeZone PodTopologySpread VolumeBinding"
)
_NO_CACHE = Name(without="results are always cached until the node changes", default=False)
_BINDS = Name(without="kube-scheduler binds volumes according to its own configuration")
_CLAIMS = Name(without="the plugin dynamicresources counts claimed devices")
_NO_METRICS = "no plugin of Muster reads the load of nodes"
_NO_GANG = Name(without="the plugins that order nodes also apply to pods without a gang")
_DEVICES = "GPU fractions are always counted (docs/dynamic-resources.md), and device plugins divide other devices"
_WHOLE = Switch(differs="evictions never leave a gang below its minimum, with or without this switch")


def _plain(names: str) -> dict[str, Name]:
    """Return table entries for the arguments of a plugin that has no effect in Muster."""
    return dict.fromkeys(names.split(), Name())


_VOLCANO: dict[str, KnownPlugin] = {
    "priority": KnownPlugin(
        differs="this plugin only orders gangs, and the plugin taskorder orders the pods of a gang"
    ),
    "gang": KnownPlugin(
        differs="a gang's minimum starts together, and evictions take the whole gang or only pods above the minimum",
        switches={"enablePreemptable": _WHOLE, "enableReclaimable": _WHOLE},
    ),
    "conformance": KnownPlugin(differs="system pods are never victims, with or without this plugin"),
    "sla": KnownPlugin(
        differs="an overdue gang is admitted without a vote of the later plugins, even if it is larger than the"
        " cluster, but the capabilities of queues always apply",
        arguments={"sla-waiting-time": Name(default="5m")},
    ),
    "overcommit": KnownPlugin(
        differs="the usage of a gang's existing pods is not counted twice",
        arguments={"overcommit-factor": Name(default=1.2)},
    ),
    "drf": KnownPlugin(
        differs="this plugin orders gangs by dominant share but does not select victims; proportion computes shares"
    ),
    "proportion": KnownPlugin(differs="fair shares follow KAI-Scheduler's rules over the same fields of queues"),
    "capacity": KnownPlugin(
        ours="proportion",
        differs="the plugin is proportion, which reads the same fields: deserved, capability, guarantee, parent",
        arguments={
            "ancestorReclaimLevel": Name(
                without="reclaim always compares queues at the level below their common ancestor", default=0
            ),
            "capacity.DynamicResourceAllocationEnable": _CLAIMS,
            "capacity.DRAConsumableCapacityEnable": _CLAIMS,
        },
    ),
    "predicates": KnownPlugin(
        arguments={
            **{f"predicate.{name}Enable": _CHECKED for name in _CHECKS.split()},
            "predicate.CacheEnable": _NO_CACHE,
            "predicate.DynamicResourceAllocationEnable": _CLAIMS,
            "dynamicresources.filterTimeoutSeconds": _CLAIMS,
            "volumebinding.weight": _BINDS,
            "volumebinding.bindTimeoutSeconds": _BINDS,
            "volumebinding.shape": _BINDS,
        }
    ),
    "nodeorder": KnownPlugin(
        arguments={
            "leastrequested.weight": Name(default=1),
            "mostrequested.weight": Name(default=0),
            "nodeaffinity.weight": Name(default=2),
            "podaffinity.weight": Name(default=2),
            "balancedresource.weight": Name(default=1),
            "tainttoleration.weight": Name(default=3),
            "imagelocality.weight": Name(default=1, without="the planner does not know which images nodes have"),
            "podtopologyspread.weight": Name(default=2, without="the planner ignores preferred spreading"),
        }
    ),
    "binpack": KnownPlugin(
        arguments={
            "binpack.weight": Name(default=1),
            "binpack.cpu": Name(default=1),
            "binpack.memory": Name(default=1),
            "binpack.resources": Name(default="nvidia.com/gpu"),
            "binpack.resources.*": Name(default=1),
        }
    ),
    "resource-strategy-fit": KnownPlugin(
        without="nodeorder, binpack and nodeplacement decide which nodes are filled",
        arguments=_plain("resourceStrategyFitWeight resources sra proportional"),
    ),
    "network-topology-aware": KnownPlugin(
        ours="topology",
        differs="the plugin topology also supports label keys and Kueue's Topologies, and prefers fuller domains",
        arguments={
            **dict.fromkeys(
                ("weight", *(f"hypernode.binpack.{part}" for part in ("cpu", "memory", "resources", "resources.*"))),
                Name(without="a domain is chosen before its nodes, by the number of the gang's pods that fit into it"),
            ),
            "hypernode.binpack.normal-pod.enable": _NO_GANG,
            "hypernode.binpack.normal-pod.fading": _NO_GANG,
            "hypernode.gradient.evict.max-hypernodes": Name(without="Muster searches for victims in all domains"),
        },
    ),
    "task-topology": KnownPlugin(
        without="use pod affinity for tasks that belong together", arguments=_plain("task-topology.weight")
    ),
    "numa-aware": KnownPlugin(without="the kubelet decides which NUMA node a pod gets", arguments=_plain("weight")),
    "deviceshare": KnownPlugin(without=_DEVICES, arguments=_plain("deviceshare.*")),
    "nodegroup": KnownPlugin(
        without="queues are not tied to node groups, so use node selectors in pods",
        arguments=_plain("strict enablePreferredOrder"),
    ),
    "usage": KnownPlugin(
        without=_NO_METRICS, arguments=_plain("thresholds usage.weight cpu.weight memory.weight estimator usage.*")
    ),
    "rescheduling": KnownPlugin(without=_NO_METRICS, arguments=_plain("interval metricsPeriod strategies")),
    "tdm": KnownPlugin(
        without="Muster does not support time-of-day zones, and its eviction actions choose the victims",
        arguments=_plain("tdm.revocable-zone.* tdm.evict.period"),
    ),
    "cdp": KnownPlugin(without="the plugin minruntime protects pods for a minimum time"),
    "pdb": KnownPlugin(without="PodDisruptionBudgets always apply, because pods are evicted through the Eviction API"),
    "resourcequota": KnownPlugin(
        differs="quotas with scopes apply only to some pods, so only the API server enforces them"
    ),
    "extender": KnownPlugin(
        without="write a plugin in Python instead (docs/writing-plugins.md)", arguments=_plain("extender.*")
    ),
}

_IN_RANK_ORDER = "the pods of a gang are always placed in the order of their ranks, rank 0 first"
_SEARCH = "plugins do not control the search for victims"

_KAI: dict[str, KnownPlugin] = {
    "predicates": KnownPlugin(of=KAI),
    "proportion": KnownPlugin(
        of=KAI, arguments={"kValue": Name(default="1.0"), "relcaimerSaturationMultiplier": Name(default="1")}
    ),
    "priority": KnownPlugin(of=KAI),
    "elastic": KnownPlugin(of=KAI),
    "kubeflow": KnownPlugin(of=KAI, without=_IN_RANK_ORDER),
    "ray": KnownPlugin(of=KAI, without=_IN_RANK_ORDER),
    "nodeavailability": KnownPlugin(of=KAI),
    "gpusharingorder": KnownPlugin(of=KAI),
    "gpupack": KnownPlugin(of=KAI, differs="the plugin also orders nodes, by the number of free GPUs"),
    "gpuspread": KnownPlugin(of=KAI, differs="the plugin also orders nodes, by the number of free GPUs"),
    "resourcetype": KnownPlugin(of=KAI),
    "subgrouporder": KnownPlugin(of=KAI),
    "taskorder": KnownPlugin(of=KAI, differs="the label is muster.dev/task-priority"),
    "nominatednode": KnownPlugin(
        of=KAI, without="pods are pinned to their planned nodes, so nominations are not needed"
    ),
    "dynamicresources": KnownPlugin(
        of=KAI,
        differs="the plugin counts the devices of nodes by kind, and kube-scheduler decides which device a claim gets",
        arguments={"maxCelCacheEntries": Name(without="results are cached for the existing devices")},
    ),
    "nodeplacement": KnownPlugin(of=KAI, arguments={"cpu": Name(default="binpack"), "gpu": Name(default="binpack")}),
    "minruntime": KnownPlugin(
        of=KAI,
        arguments={
            "defaultReclaimMinRuntime": Name(default="0s"),
            "defaultPreemptMinRuntime": Name(default="0s"),
            "reclaimResolveMethod": Name(default="lca"),
        },
    ),
    "topology": KnownPlugin(
        of=KAI,
        differs="levels may come from arguments, well-known node labels, Kueue's Topologies or HyperNodes",
    ),
    "numa": KnownPlugin(of=KAI, without="the kubelet decides which NUMA node a pod gets"),
    "snapshot": KnownPlugin(
        of=KAI,
        differs="the extender serves the snapshot at /plugins/snapshot, and `muster snapshot` saves it to a file",
    ),
    "reflectjoborder": KnownPlugin(of=KAI, differs="the extender serves the order at /plugins/job-order"),
    "podaffinity": KnownPlugin(of=KAI),
    "sg-nodelocalgreedy": KnownPlugin(of=KAI, without=_SEARCH),
    "sg-multinodegang": KnownPlugin(of=KAI, without=_SEARCH),
}

PLUGINS: dict[str, KnownPlugin] = _VOLCANO | {
    name: plugin.joined(_VOLCANO[name]) if name in _VOLCANO else plugin for name, plugin in _KAI.items()
}
"""Maps a plugin's name to the plugin. If both Volcano and KAI-Scheduler have the plugin, it accepts the arguments of
both projects."""
