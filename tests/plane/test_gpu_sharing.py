"""Pods that share GPUs on a real control plane: devices, env, refusals, whole gangs beside them; and resize."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from gang_jobs import job
from planes import drop_queue

from muster.api.kubernetes.core import NODES, PODS, Pod
from muster.api.muster.placement import devices_of_text
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import QUEUES
from muster.kube.client import Client

pytestmark = [pytest.mark.plane, pytest.mark.alone]
WaitFor = Callable[..., Any]
GPUS = 8


def sharing(name: str, namespace: str, replicas: int, fraction: str, **more: Any) -> dict[str, Any]:
    """A Job whose pods each share a GPU."""
    manifest = job(name, namespace, replicas=replicas, gpus=0, **more)
    manifest["spec"]["tasks"][0]["template"]["metadata"]["annotations"]["gpu-fraction"] = fraction
    return manifest


def bound(client: Client, namespace: str, name: str) -> list[Pod]:
    """The pods of a Job that have a node."""
    pods = client.list(PODS, namespace)
    return [pod for pod in pods if pod.spec.node_name and pod.metadata.labels.get("volcano.sh/job-name") == name]


def devices_of(pods: list[Pod]) -> dict[tuple[str, int], float]:
    """Node and device → how much of it pods share; each pod has exactly one device."""
    used: dict[tuple[str, int], float] = defaultdict(float)
    for pod in pods:
        [device] = devices_of_text(pod.metadata.annotations["muster.dev/gpu-devices"])
        used[pod.spec.node_name, device] += float(pod.metadata.annotations["muster.dev/gpu-portion"])
    return used


def test_gangs_that_share_beside_gangs_of_whole_gpus(client: Client, namespace: str, wait_for: WaitFor) -> None:
    """Every pod has a device with room, its container is told which, and whole GPUs are counted beside them."""
    client.create(JOBS, sharing("thirds", namespace, 6, "0.3"))
    wait_for(lambda: len(bound(client, namespace, "thirds")) == 6)
    client.create(JOBS, sharing("halves", namespace, 5, "0.5"))
    client.create(JOBS, job("whole", namespace, replicas=3, gpus=4))
    wait_for(lambda: len(bound(client, namespace, "halves")) == 5)
    wait_for(lambda: len(bound(client, namespace, "whole")) == 3)
    shared = bound(client, namespace, "thirds") + bound(client, namespace, "halves")
    used = devices_of(shared)
    assert all(part <= 1 for part in used.values())
    for node in {node for node, _ in used}:
        whole = 4 * sum(pod.spec.node_name == node for pod in bound(client, namespace, "whole"))
        assert whole + sum(there == node for there, _ in used) <= GPUS
    [container] = shared[0].spec.containers
    told = {variable.name: variable.value_from for variable in container.env}
    source = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.annotations['muster.dev/gpu-devices']"}}
    assert told["NVIDIA_VISIBLE_DEVICES"] == source


def test_a_queue_counts_half_of_a_gpu(client: Client, namespace: str, wait_for: WaitFor) -> None:
    """Its status says so, and a gang that would be more than its capability waits."""
    name = f"{namespace}-gpu"
    client.create(QUEUES, {"metadata": {"name": name}, "spec": {"capability": {"nvidia.com/gpu": 1}}})
    manifest = sharing("one", namespace, 3, "0.25")
    manifest["spec"]["queue"] = name
    client.create(JOBS, manifest)
    wait_for(lambda: len(bound(client, namespace, "one")) == 3)
    wait_for(lambda: client.get(QUEUES, name).status.allocated.get("nvidia.com/gpu") == "750m")
    more = sharing("two", namespace, 1, "0.3")
    more["spec"]["queue"] = name
    client.create(JOBS, more)
    fits = sharing("three", namespace, 1, "0.25")
    fits["spec"]["queue"] = name
    client.create(JOBS, fits)
    wait_for(lambda: len(bound(client, namespace, "three")) == 1)
    assert bound(client, namespace, "two") == []
    for each in ("one", "two", "three"):
        client.delete(JOBS, each, namespace)
    for pod in client.list(PODS, namespace):  # Kubernetes' garbage collector learns of new kinds only after 30 s
        client.delete(PODS, pod.metadata.name, namespace, grace_period_s=0)
    wait_for(lambda: client.list(PODS, namespace) == [])
    drop_queue(client, name)


def test_a_pod_without_a_gang_gets_a_device_too(client: Client, namespace: str, wait_for: WaitFor) -> None:
    """Chosen when it is bound."""
    pod = {
        "metadata": {"name": "lone", "annotations": {"gpu-fraction": "0.5"}},
        "spec": {"schedulerName": "muster", "containers": [{"name": "main", "image": "none"}]},
    }
    client.create(PODS, pod, namespace)
    lone = wait_for(lambda: next((each for each in client.list(PODS, namespace) if each.spec.node_name), None))
    assert len(devices_of_text(lone.metadata.annotations["muster.dev/gpu-devices"])) == 1
    assert [variable.name for variable in lone.spec.containers[0].env] == ["NVIDIA_VISIBLE_DEVICES", "GPU_PORTION"]


def test_what_kubelet_has_set_aside_for_a_resize_counts(client: Client, namespace: str, wait_for: WaitFor) -> None:
    """A pod whose containers have more than is asked for leaves less room than its spec says."""
    nodes = client.list(NODES)
    cpus = max(int(node.status.allocatable["cpu"]) for node in nodes)
    client.create(JOBS, job("small", namespace, replicas=1, gpus=0))
    [pod] = wait_for(lambda: bound(client, namespace, "small"))
    started = "to start: kwok writes its containers' status then, over any other"
    wait_for(lambda: client.get(PODS, pod.metadata.name, namespace).status.phase == "Running", what=started)
    has = {"name": "main", "image": "none", "imageID": "", "ready": True, "restartCount": 0}
    has |= {"resources": {"requests": {"cpu": str(cpus)}}, "allocatedResources": {"cpu": str(cpus)}}
    client.merge_patch(
        PODS, pod.metadata.name, {"status": {"containerStatuses": [has]}}, namespace, subresource="status"
    )
    client.create(JOBS, job("rest", namespace, replicas=len(nodes) - 1, gpus=0, cpu=str(cpus - 1)))
    wait_for(lambda: len(bound(client, namespace, "rest")) == len(nodes) - 1)
    assert pod.spec.node_name not in {each.spec.node_name for each in bound(client, namespace, "rest")}
