"""The switches of plugins: Volcano's `enable…`, and those that KAI-Scheduler has from kube-batch and never reads.

Volcano spells them in two ways, `enable…` and `enabled…`; each name has one of them only.
"""

from extender.planner.configuration.known.entry import KAI, Switch

_NEVER_READ = Switch(of=KAI, default=False, without="KAI-Scheduler does nothing with it, nor does Muster")
_NOT_ASKED = "no action of Muster asks such a question"
_SUB_GROUPS = "sub-groups are always placed whole, as many as the gang needs"

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
    "enableHierarchy": Switch(default=False, without="queues with a parent always count in it, and need no switch"),
    "enabledOverused": Switch(without="whether a queue may have more is asked for each gang with its amounts"),
    "enableJobPipelined": Switch(without=_NOT_ASKED),
    "enableJobStarving": Switch(without=_NOT_ASKED),
    "enableBestNode": Switch(without=_NOT_ASKED),
    "enableTargetJob": Switch(without=_NOT_ASKED),
    "enableReservedNodes": Switch(without=_NOT_ASKED),
    "enabledVictim": Switch(without=_NOT_ASKED),
    "enabledClusterOrder": Switch(default=False, without=_NOT_ASKED),
    "enabledHyperNodeOrder": Switch(without=_NOT_ASKED),
    "enabledHyperNodeGradient": Switch(without=_NOT_ASKED),
    "enabledSubJobReady": Switch(without=_SUB_GROUPS),
    "enabledSubJobPipelined": Switch(without=_SUB_GROUPS),
    "disableJobOrder": _NEVER_READ,
    "disableJobReady": _NEVER_READ,
    "disableTaskOrder": _NEVER_READ,
    "disableQueueOrder": _NEVER_READ,
    "disablePreemptable": _NEVER_READ,
    "disableReclaimable": _NEVER_READ,
    "disablePredicate": _NEVER_READ,
    "disableNodeOrder": _NEVER_READ,
}
"""A switch that is not at its default takes its hooks from the plugin, or is in the report."""
