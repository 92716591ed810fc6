"""Every sentence that users read about waiting: in conditions, Events, Placements, Queues, pods and `muster explain`.

| module | what it says |
|---|---|
| `room` | how many nodes are lost to which cause, and what is missing: `Shortage` |
| `cause` | why one node does not take a pod |
| `devices` | what is wrong with claims to devices, and what of them is not counted |
| `topology` | which domain came closest, and what is wrong with HyperNodes |
| `queues` | refusals: by capability, guarantees, quota and order of a queue, by ResourceQuota; reservations |
| `pods` | pods that are missing, or wait for other gates |
| `placements` | how a placement goes on and ends, and why a pod is evicted |
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
    gangs,
    members,
    placements,
    pods,
    queues,
    relief,
    scaleup,
    topology,
)

__all__ = [
    "aside", "cause", "devices", "gangs", "members", "placements", "pods", "queues", "relief", "scaleup", "topology",
]  # fmt: skip
