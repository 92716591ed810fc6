"""Warnings about sizes that have no place, from the amounts of Queues."""

from typing import Any

import msgspec
import pytest

from muster.api.volcano.scheduling import Queue
from muster.resources.vector import vector
from muster.workloads.batch_job import BATCH_JOB
from muster.workloads.capacity import requests_at, requests_of, without_place
from muster.workloads.kind import WorkloadKind
from muster.workloads.table import KINDS
from muster.workloads.verbs import VerbRequest, changed, outcome
from muster.workloads.volcano_job import TRAIN_JOB

GPU = "nvidia.com/gpu"


def queue(name: str, parent: str = "", **amounts: Any) -> Queue:
    """A Queue; `capability` is in its spec, other amounts are in its status."""
    spec = {"parent": parent, "capability": amounts.pop("capability", {})}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec, "status": amounts}, Queue)


ROOT = queue("root", fairShare={"cpu": "100", GPU: "32", "pods": "440"}, allocated={GPU: "20", "cpu": "2"})
QUEUES = {each.metadata.name: each for each in (
    ROOT, queue("team", "dept"), queue("dept", "root", capability={GPU: "24"}),
)}  # fmt: skip


@pytest.mark.parametrize(("gpus", "own", "where", "why"), [
    (8, 0, "team", ""),
    (12, 0, "team", ""),
    (13, 0, "team", "4 pods in all request 13 nvidia.com/gpu, and only 12 nvidia.com/gpu is free at present"),
    (16, 0, "team", "4 pods in all request 16 nvidia.com/gpu, and only 12 nvidia.com/gpu is free at present"),
    (16, 8, "team", ""),
    (28, 8, "team", "4 pods in all request 28 nvidia.com/gpu, and queue dept may use 24 nvidia.com/gpu (capability)"),
    (40, 20, "root", "4 pods in all request 40 nvidia.com/gpu, and all nodes together have 32 nvidia.com/gpu"),
    (40, 0, "unknown", "4 pods in all request 40 nvidia.com/gpu, and all nodes together have 32 nvidia.com/gpu"),
])  # fmt: skip
def test_a_size_without_a_place(gpus: int, own: int, where: str, why: str) -> None:
    """The limit that never changes by itself is named first; the workload's own pods make way."""
    found = without_place(vector({GPU: gpus, "pods": 4}), vector({GPU: own}), where, QUEUES.get)
    assert found == (f"{why}: not all of them can run" if why else "")
    assert without_place(vector({GPU: gpus, "pods": 4}), {}, where, {}.get) == ""  # the user may not list Queues


def test_requests_of_all_pods() -> None:
    """As they are after the verb, and none where the manifest does not have the pods."""
    container = {"name": "main", "resources": {"requests": {"cpu": "500m"}, "limits": {GPU: 8}}}
    template = {"metadata": {"labels": {"muster.dev/framework": "torch"}}, "spec": {"containers": [container]}}
    spec = {"completionMode": "Indexed", "parallelism": 2, "completions": 2, "template": template}
    job = {"metadata": {"name": "w", "uid": "u"}, "spec": spec}
    assert requests_of(BATCH_JOB, job) == {**vector({"cpu": "1", GPU: "16"}), "pods": 2}

    def of_size(size: int) -> Any:
        return changed(job, outcome(BATCH_JOB, job, "running", VerbRequest("resize", size=size)).steps)

    assert requests_at(BATCH_JOB, 1_000_000, of_size) == vector({"cpu": 500_000, GPU: 8_000_000, "pods": 1_000_000})
    assert requests_of(TRAIN_JOB, job) == {}
    assert requests_of(BATCH_JOB, {**job, "spec": {**spec, "parallelism": 0}}) == {}


@pytest.mark.parametrize(
    "kind", [each for each in KINDS if each.verbs and each.verbs.count], ids=lambda kind: kind.resource.kind
)
def test_a_workload_with_a_billion_pods_is_not_counted(kind: WorkloadKind) -> None:
    """`muster resize` of such a workload to a usual size neither takes hours nor all memory."""
    template = {"spec": {"containers": [{"name": "main"}]}}
    spec = {"replicas": 10**9, "template": template, "leaderWorkerTemplate": {"workerTemplate": template}}
    with pytest.raises(ValueError, match="w has more than 20000 pods"):
        requests_of(kind, {"metadata": {"name": "w", "uid": "u"}, "spec": spec})
