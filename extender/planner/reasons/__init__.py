"""Messages that explain to users why a gang waits: conditions, Events, Placements, Queues, pods and `muster explain`.

| module | sentences |
|---|---|
| `shortages` | `Shortage`: the nodes that each cause excludes, and the missing capacity |
| `cause` | the reason why one node does not accept a pod |
| `devices` | problems with device claims, and demands of claims that are not counted |
| `topology` | the domain that nearly holds a gang, and problems with HyperNodes |
| `queues` | refusals by a queue's limits or order and by ResourceQuotas; reservations |
| `pods` | missing pods, and pods that wait for other gates |
| `placements` | the progress and the end of a placement, and why a pod is evicted |
| `repairs` | what happens to gangs whose nodes have failed |
| `scaleup` | why nodes are requested from an autoscaler, or not |
| `exclusions` | why an object cannot be evaluated |
| `verbs` | reasons that kube-scheduler receives from rejected filter and bind calls |
| `gangs`, `members`, `relief` | sentences of `muster explain` about progress and about changes that would help |

This package makes no decisions. Decisions and objects contain a `Reason` (`muster.api.muster.reason`): a code with
parameters for programs, which is shown to users as a sentence. Each reason is defined as a constant, as a text with
placeholders, or as a function whose docstring describes the situation. Messages that only `muster explain` shows are
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
