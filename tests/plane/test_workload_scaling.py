"""PodGroups of workloads that are scaled, updated, suspended and ended."""

from collections.abc import Callable
from typing import Any

import pytest

from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.core import INDEXED_JOBS, PODS
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup, Queue
from muster.kube.client import Client

pytestmark = pytest.mark.plane
JSON = dict[str, Any]
WaitFor = Callable[..., Any]


def raw(plural: str, kind: str) -> Resource[JSON]:
    """A kind of apps/v1 as it comes."""
    return Resource("apps", "v1", plural, kind, dict[str, Any])


REPLICA_SETS, STATEFUL_SETS = raw("replicasets", "ReplicaSet"), raw("statefulsets", "StatefulSet")
DAEMON_SETS = raw("daemonsets", "DaemonSet")


def workload(replicas: int | None = None, cpu: str = "100m", **annotations: str) -> JSON:
    """A workload of pods for Volcano's scheduler."""
    template = {
        "metadata": {"labels": {"app": "x"}},
        "spec": {
            "schedulerName": "volcano",
            "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}],
        },
    }
    spec: JSON = {"selector": {"matchLabels": {"app": "x"}}, "template": template}
    if replicas is not None:
        spec["replicas"] = replicas
    return {"metadata": {"name": "x", "annotations": annotations}, "spec": spec}


def running(client: Client, namespace: str) -> int:
    """How many pods run."""
    return sum(pod.status.phase == "Running" for pod in client.list(PODS, namespace))


def group(client: Client, namespace: str) -> PodGroup | None:
    """The one PodGroup of the namespace, if there is one."""
    found = client.list(POD_GROUPS, namespace)
    assert len(found) <= 1
    return found[0] if found else None


@pytest.mark.parametrize("kind", [REPLICA_SETS, STATEFUL_SETS], ids=lambda kind: kind.kind)
def test_scaled_to_zero_and_back(client: Client, namespace: str, wait_for: WaitFor, kind: Resource[JSON]) -> None:
    """One group as long as pods are wanted, none at zero, another one after that."""
    client.create(kind, workload(2), namespace)
    wait_for(lambda: running(client, namespace) == 2)
    first = wait_for(lambda: group(client, namespace))
    assert (first.spec.min_member, first.spec.min_resources) == (
        1, {"cpu": "100m", "requests.cpu": "100m", "pods": "1", "count/pods": "1"},
    )  # fmt: skip
    client.merge_patch(kind, "x", {"spec": {"replicas": 0}}, namespace)
    wait_for(lambda: group(client, namespace) is None)
    client.merge_patch(kind, "x", {"spec": {"replicas": 1}}, namespace)
    wait_for(lambda: running(client, namespace) == 1)
    assert wait_for(lambda: group(client, namespace)).metadata.uid != first.metadata.uid


def test_a_new_template_changes_the_group(client: Client, namespace: str, wait_for: WaitFor) -> None:
    """A StatefulSet keeps its group; what the group needs at least follows its newest pods, and so does its minimum."""
    minimum = {names.VOLCANO_GROUP_MIN_MEMBER: "2"}
    client.create(STATEFUL_SETS, workload(2, **{names.VOLCANO_GROUP_MIN_MEMBER: "1"}), namespace)
    wait_for(lambda: running(client, namespace) == 2)
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "300m"}}}
    change = {"metadata": {"annotations": minimum}, "spec": {"template": {"spec": {"containers": [container]}}}}
    client.merge_patch(STATEFUL_SETS, "x", change, namespace)
    expected = {"cpu": "600m", "requests.cpu": "600m", "pods": "2", "count/pods": "2"}
    wait_for(lambda: (found := group(client, namespace)) and found.spec.min_resources == expected)


def test_one_group_for_all_pods_of_a_daemon_set(client: Client, namespace: str, wait_for: WaitFor) -> None:
    """Each node's pod is a member."""
    client.create(DAEMON_SETS, workload(cpu="10m"), namespace)
    nodes = 8
    wait_for(lambda: running(client, namespace) == nodes)
    assert wait_for(lambda: group(client, namespace)).metadata.owner_references[0].kind == "DaemonSet"


@pytest.mark.parametrize(("exit_code", "condition"), [("0", "Complete"), ("1", "Failed")])
def test_the_group_of_a_job_that_ended_is_completed(
    client: Client, namespace: str, wait_for: WaitFor, exit_code: str, condition: str
) -> None:
    """Successful or not, and it stays so when the pods are deleted."""
    content = workload()
    content["spec"] = {"template": content["spec"]["template"], "backoffLimit": 0, "parallelism": 2, "completions": 2}
    template = content["spec"]["template"]
    template["spec"]["restartPolicy"] = "Never"
    template["metadata"]["annotations"] = {"kwok.muster.dev/run-seconds": "1", "kwok.muster.dev/exit-code": exit_code}
    client.create(INDEXED_JOBS, content, namespace)

    def ended() -> bool:
        conditions = client.get(INDEXED_JOBS, "x", namespace).status.get("conditions", [])
        return any(each["type"] == condition and each["status"] == "True" for each in conditions)

    wait_for(ended)
    wait_for(lambda: (found := group(client, namespace)) and found.status.phase == "Completed")
    for pod in client.list(PODS, namespace):
        client.delete(PODS, pod.metadata.name, namespace, grace_period_s=0)
    wait_for(lambda: not client.list(PODS, namespace))
    found = group(client, namespace)
    assert found is not None
    assert found.status.phase == "Completed"


def test_an_elastic_job_ends_without_pods_that_never_started(
    client: Client, namespace: str, wait_for: WaitFor, make_queue: Callable[..., Queue]
) -> None:
    """Two of three pods fit in the queue. When both have succeeded, the Job is complete with two."""
    queue = make_queue("small", capability={"cpu": "200m"}).metadata.name
    content = workload(**{"muster.dev/elastic": "2:3"})
    content["metadata"]["labels"] = {names.QUEUE: queue, names.FRAMEWORK: "torch"}
    template = content["spec"]["template"]
    template["metadata"]["annotations"] = {"kwok.muster.dev/run-seconds": "3"}
    template["spec"]["restartPolicy"] = "Never"
    content["spec"] = {"completionMode": "Indexed", "parallelism": 3, "completions": 3, "template": template}
    client.create(INDEXED_JOBS, content, namespace)
    wait_for(lambda: running(client, namespace) == 2)

    def ended() -> bool:
        return {"Complete"} <= {each["type"] for each in client.get(INDEXED_JOBS, "x", namespace).status["conditions"]}

    wait_for(lambda: client.get(INDEXED_JOBS, "x", namespace).status.get("conditions") and ended())
    job = client.get(INDEXED_JOBS, "x", namespace)
    assert (job.spec.completions, job.spec.parallelism, job.status["completedIndexes"]) == (2, 2, "0,1")
    assert {pod.status.phase for pod in client.list(PODS, namespace)} == {"Succeeded"}
    wait_for(lambda: (found := group(client, namespace)) and found.status.phase == "Completed")


def test_a_suspended_job_gives_its_group_back(client: Client, namespace: str, wait_for: WaitFor) -> None:
    """No pods are wanted, so nothing waits in the queue; resumed, it is a gang again."""
    content = workload()
    content["spec"] = {"template": content["spec"]["template"], "parallelism": 2, "completions": 2}
    content["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    client.create(INDEXED_JOBS, content, namespace)
    wait_for(lambda: running(client, namespace) == 2)
    client.merge_patch(INDEXED_JOBS, "x", {"spec": {"suspend": True}}, namespace)
    wait_for(lambda: group(client, namespace) is None)
    client.merge_patch(INDEXED_JOBS, "x", {"spec": {"suspend": False}}, namespace)
    wait_for(lambda: running(client, namespace) == 2)
    wait_for(lambda: group(client, namespace))
