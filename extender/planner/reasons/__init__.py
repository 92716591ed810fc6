"""Messages that explain to users why a gang waits: conditions, Events, Placements, Queues, pods and `muster explain`.

| module | sentences |
|---|---|
| `shortages` | nodes by the cause that excludes them, and the missing capacity: `Shortage` |
| `cause` | the reason why one node does not accept a pod |
| `devices` | problems of device claims, and demands of claims that are not counted |
| `topology` | the domain that came closest, and problems of HyperNodes |
| `queues` | refusals: by capability, guarantees, quota and order of a queue, by ResourceQuota; reservations |
| `pods` | missing pods, and pods that wait for other gates |
| `placements` | the progress and the end of a placement, and why a pod is evicted |
| `repairs` | what happens to gangs whose nodes have failed |
| `scaleup` | why nodes are requested from an autoscaler, or not |
| `exclusions` | why an object cannot be evaluated |
| `verbs` | the constants that kube-scheduler gets from filter and bind |
| `gangs`, `members`, `relief` | additions of `muster explain`: the progress of a gang or a pod, and relief |

This package makes no decisions. Decisions and objects contain a `Reason` (`muster.api.muster.reason`): a code with
parameters, which programs can read and which is shown to users as a sentence. Each reason is defined as a constant, a
text with blanks, or a function whose docstring describes the situation. Messages that only `muster explain` shows are
built as sentences directly. The text of a condition or an Event may change only when the facts change, because each new
text costs a write. Of Muster's packages, this package imports only `muster.api` and `muster.resources`.
"""

from extender.planner.reasons import (
    cause,
    devices,
    exclusions,
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
    "cause", "devices", "exclusions", "gangs", "members", "placements", "pods", "queues", "relief", "repairs",
    "scaleup", "topology",
]  # fmt: skip
