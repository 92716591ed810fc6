"""Names in configurations that do not belong to a single plugin: actions, their arguments, switches, other sections.

Volcano spells some switches `enable…` and others `enabled…`. KAI-Scheduler never reads some switches that it has
inherited from kube-batch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

VOLCANO = "Volcano"
KAI = "KAI"


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """An action, an argument, or another name without fields of its own. An argument's name may contain a `*`."""

    of: str = VOLCANO
    """Project that defines the name."""
    ours: str = ""
    """Muster's name for the same action or argument; empty if Muster uses the same name."""
    differs: str = ""
    """How the name's meaning differs in Muster, as a sentence without its full stop; empty if the meaning is the
    same."""
    without: str = ""
    """Why the name has no effect in Muster, as a sentence without its full stop; empty if the name has an effect.
    """
    default: Any = None
    """Default value of an argument; None if the value cannot be written in a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch(Name):
    """A switch of a plugin, either true or false."""

    default: bool = True
    hooks: tuple[str, ...] = ()
    """Hooks that the plugin does not register if the switch is off; empty if the switch has no effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPlugin(Name):
    """A plugin with its arguments."""

    arguments: Mapping[str, Name] = field(default_factory=dict)
    switches: Mapping[str, Switch] = field(default_factory=dict)
    """Maps a switch's name to the switch, for switches that have a special meaning in this plugin."""

    def argument(self, name: str) -> Name | None:
        """Return the description of a plugin's argument; None if the plugin has no such argument."""
        exact = self.arguments.get(name)
        return exact or next((each for pattern, each in self.arguments.items() if fnmatchcase(name, pattern)), None)

    def joined(self, other: "KnownPlugin") -> "KnownPlugin":
        """Return this plugin with the additional arguments of another project's plugin of the same name."""
        return replace(
            self,
            of=f"{other.of}, {self.of}",
            differs=self.differs or other.differs,
            arguments={**other.arguments, **self.arguments},
            switches={**other.switches, **self.switches},
        )


_BOTH = f"{VOLCANO}, {KAI}"
_CACHE = Name(without="results of failed predicates are always cached as long as they are valid")
_TRIAL = Name(without="the search for victims always checks all predicates on all nodes")

ACTIONS: dict[str, Name] = {
    "enqueue": Name(
        differs="a gang is also not admitted while its queue is full, or if even the empty cluster is too small for it"
    ),
    "allocate": Name(of=_BOTH, differs="all waiting gangs get their minimum before any gang gets more pods"),
    "backfill": Name(
        differs="allocate also places pods without requests, and backfill those that wait only because of strict order"
    ),
    "preempt": Name(
        of=_BOTH,
        differs="victims are whole gangs or pods above a minimum, and their capacity is held for the waiting gang",
    ),
    "reclaim": Name(
        of=_BOTH, differs="victims are whole gangs or pods above a gang's minimum, selected by KAI-Scheduler's rules"
    ),
    "gangpreempt": Name(
        ours="preempt",
        differs="the action is preempt here, and always evicts whole gangs or the pods above a minimum",
    ),
    "gangreclaim": Name(
        ours="reclaim",
        differs="the action is reclaim here, and always evicts whole gangs or the pods above a minimum",
    ),
    "shuffle": Name(without="Muster evicts pods only if a gang starts on the freed capacity"),
    "consolidation": Name(of=KAI, ours="consolidate"),
    "stalegangeviction": Name(of=KAI),
}

ACTION_ARGUMENTS: dict[str, dict[str, Name]] = {
    "enqueue": {"overcommit-factor": Name(without="this argument belongs to the plugin overcommit")},
    "allocate": {"predicateErrorCacheEnable": _CACHE},
    "backfill": {"predicateErrorCacheEnable": _CACHE},
    "preempt": {
        "predicateErrorCacheEnable": _CACHE,
        "enableTopologyAwarePreemption": _TRIAL,
        "topologyAwarePreemptWorkerNum": _TRIAL,
        "minCandidateNodesPercentage": _TRIAL,
        "minCandidateNodesAbsolute": _TRIAL,
        "maxCandidateNodesAbsolute": _TRIAL,
    },
    "reclaim": {"predicateErrorCacheEnable": _CACHE},
    "gangpreempt": {"maxDomains": _TRIAL, "allowWholeBundle": _TRIAL},
    "gangreclaim": {"maxDomains": _TRIAL, "allowWholeBundle": _TRIAL},
}
"""Maps an action to its arguments, which Volcano's files list under `configurations`."""

_NEVER_READ = Switch(of=KAI, default=False, without="neither KAI-Scheduler nor Muster reads this switch")
_NOT_ASKED = "no action of Muster calls such a hook"
_SUB_GROUPS = "Muster always places whole sub-groups, as many as the gang needs"


def _all(names: str, switch: Switch) -> dict[str, Switch]:
    return dict.fromkeys(names.split(), switch)


SWITCHES: dict[str, Switch] = {
    "enableJobOrder": Switch(hooks=("job_order",)),
    "enableTaskOrder": Switch(hooks=("task_order",)),
    "enableQueueOrder": Switch(hooks=("queue_order",)),
    "enabledSubJobOrder": Switch(hooks=("pod_set_order", "sub_group_set_order")),
    "enableJobReady": Switch(hooks=("job_ready",)),
    "enablePredicate": Switch(hooks=("pre_predicate", "predicate", "neighbour_predicate")),
    "enableNodeOrder": Switch(hooks=("node_order", "node_pre_order", "gpu_order")),
    "enableJobEnqueued": Switch(hooks=("job_enqueueable", "job_enqueued")),
    "enabledAllocatable": Switch(
        hooks=(
            "is_job_over_queue_capacity",
            "is_non_preemptible_job_over_queue_quota",
            "is_task_allocation_on_node_over_capacity",
        )
    ),
    "enablePreemptable": Switch(hooks=("preempt_victim_filter", "preempt_scenario_validator")),
    "enableReclaimable": Switch(hooks=("reclaim_victim_filter", "reclaim_scenario_validator")),
    "enablePreemptive": Switch(hooks=("can_reclaim_resources",)),
    "enableHierarchy": Switch(default=False, without="the usage of a queue always counts towards its parent queues"),
    "enabledOverused": Switch(without="Muster checks for each gang whether its queue may use the requested resources"),
    **_all("enableJobPipelined enableJobStarving enableBestNode enableTargetJob", Switch(without=_NOT_ASKED)),
    **_all("enableReservedNodes enabledVictim", Switch(without=_NOT_ASKED)),
    "enabledClusterOrder": Switch(default=False, without=_NOT_ASKED),
    **_all("enabledHyperNodeOrder enabledHyperNodeGradient", Switch(without=_NOT_ASKED)),
    **_all("enabledSubJobReady enabledSubJobPipelined", Switch(without=_SUB_GROUPS)),
    **_all("disableJobOrder disableJobReady disableTaskOrder disableQueueOrder", _NEVER_READ),
    **_all("disablePreemptable disableReclaimable disablePredicate disableNodeOrder", _NEVER_READ),
}
"""Maps a switch to its effect. A switch whose value differs from the default removes hooks from the plugin or is
reported.
"""

SECTIONS: dict[str, Name] = {
    "configurations": Name(differs="docs/scheduler-configuration.md lists which arguments of actions have an effect"),
    "metrics": Name(without="no plugin of Muster reads the load of nodes"),
    "queueDepthPerAction": Name(of=KAI, without="every cycle tries to place every waiting gang"),
    "usageDBConfig": Name(
        of=KAI,
        differs="Muster measures the usage of queues without a database, and reads only usageParams.halfLifePeriod, as"
        " the halfLife of plugin proportion",
    ),
}

_ELASTICSEARCH = ("index", "username", "password", "hostnameFieldName")
METRICS = (
    "type",
    "address",
    "interval",
    "tls.insecureSkipVerify",
    *(f"elasticsearch.{each}" for each in _ELASTICSEARCH),
)
"""Known fields of `metrics`; a dot separates the name of a nested field from its parent."""
_USAGE = "halfLifePeriod windowSize windowType tumblingWindowCronString fetchInterval stalenessPeriod waitTimeout"
_USAGE_PARAMS = tuple(f"usageParams.{each}" for each in (*_USAGE.split(), "extraParams*"))
USAGE_DB = ("clientType", "connectionString", "connectionStringEnvVar", *_USAGE_PARAMS)
"""Known fields of `usageDBConfig`."""
