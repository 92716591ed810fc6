"""KAI-Scheduler's plugins and their arguments."""

from extender.planner.configuration.known.entry import KAI, Argument, Plugin

_IN_RANK_ORDER = "pods of a gang are placed in the order of their ranks, the first one first"
_SEARCH = "how victims are searched for is not a matter of plugins"

PLUGINS: dict[str, Plugin] = {
    "predicates": Plugin(of=KAI),
    "proportion": Plugin(
        of=KAI,
        arguments={
            "kValue": Argument(of=KAI, default="1.0"),
            "relcaimerSaturationMultiplier": Argument(of=KAI, default="1"),
        },
    ),
    "priority": Plugin(of=KAI),
    "elastic": Plugin(of=KAI),
    "kubeflow": Plugin(of=KAI, without=_IN_RANK_ORDER),
    "ray": Plugin(of=KAI, without=_IN_RANK_ORDER),
    "nodeavailability": Plugin(of=KAI),
    "gpusharingorder": Plugin(of=KAI),
    "gpupack": Plugin(of=KAI, differs="it orders nodes too, by how many GPUs are free"),
    "gpuspread": Plugin(of=KAI, differs="it orders nodes too, by how many GPUs are free"),
    "resourcetype": Plugin(of=KAI),
    "subgrouporder": Plugin(of=KAI),
    "taskorder": Plugin(of=KAI, differs="the label is muster.dev/task-priority"),
    "nominatednode": Plugin(of=KAI, without="gangs are pinned to their nodes; nominations are not used"),
    "dynamicresources": Plugin(
        of=KAI,
        differs="it counts devices of nodes by their kinds; which device a claim gets kube-scheduler decides",
        arguments={"maxCelCacheEntries": Argument(of=KAI, without="answers are kept for the devices that there are")},
    ),
    "nodeplacement": Plugin(
        of=KAI,
        arguments={"cpu": Argument(of=KAI, default="binpack"), "gpu": Argument(of=KAI, default="binpack")},
    ),
    "minruntime": Plugin(
        of=KAI,
        arguments={
            "defaultReclaimMinRuntime": Argument(of=KAI, default="0s"),
            "defaultPreemptMinRuntime": Argument(of=KAI, default="0s"),
            "reclaimResolveMethod": Argument(of=KAI, default="lca"),
        },
    ),
    "topology": Plugin(
        of=KAI,
        differs="levels are arguments here, node labels that need no configuration, Kueue's Topologies and HyperNodes",
    ),
    "numa": Plugin(of=KAI, without="which NUMA node a pod gets is kubelet's to decide"),
    "snapshot": Plugin(of=KAI, differs="the page is /plugins/snapshot of the extender; `muster snapshot` saves a file"),
    "reflectjoborder": Plugin(of=KAI, differs="the page is /plugins/job-order of the extender"),
    "podaffinity": Plugin(of=KAI),
    "sg-nodelocalgreedy": Plugin(of=KAI, without=_SEARCH),
    "sg-multinodegang": Plugin(of=KAI, without=_SEARCH),
}
