"""Every reason that users read about waiting: in conditions, Events, Placements, Queues, pods and `muster explain`.

| module | sentences |
|---|---|
| `room` | nodes by the cause that excludes them, and the room that is missing: `Shortage` |
| `cause` | why one node does not take a pod |
| `devices` | problems of claims to devices, and their demands that are not counted |
| `topology` | the domain that came closest, and problems of HyperNodes |
| `queues` | refusals: by capability, guarantees, quota and order of a queue, by ResourceQuota; reservations |
| `pods` | missing pods, and pods that wait for other gates |
| `placements` | how a placement continues and ends, and why a pod is evicted |
| `repairs` | what happens to gangs whose nodes have failed |
| `scaleup` | why nodes are asked for, or not |
| `aside` | why an object cannot be evaluated |
| `verbs` | the constants that kube-scheduler gets from filter and bind |
| `gangs`, `members`, `relief` | additions of `muster explain`: the progress of a gang or a pod, and relief |

Nothing is decided here. What decisions and objects have is a `Reason` (`muster.api.muster.reason`), a code with
parameters, which is read by code and made a sentence where people read it. It is entered here as a constant, as a text
with blanks, or as a function of its facts. Messages of `muster explain` alone are built as sentences at once. A
sentence in a condition or an Event may change only when its facts do, as each new one is a write. Of Muster it imports
`muster.api` and `muster.resources` alone.
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
    repairs,
    scaleup,
    topology,
)

__all__ = [
    "aside", "cause", "devices", "gangs", "members", "placements", "pods", "queues", "relief", "repairs", "scaleup",
    "topology",
]  # fmt: skip
