"""Objects of Kueue's API: quota for namespaces, and the workloads that it makes of what they submit."""

from typing import Any, Final

from muster.api.base import Resource
from muster.kube.client import Client

JSON = dict[str, Any]
_GROUP, _VERSION = "kueue.x-k8s.io", "v1beta2"
QUEUE: Final = f"{_GROUP}/queue-name"
"""The label that gives a workload to Kueue."""


def _kind(plural: str, name: str) -> Resource[JSON]:
    return Resource(_GROUP, _VERSION, plural, name, dict[str, Any])


def cluster_kind(plural: str, name: str) -> Resource[JSON]:
    """A kind of Kueue's that belongs to no namespace."""
    return Resource(_GROUP, _VERSION, plural, name, dict[str, Any], namespaced=False)


FLAVORS = cluster_kind("resourceflavors", "ResourceFlavor")
CLUSTER_QUEUES = cluster_kind("clusterqueues", "ClusterQueue")
LOCAL_QUEUES = _kind("localqueues", "LocalQueue")
WORKLOADS = _kind("workloads", "Workload")
TOPOLOGIES = cluster_kind("topologies", "Topology")


def make_quota(client: Client, name: str, quota: JSON, *, topology: str = "", **spec: Any) -> None:
    """A flavor of Linux nodes and a ClusterQueue of this name, with so much of each resource, for all namespaces."""
    flavor: JSON = {"nodeLabels": {"kubernetes.io/os": "linux"}}
    flavor |= {"topologyName": topology} if topology else {}
    client.create(FLAVORS, {"metadata": {"name": name}, "spec": flavor})
    resources = [{"name": each, "nominalQuota": amount} for each, amount in quota.items()]
    group = {"coveredResources": list(quota), "flavors": [{"name": name, "resources": resources}]}
    body = {"namespaceSelector": {}, "resourceGroups": [group], **spec}
    client.create(CLUSTER_QUEUES, {"metadata": {"name": name}, "spec": body})


def make_local_queue(client: Client, namespace: str, name: str, cluster_queue: str) -> None:
    """A LocalQueue, through which a namespace uses a ClusterQueue."""
    client.create(LOCAL_QUEUES, {"metadata": {"name": name}, "spec": {"clusterQueue": cluster_queue}}, namespace)


def workload_of(client: Client, namespace: str, owner: str) -> JSON | None:
    """The Workload that Kueue has made for the owner of this name."""
    for each in client.list(WORKLOADS, namespace):
        if any(reference["name"] == owner for reference in each["metadata"].get("ownerReferences", ())):
            return each
    return None


def holds(workload: JSON | None, condition: str) -> bool:
    """Whether a Workload has a condition: QuotaReserved, Admitted, PodsReady, Evicted, Finished."""
    conditions = ((workload or {}).get("status") or {}).get("conditions") or ()
    return any((each["type"], each["status"]) == (condition, "True") for each in conditions)
