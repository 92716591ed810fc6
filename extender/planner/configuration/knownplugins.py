"""The plugins of Volcano and KAI-Scheduler, and their arguments."""

from extender.planner.configuration.known import KAI, KnownPlugin, Name, Switch

_CHECKED = Name(without="kube-scheduler always checks it, so the planner does, too", default=True)
_CHECKS = (
    "NodeAffinity NodePorts TaintToleration PodAffinity NodeVolumeLimits VolumeZone PodTopologySpread VolumeBinding"
)
_NO_CACHE = Name(without="answers are always kept until the node changes", default=False)
_BINDS = Name(without="volumes are bound by kube-scheduler, as its own configuration says")
_CLAIMS = Name(without="devices that are claimed are counted by the plugin dynamicresources")
_NO_METRICS = "no plugin of Muster reads the load of nodes"
_NO_GANG = Name(without="pods of no gang are placed by the plugins that order nodes")
_DEVICES = "parts of GPUs are always counted (docs/dynamic-resources.md); device plugins share out other devices"
_WHOLE = Switch(differs="a gang is never broken below its minimum, with or without this switch")


def _plain(names: str) -> dict[str, Name]:
    """Return entries of arguments whose plugin has no effect."""
    return dict.fromkeys(names.split(), Name())


_VOLCANO: dict[str, KnownPlugin] = {
    "priority": KnownPlugin(differs="it orders gangs; pods of one gang are ordered by plugin taskorder"),
    "gang": KnownPlugin(
        differs="a gang always starts whole, with or without this plugin, and only whole gangs are victims",
        switches={"enablePreemptable": _WHOLE, "enableReclaimable": _WHOLE},
    ),
    "conformance": KnownPlugin(differs="pods of the system are never victims, with or without this plugin"),
    "sla": KnownPlugin(
        differs="a gang that is overdue passes the plugins after this one at enqueue, even if it is larger than the"
        " cluster, and never a queue's capability",
        arguments={"sla-waiting-time": Name(default="5m")},
    ),
    "overcommit": KnownPlugin(
        differs="what pods of a gang use already does not count twice",
        arguments={"overcommit-factor": Name(default=1.2)},
    ),
    "drf": KnownPlugin(
        differs="it orders gangs by their dominant share, and votes on no victims; shares of queues are proportion's"
    ),
    "proportion": KnownPlugin(differs="fair shares follow KAI-Scheduler's rules over the same fields of queues"),
    "capacity": KnownPlugin(
        ours="proportion",
        differs="it is proportion, which reads the same fields: deserved, capability, guarantee, parent",
        arguments={
            "ancestorReclaimLevel": Name(without="reclaim compares the branches below a common ancestor", default=0),
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
            "podtopologyspread.weight": Name(default=2, without="preferred spreading is not planned with"),
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
        without="nodeorder, binpack and nodeplacement say which nodes are filled",
        arguments=_plain("resourceStrategyFitWeight resources sra proportional"),
    ),
    "network-topology-aware": KnownPlugin(
        ours="topology",
        differs="it is topology, which also knows label keys and Kueue's Topologies; the fuller domain comes first",
        arguments={
            **dict.fromkeys(
                ("weight", *(f"hypernode.binpack.{part}" for part in ("cpu", "memory", "resources", "resources.*"))),
                Name(without="domains come before nodes, and are compared by the pods of the gang that fit"),
            ),
            "hypernode.binpack.normal-pod.enable": _NO_GANG,
            "hypernode.binpack.normal-pod.fading": _NO_GANG,
            "hypernode.gradient.evict.max-hypernodes": Name(without="victims are searched for in all domains"),
        },
    ),
    "task-topology": KnownPlugin(
        without="tasks that belong together say so with pod affinity", arguments=_plain("task-topology.weight")
    ),
    "numa-aware": KnownPlugin(without="which NUMA node a pod gets is kubelet's to decide", arguments=_plain("weight")),
    "deviceshare": KnownPlugin(without=_DEVICES, arguments=_plain("deviceshare.*")),
    "nodegroup": KnownPlugin(
        without="queues are not tied to node groups; node selectors of pods are",
        arguments=_plain("strict enablePreferredOrder"),
    ),
    "usage": KnownPlugin(
        without=_NO_METRICS,
        arguments=_plain("thresholds usage.weight cpu.weight memory.weight estimator usage.*"),
    ),
    "rescheduling": KnownPlugin(without=_NO_METRICS, arguments=_plain("interval metricsPeriod strategies")),
    "tdm": KnownPlugin(
        without="nodes that are lent by the hour are not known; victims are the victim actions' to say",
        arguments=_plain("tdm.revocable-zone.* tdm.evict.period"),
    ),
    "cdp": KnownPlugin(without="how long a pod is no victim is plugin minruntime's to say"),
    "pdb": KnownPlugin(without="PodDisruptionBudgets always hold: pods are evicted through the Eviction API"),
    "resourcequota": KnownPlugin(differs="quotas with scopes are about some pods only, and left to the API server"),
    "extender": KnownPlugin(
        without="what other programs decide comes as a plugin in Python (docs/writing-plugins.md)",
        arguments=_plain("extender.*"),
    ),
}

_IN_RANK_ORDER = "pods of a gang are placed in the order of their ranks, the first one first"
_SEARCH = "how victims are searched for is not a matter of plugins"

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
    "gpupack": KnownPlugin(of=KAI, differs="it orders nodes too, by how many GPUs are free"),
    "gpuspread": KnownPlugin(of=KAI, differs="it orders nodes too, by how many GPUs are free"),
    "resourcetype": KnownPlugin(of=KAI),
    "subgrouporder": KnownPlugin(of=KAI),
    "taskorder": KnownPlugin(of=KAI, differs="the label is muster.dev/task-priority"),
    "nominatednode": KnownPlugin(of=KAI, without="gangs are pinned to their nodes; nominations are not used"),
    "dynamicresources": KnownPlugin(
        of=KAI,
        differs="it counts devices of nodes by their kinds; which device a claim gets kube-scheduler decides",
        arguments={"maxCelCacheEntries": Name(without="answers are kept for the devices that there are")},
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
        differs="levels are arguments here, node labels that need no configuration, Kueue's Topologies and HyperNodes",
    ),
    "numa": KnownPlugin(of=KAI, without="which NUMA node a pod gets is kubelet's to decide"),
    "snapshot": KnownPlugin(
        of=KAI, differs="the page is /plugins/snapshot of the extender; `muster snapshot` saves a file"
    ),
    "reflectjoborder": KnownPlugin(of=KAI, differs="the page is /plugins/job-order of the extender"),
    "podaffinity": KnownPlugin(of=KAI),
    "sg-nodelocalgreedy": KnownPlugin(of=KAI, without=_SEARCH),
    "sg-multinodegang": KnownPlugin(of=KAI, without=_SEARCH),
}

PLUGINS: dict[str, KnownPlugin] = _VOLCANO | {
    name: plugin.joined(_VOLCANO[name]) if name in _VOLCANO else plugin for name, plugin in _KAI.items()
}
"""The plugins of both; one that both have knows the arguments of both."""
