"""The actions of both projects, and Volcano's arguments of actions (`configurations`)."""

from extender.planner.configuration.known.entry import KAI, VOLCANO, Name

_BOTH = f"{VOLCANO}, {KAI}"
_CACHE = Name(without="refusals are always kept as long as they hold")
_TRIAL = Name(without="victims are always searched for on a trial with all predicates")

ACTIONS: dict[str, Name] = {
    "enqueue": Name(
        differs="a gang is also kept out while even the empty cluster is too small for it, or its queue is full"
    ),
    "allocate": Name(of=_BOTH, differs="all waiting gangs get their minimum before any gets more"),
    "backfill": Name(
        differs="allocate places pods without requests too; this places those that strict order held back"
    ),
    "preempt": Name(
        of=_BOTH, differs="victims are whole gangs or pods above a gang's minimum, and the one who asked keeps the room"
    ),
    "reclaim": Name(
        of=_BOTH,
        differs="victims are whole gangs or pods above a gang's minimum, by KAI-Scheduler's rules",
    ),
    "gangpreempt": Name(ours="preempt", differs="it is preempt, which takes whole gangs in any case"),
    "gangreclaim": Name(ours="reclaim", differs="it is reclaim, which takes whole gangs in any case"),
    "shuffle": Name(without="nobody is evicted without somebody who starts in the room"),
    "consolidation": Name(of=KAI, ours="consolidate"),
    "stalegangeviction": Name(of=KAI),
}

ACTION_ARGUMENTS: dict[str, dict[str, Name]] = {
    "enqueue": {"overcommit-factor": Name(without="it is an argument of plugin overcommit")},
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
    "shuffle": {},
}
"""By action; what Volcano's files say under `configurations`."""
