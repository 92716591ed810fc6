"""KubeSchedulerConfigurations: of Muster's kube-scheduler and of the cluster's own.

Muster's has the profiles `muster` and `volcano` without DefaultPreemption (evictions are decided by the planner, for
whole gangs), looks at all nodes, and asks the extender. The extender stands in it twice, because one entry has one
timeout for all its verbs: filter and prioritize are answered from memory, while a bind waits for its gang.

Where the extender's URL is an https one, kube-scheduler shows it a client certificate. It reads that anew for each
connection, but the authorities of the extender's only when it starts.
"""

from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

from muster.api.names import (
    BINDING_MARKER,
    CLUSTER_SCHEDULER,
    EXTENDER_HOST,
    MEMBER_MARKER,
    SCHEDULER,
    SCHEDULER_LEASE,
    SYSTEM_NAMESPACE,
    VOLCANO_SCHEDULER,
)

DEFAULT_EXTENDER_PORT: Final = 8090
DEFAULT_TLS_FOLDER: Final = "/etc/muster/extender-tls"
"""The folder of `ExtenderAt` in the chart's kube-scheduler."""
_DECISION_TIMEOUT: Final = "3s"
_BIND_TIMEOUT: Final = "75s"  # longer than the barrier of a gang of 5,000 (10 s and 10 ms per member)


class ExtenderAt(NamedTuple):
    """The address of the extender for kube-scheduler; with an https URL it needs the files and the name, too."""

    url: str = f"http://127.0.0.1:{DEFAULT_EXTENDER_PORT}"
    """By default the port where the extender is when the plane runs no scheduler and nothing else was said."""
    folder: str = DEFAULT_TLS_FOLDER
    """Has kube-scheduler's client certificate (client.crt, client.key), and the extender's authorities (ca.crt)."""
    server_name: str = EXTENDER_HOST
    """A name in the extender's certificate."""


_ON_LOOPBACK: Final = ExtenderAt()


def muster_scheduler(*, kubeconfig: str, extender: ExtenderAt = _ON_LOOPBACK) -> dict[str, Any]:
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
        "extenders": extenders(extender),
    }


def shared_scheduler(*, kubeconfig: str, extender: ExtenderAt = _ON_LOOPBACK) -> dict[str, Any]:
    """The configuration of a cluster's own scheduler that asks Muster about marked pods, and about no others.

    kube-scheduler ignores the marker resources when it looks for room, so no node has to offer them. It serves Muster's
    profiles beside its own; there preemption stays as it is, and for marked pods Muster is asked which victims would
    break a gang.
    """
    entries = extenders(extender)
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
    """The configuration of a cluster's own kube-scheduler that knows nothing of Muster, alone on its machine."""
    return {**_base(kubeconfig), "leaderElection": {"leaderElect": False}}


def extenders(extender: ExtenderAt) -> list[dict[str, Any]]:
    """The two entries of the extender; without managedResources they are asked about every pod of the profiles."""
    server = {
        "urlPrefix": extender.url.rstrip("/"),
        **_tls(extender),
        "nodeCacheCapable": True,
        "ignorable": False,
        "weight": 1,
    }
    return [
        {**server, "filterVerb": "filter", "prioritizeVerb": "prioritize", "httpTimeout": _DECISION_TIMEOUT},
        {**server, "bindVerb": "bind", "httpTimeout": _BIND_TIMEOUT},
    ]


def _tls(extender: ExtenderAt) -> dict[str, Any]:
    """The certificates of an entry, as files: kube-scheduler never reads data again that stands in the entry."""
    if not extender.url.startswith("https://"):
        return {}
    folder = PurePosixPath(extender.folder)
    files = {"certFile": "client.crt", "keyFile": "client.key", "caFile": "ca.crt"}
    config = {name: str(folder / file) for name, file in files.items()}
    return {"enableHTTPS": True, "tlsConfig": {"serverName": extender.server_name, **config}}


def _base(kubeconfig: str) -> dict[str, Any]:
    """The client of every configuration; its default of 50 requests a second would be the limit of everything."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": kubeconfig, "qps": 1000, "burst": 2000},
    }


def _muster_profiles() -> list[dict[str, Any]]:
    """Muster's profiles: kube-scheduler's own plugins without preemption."""
    return [
        {"schedulerName": name, "plugins": {"multiPoint": {"disabled": [{"name": "DefaultPreemption"}]}}}
        for name in (SCHEDULER, VOLCANO_SCHEDULER)
    ]
