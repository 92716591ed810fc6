"""The outcome of each verb on each kind of workload in each state: what unit tests, planes and docs/why.md compare."""

from typing import get_args

from muster.workloads.verbs import Condition, Verb

CONDITIONS: tuple[Condition, ...] = get_args(Condition)
VERBS: tuple[Verb, ...] = get_args(Verb)
ALL, NOT = "delete | delete | delete | delete | delete", "no | no | no | no | no"
SUSPENDS: dict[Verb, str] = {
    "cancel": ALL,
    "hold": "patch | patch | patch | - | no",
    "release": "- | - | - | patch | no",
    "move": "gangs patch | gangs patch | gangs patch | patch | no",
    "priority": NOT,
    "resize": NOT,
}
ANEW = "patch stopped patch"
REPLICAS: dict[Verb, str] = {**SUSPENDS, "priority": f"{ANEW} | no | {ANEW} | patch | no"}
IN_PLACE = "patch | patch | patch | patch | no"
OUTCOMES: dict[str, dict[Verb, str]] = {
    "jobs.batch": {**SUSPENDS, "resize": f"{ANEW} | {ANEW} | {ANEW} | patch | no"},
    "jobsets.jobset.x-k8s.io": SUSPENDS,
    "trainjobs.trainer.kubeflow.org": {**SUSPENDS, "move": NOT, "resize": IN_PLACE},
    "statefulsets.apps": {**REPLICAS, "resize": f"{ANEW} | {ANEW} | {ANEW} | patch | no"},
    "deployments.apps": {**REPLICAS, "resize": IN_PLACE},
    "leaderworkersets.leaderworkerset.x-k8s.io": {**REPLICAS, "resize": IN_PLACE},
    "jobs.batch.volcano.sh": {
        "cancel": ALL,
        "hold": "command | command | command | - | no",
        "release": "- | - | - | command | no",
        "move": NOT,
        "priority": IN_PLACE,
        "resize": " | ".join([*["command stopped patch command"] * 3, "patch", "no"]),
    },
    "pods.": {**dict.fromkeys(VERBS, NOT), "cancel": ALL, "move": SUSPENDS["move"]},
    "podgroups.scheduling.volcano.sh": {**dict.fromkeys(VERBS, NOT), "move": IN_PLACE, "priority": IN_PLACE},
    "jobflows.flow.volcano.sh": {**dict.fromkeys(VERBS, NOT), "cancel": ALL},
}
"""Kind -> verb -> its outcome for a workload that waits, runs, was evicted, is suspended, and has ended."""
