"""KubeSchedulerConfigurations: of Muster's kube-scheduler and of the cluster's own.

Muster's has the profiles `muster` and `volcano` without DefaultPreemption (who is evicted is the planner's decision,
for whole gangs), looks at all nodes, and asks the extender. The extender stands in it twice, because one entry has one
timeout for all its verbs: filter and prioritize are answered from memory, while a bind waits for its gang.
"""

from typing import Any, Final

from muster.api.names import (
    BINDING_MARKER,
    CLUSTER_SCHEDULER,
    MEMBER_MARKER,
    SCHEDULER,
    SCHEDULER_LEASE,
    SYSTEM_NAMESPACE,
    VOLCANO_SCHEDULER,
)

DEFAULT_EXTENDER_PORT: Final = 8090
DEFAULT_EXTENDER_URL: Final = f"http://127.0.0.1:{DEFAULT_EXTENDER_PORT}"
"""Where the extender is when somebody else runs the scheduler and nothing else was said."""
_DECISION_TIMEOUT: Final = "3s"
_BIND_TIMEOUT: Final = "75s"  # longer than the barrier of a gang of 5,000 (10 s and 10 ms per member)
_API_VERSION: Final = "kubescheduler.config.k8s.io/v1"


def muster_scheduler(*, kubeconfig: str, extender_url: str = DEFAULT_EXTENDER_URL) -> dict[str, Any]:
    """The configuration of the kube-scheduler that serves Muster's pods; an empty kubeconfig means in-cluster."""
    return {
        **_base(kubeconfig),
        "leaderElection": {
            "leaderElect": True,
            "resourceLock": "leases",
            "resourceName": SCHEDULER_LEASE,
            "resourceNamespace": SYSTEM_NAMESPACE,
            "leaseDuration": "15s",
            "renewDeadline": "10s",
            "retryPeriod": "2s",
        },
        "percentageOfNodesToScore": 100,
        "profiles": _muster_profiles(),
        "extenders": extenders(extender_url),
    }


def shared_scheduler(*, kubeconfig: str, extender_url: str = DEFAULT_EXTENDER_URL) -> dict[str, Any]:
    """The configuration of a cluster's own scheduler that asks Muster about marked pods, and about no others.

    kube-scheduler ignores the marker resources when it looks for room, so no node has to offer them. It serves Muster's
    profiles beside its own; there preemption stays as it is, and for marked pods Muster is asked which victims would
    break a gang.
    """
    entries = extenders(extender_url)
    entries[0]["preemptVerb"] = "preempt"
    for entry, marker in zip(entries, (MEMBER_MARKER, BINDING_MARKER), strict=True):
        entry["managedResources"] = [{"name": marker, "ignoredByScheduler": True}]
    return {
        **_base(kubeconfig),
        "leaderElection": {"leaderElect": True},
        "percentageOfNodesToScore": 100,
        "profiles": [{"schedulerName": CLUSTER_SCHEDULER}, *_muster_profiles()],
        "extenders": entries,
    }


def default_scheduler(*, kubeconfig: str) -> dict[str, Any]:
    """The configuration of the cluster's own kube-scheduler, as the distributions leave it, alone on its machine."""
    return {**_base(kubeconfig), "leaderElection": {"leaderElect": False}}


def extenders(url: str) -> list[dict[str, Any]]:
    """The two entries of the extender; without managedResources they are asked about every pod of the profiles."""
    server = {"urlPrefix": url.rstrip("/"), "nodeCacheCapable": True, "ignorable": False, "weight": 1}
    return [
        {**server, "filterVerb": "filter", "prioritizeVerb": "prioritize", "httpTimeout": _DECISION_TIMEOUT},
        {**server, "bindVerb": "bind", "httpTimeout": _BIND_TIMEOUT},
    ]


def _base(kubeconfig: str) -> dict[str, Any]:
    """What both share: the client, whose default of 50 requests a second would be the limit of everything."""
    return {
        "apiVersion": _API_VERSION,
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": kubeconfig, "qps": 1000, "burst": 2000},
    }


def _muster_profiles() -> list[dict[str, Any]]:
    """Muster's profiles: kube-scheduler's own plugins without preemption."""
    return [
        {"schedulerName": name, "plugins": {"multiPoint": {"disabled": [{"name": "DefaultPreemption"}]}}}
        for name in (SCHEDULER, VOLCANO_SCHEDULER)
    ]
