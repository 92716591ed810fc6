"""Look-ups in a cluster: from the caches, else from the API server, and never another object of the name."""

from typing import Any, cast

from builders import manifests
from guarded_api import GuardedApi

import webhook
from muster.api.kubeflow.trainer import RuntimeRef
from muster.api.kubeflow.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from muster.api.kubernetes.core import INDEXED_JOBS, NAMESPACES
from muster.api.kubernetes.meta import OwnerReference
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import QUEUES
from webhook.lookup import ClusterLookups, NamespaceLookup, OwnerLookup, QueueLookup, RuntimeLookup


class Cluster:
    """An API server, and the look-ups in it."""

    def __init__(self) -> None:
        self.api = GuardedApi(webhook)
        self.client = cast("Any", self.api)

    def add(self, kind: Any, name: str, **metadata: Any) -> Any:
        """An object, which no cache has."""
        return self.api.add(kind, {"metadata": {"name": name, **metadata}, "spec": {}}, "n")


def test_runtimes_of_a_namespace_and_of_the_cluster() -> None:
    """Each kind has its own names."""
    cluster = Cluster()
    own, shared = cluster.add(TRAINING_RUNTIMES, "own"), cluster.add(CLUSTER_TRAINING_RUNTIMES, "shared")
    runtimes = RuntimeLookup(cluster.client)
    assert runtimes.find(RuntimeRef(name="own", kind="TrainingRuntime"), "n") == own
    assert runtimes.find(RuntimeRef(name="own", kind="TrainingRuntime"), "other") is None
    assert runtimes.find(RuntimeRef(name="shared"), "n") == shared
    assert runtimes.find(RuntimeRef(name="own"), "n") is None


def test_an_owner_is_the_one_of_its_uid() -> None:
    """The cache may have an earlier one; a foreign namespace's is not found."""
    cluster, seconds = Cluster(), [0.0]
    job = cluster.add(INDEXED_JOBS, "train")
    owners = OwnerLookup(cluster.client, lambda: seconds[0])
    reference = OwnerReference(api_version="batch/v1", kind="Job", name="train", uid=job.metadata.uid)
    assert owners.find(INDEXED_JOBS, "n", reference) == job
    assert owners.find(INDEXED_JOBS, "other", reference) is None
    cluster.api.remove(INDEXED_JOBS, job)
    assert owners.find(INDEXED_JOBS, "n", reference) == job, "remembered for the other pods of the moment"
    assert owners.find(JOBS, "n", reference) is None, "it is a Job of another group"
    seconds[0] += 60.0
    assert owners.find(INDEXED_JOBS, "n", reference) is None


def test_queues_and_namespaces() -> None:
    """Queues that are open and have none below them; a namespace's label that the cache does not show yet."""
    cluster = Cluster()
    queues, namespaces = QueueLookup(cluster.client), NamespaceLookup(cluster.client)
    for each in (manifests.queue("root"), manifests.queue("a"), manifests.queue("b", parent="a"),
                 manifests.queue("c", state="Closed")):  # fmt: skip
        cluster.api.add(QUEUES, each)
        cluster.api.change(QUEUES, each["metadata"]["name"], {"status": each["status"]}, subresource="status")
        queues.store.put(cluster.api.find(QUEUES, each["metadata"]["name"]))
    assert (queues.names(), queues.children("root"), queues.children("a")) == (["b"], ["a", "c"], ["b"])
    assert queues.get("missing") is None
    namespaces.store.put(cluster.api.add(NAMESPACES, {"metadata": {"name": "n"}}))
    cluster.api.change(NAMESPACES, "n", {"metadata": {"labels": {"muster.dev/queue": "b"}}})
    assert namespaces.metadata("n").labels == {}
    assert namespaces.metadata("n", with_queue=True).labels == {"muster.dev/queue": "b"}
    assert namespaces.metadata("gone", with_queue=True).labels == {}


def test_caches_behind_all_look_ups() -> None:
    """Each kind once, by the name on the page of health checks."""
    kinds = [each.kind for each in ClusterLookups(Cluster().client).caches]
    assert len(kinds) == len(set(kinds))
    assert {"queues.scheduling.volcano.sh", "namespaces", "jobs.batch"} <= set(kinds)
