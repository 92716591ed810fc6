"""Every sentence that users read about waiting: in conditions, Events, Placements, Queues, pods and `muster explain`.

| module | what it says |
|---|---|
| `room` | how many nodes are lost to which cause, and what is missing: `Shortage` |
| `cause` | why one node does not take a pod |
| `devices` | what is wrong with claims to devices, and what of them is not counted |
| `topology` | which domain came closest, and what is wrong with HyperNodes |
| `queues` | what a queue refuses: its capability, its guarantees, its quota, its order |
| `quotas` | what keeps a gang out: a ResourceQuota, too many gangs that were let in |
| `pods` | pods that are missing, or wait for other gates |
| `reservations` | what is reserved for whom, and who is in the way of it |
| `placements` | how a placement goes on and ends, and what of it stands in a PodGroup's conditions |
| `evictions` | why a pod has to go |
| `scaleup` | why nodes are asked for, or not |
| `aside` | why an object cannot be evaluated |
| `verbs` | the constants that kube-scheduler gets from filter and bind |
| `gangs`, `members`, `relief` | what `muster explain` adds: where a gang or a pod is, and what would help |

Nothing is decided here: a sentence is a constant, or a function of what was found out. Where no grammar is needed, the
function is the `format` of its text, called with what fills its blanks, by name (a test compares calls and blanks).
A sentence in a condition or an Event may change only when what it says does, as each new one is a write. Of Muster it
imports `muster.api` and `muster.resources` alone.
"""

from extender.planner.reasons import (
    aside,
    cause,
    devices,
    evictions,
    gangs,
    members,
    placements,
    pods,
    queues,
    quotas,
    relief,
    reservations,
    scaleup,
    topology,
)

__all__ = [
    "aside", "cause", "devices", "evictions", "gangs", "members", "placements", "pods", "queues", "quotas", "relief",
    "reservations", "scaleup", "topology",
]  # fmt: skip
