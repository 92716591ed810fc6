"""Nodes that fail under running gangs: who is replaced, who restarts in place, and where nothing new goes."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner
from gang_jobs import job, lone_pod
from node_faults import RAW_NODES, REPAIR_S, XID, says
from test_trainjob_reports import PATH, report, token
from train_jobs import TrainStory, train_job

from muster.api.kubernetes.core import EVENTS, INDEXED_JOBS, NODES, PODS
from muster.api.kubernetes.meta import format_time
from muster.api.muster.placement import PLACEMENTS
from muster.api.names import CHECKPOINT, COMPLETION_INDEX, EVICT_AT
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from musterctl.app import main
from musterctl.plane.install import node_objects
from musterctl.plane.plane import Plane

JSON = dict[str, Any]
NOT_READY = "kwok.muster.dev/not-ready"
pytestmark = [pytest.mark.plane, pytest.mark.long, pytest.mark.alone]


@pytest.fixture
def client(plane: Plane) -> Iterator[Client]:
    """A client; afterwards all nodes are there and healthy."""
    client = plane.client()
    yield client
    for node in client.list(RAW_NODES):
        name = node["metadata"]["name"]
        says(client, name, XID, "False")
        client.merge_patch(NODES, name, {"metadata": {"annotations": {NOT_READY: None}}})
    there = {node["metadata"]["name"] for node in client.list(RAW_NODES)}
    for manifest in node_objects(plane.state.options):
        if manifest["metadata"]["name"] not in there:
            client.create(NODES, manifest)


@pytest.fixture
def gang(client: Client, namespace: str, wait_for: Callable[..., Any]) -> Callable[..., list[str]]:
    """Submits a Job of four pods of a whole node each, with these annotations; returns their nodes by rank."""

    def submit(**said: str) -> list[str]:
        manifest = job("gang", namespace, replicas=4)
        manifest["metadata"]["annotations"] = {f"muster.dev/{key.replace('_', '-')}": said[key] for key in said}
        client.create(JOBS, manifest, namespace)
        wait_for(lambda: len(nodes(client, namespace)) == 4, 60, "the gang to run")
        return list(nodes(client, namespace).values())

    return submit


def of_a_node(name: str, namespace: str) -> JSON:
    """A pod of no workload that takes a whole node."""
    pod = lone_pod(name, namespace, "muster")
    pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 8}}
    return pod


def nodes(client: Client, namespace: str) -> dict[str, str]:
    """Pod → node of the pods of the gang that run and stay, by name."""
    pods = sorted(client.list(PODS, namespace), key=lambda pod: pod.metadata.name)
    return {
        pod.metadata.name: pod.spec.node_name
        for pod in pods
        if pod.metadata.name.startswith("gang-")
        and pod.status.phase == "Running"
        and not pod.metadata.deletion_timestamp
    }


def uids(client: Client, namespace: str) -> list[str]:
    """The UIDs of the pods of the gang, by name."""
    pods = sorted(client.list(PODS, namespace), key=lambda pod: pod.metadata.name)
    return [pod.metadata.uid for pod in pods if pod.metadata.name.startswith("gang-")]


def told(client: Client, namespace: str) -> list[str]:
    """The Events about repairs at the Job."""
    return [
        event.message
        for event in client.list(EVENTS, namespace)
        if event.reason == "NodeFault" and event.involved_object.get("kind") == "Job"
    ]


def moved(client: Client, namespace: str, before: list[str], rank: int) -> bool:
    """Whether all four run, that rank on another node than before, and the others where they were."""
    now = list(nodes(client, namespace).values())
    return len(now) == 4 and all((now[each] == before[each]) is (each != rank) for each in range(4))


def test_a_member_on_a_suspect_node_is_replaced_and_the_others_run_on(
    plane: Plane, client: Client, namespace: str, gang: Callable[..., list[str]], wait_for: Callable[..., Any]
) -> None:
    """Its owner is told why; nothing new goes to the node, and once it is healthy something does."""
    before = gang()
    kept = uids(client, namespace)
    says(client, before[1], XID, "True")
    shown = CliRunner().invoke(main, ["nodes", "-N", "--kubeconfig", str(plane.kubeconfig)])
    assert next(line for line in shown.stdout.splitlines() if before[1] in line).split().count("Suspect") == 1
    assert "Note" not in shown.stderr, "the extender has published what it suspects"
    wait_for(lambda: moved(client, namespace, before, 1), REPAIR_S, "member 1 to run elsewhere")
    assert [uid for rank, uid in enumerate(uids(client, namespace)) if rank != 1] == [kept[0], kept[2], kept[3]]
    [event] = wait_for(lambda: told(client, namespace), 10, "the Event at the Job")
    assert event.startswith(f"repairs: node {before[1]} is suspect (condition {XID}=True): 1 member is replaced")
    for number in range(4):
        client.create(PODS, of_a_node(f"alone-{number}", namespace), namespace)

    def alone() -> set[str]:
        return {pod.spec.node_name for pod in client.list(PODS, namespace) if not pod.metadata.name.startswith("gang-")}

    wait_for(lambda: len(alone() - {""}) == 3, 30, "three pods beside the gang")
    assert before[1] not in alone()
    says(client, before[1], XID, "False")
    wait_for(lambda: before[1] in alone(), 30, "the healthy node to be used")


def restarted(
    client: Client, namespace: str, before: list[str], lost: int, wait_for: Callable[..., Any], timeout_s: float = 90
) -> str:
    """Makes the node of this rank suspect, and waits until all pods are new, and on the same nodes but one.

    Returns the one Event at the Job.
    """
    old = uids(client, namespace)
    says(client, before[lost], XID, "True")
    wait_for(
        lambda: moved(client, namespace, before, lost) and not set(old) & set(uids(client, namespace)),
        timeout_s,
        "the restart",
    )
    [event] = wait_for(lambda: told(client, namespace), 10, "the Event at the Job")
    return str(event)


def test_a_gang_restarts_in_place_with_one_new_node(
    client: Client, namespace: str, gang: Callable[..., list[str]], wait_for: Callable[..., Any]
) -> None:
    """Its other pods come again where they were."""
    event = restarted(client, namespace, gang(on_node_fault="restart"), 2, wait_for, timeout_s=60)
    assert "the gang restarts in place, 1 of its 4 members on other nodes" in event


def test_members_on_a_node_that_does_not_answer_are_replaced_after_the_grace_of_their_gang(
    client: Client, namespace: str, gang: Callable[..., list[str]], wait_for: Callable[..., Any]
) -> None:
    """Long before Kubernetes would evict them."""
    before = gang(node_fault_grace="2s")
    client.merge_patch(NODES, before[3], {"metadata": {"annotations": {NOT_READY: "true"}}})
    wait_for(lambda: moved(client, namespace, before, 3), REPAIR_S, "member 3 to run elsewhere")


def test_members_on_a_node_that_is_deleted_are_replaced(
    client: Client, namespace: str, gang: Callable[..., list[str]], wait_for: Callable[..., Any]
) -> None:
    """Nobody is left there to end the pod, so it is deleted by force."""
    before = gang()
    client.delete(NODES, before[0])
    wait_for(lambda: moved(client, namespace, before, 0), REPAIR_S, "member 0 to run elsewhere")


def test_a_node_stays_left_out(plane: Plane, client: Client, namespace: str, wait_for: Callable[..., Any]) -> None:
    """The extender dies after the failure, and before the Job has a PodGroup again that could say it."""
    manifest = job("gang", namespace, replicas=3)
    manifest["spec"]["policies"] = [{"event": "PodFailed", "action": "RestartJob"}]
    client.create(JOBS, manifest, namespace)
    wait_for(lambda: len(nodes(client, namespace)) == 3, 60, "the gang to run")
    before = nodes(client, namespace)
    [group] = client.list(POD_GROUPS, namespace)
    name, node = next(iter(before.items()))
    plane.part("controller").kill()
    client.merge_patch(PODS, name, {"status": {"phase": "Failed"}}, namespace, subresource="status")
    wait_for(lambda: client.list(PLACEMENTS, namespace)[0].status.avoided, 30, "the failure to be noted")
    plane.part("extender").kill()
    plane.part("controller").start()

    def another_group() -> bool:
        return [each for each in client.list(POD_GROUPS, namespace) if each.metadata.uid != group.metadata.uid] != []

    wait_for(another_group, 60, "the Job to start again")
    assert not client.list(PLACEMENTS, namespace)
    plane.part("extender").start()
    wait_for(lambda: len(nodes(client, namespace)) == 3, 60, "the gang to run again")
    assert node not in nodes(client, namespace).values()


def test_a_replaced_member_of_an_indexed_job_is_no_failure(
    client: Client, namespace: str, wait_for: Callable[..., Any]
) -> None:
    """Its annotations are those of the gang; the pod of the same index runs elsewhere, the others are untouched."""
    containers = [{"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": 8}}}]
    template = {"spec": {"restartPolicy": "Never", "containers": containers}}
    spec = {"completionMode": "Indexed", "parallelism": 3, "completions": 3, "backoffLimit": 0, "template": template}
    annotations = {"muster.dev/min-member": "3", "muster.dev/on-node-fault": "replace"}
    metadata = {"name": "gang", "labels": {"muster.dev/queue": "default"}, "annotations": annotations}
    client.create(INDEXED_JOBS, {"metadata": metadata, "spec": spec}, namespace)

    def by_index() -> dict[str, str]:
        pods = [pod for pod in client.list(PODS, namespace) if pod.metadata.deletion_timestamp is None]
        return {p.metadata.labels[COMPLETION_INDEX]: p.spec.node_name for p in pods if p.status.phase == "Running"}

    before = wait_for(lambda: (found := by_index()) and len(found) == 3 and found, 60, "the Job to run")
    says(client, before["1"], XID, "True")
    wait_for(lambda: (now := by_index()).keys() == before.keys() and now["1"] != before["1"], 60, "index 1 elsewhere")
    assert {index: node for index, node in by_index().items() if index != "1"} == {
        index: node for index, node in before.items() if index != "1"
    }
    assert client.get(replace(INDEXED_JOBS, type=JSON), "gang", namespace)["status"].get("failed", 0) == 0


WHOLE = {"resourcesPerNode": {"requests": {"cpu": "100m"}, "limits": {"nvidia.com/gpu": 8}}}


@pytest.fixture
def train(client: Client, namespace: str, wait_for: Callable[..., Any]) -> Iterator[Callable[..., list[str]]]:
    """Submits a TrainJob of four nodes with these annotations; returns those by rank. None has failed in the end."""
    with TrainStory(client, namespace) as story:

        def submit(**said: str) -> list[str]:
            manifest = train_job("gang", nodes=4, trainer=WHOLE)
            manifest["metadata"]["annotations"] = {f"muster.dev/{key.replace('_', '-')}": said[key] for key in said}
            story.create(manifest)
            wait_for(lambda: len(nodes(client, namespace)) == 4, 60, "the TrainJob to run")
            return list(nodes(client, namespace).values())

        yield submit
        assert all(kind != "Failed" for kind, _, _ in story.held("gang"))


@pytest.mark.parametrize("policy", ["", "replace", "restart"])
def test_a_train_job_restarts_in_place(
    client: Client, namespace: str, train: Callable[..., list[str]], wait_for: Callable[..., Any], policy: str
) -> None:
    """By each policy, as its Job restarts whole: all pods are new, and on the same nodes but one."""
    before = train(**({"on_node_fault": policy} if policy else {}))
    event = restarted(client, namespace, before, 1, wait_for)
    assert "the gang restarts in place, 1 of its 4 members on other nodes, as its Job restarts as a whole" in event


def test_a_train_job_is_asked_for_a_checkpoint_before_it_restarts(
    plane: Plane, client: Client, namespace: str, train: Callable[..., list[str]], wait_for: Callable[..., Any]
) -> None:
    """Its node is suspect and still runs; its report is the answer, long before its time is over."""
    before = train(on_node_fault="restart", evict_notice="10m")
    old = uids(client, namespace)

    def pods() -> list[Any]:
        return [pod for pod in client.list(PODS, namespace) if pod.metadata.name.startswith("gang-")]

    says(client, before[1], XID, "True")
    wait_for(lambda: all(EVICT_AT in pod.metadata.annotations for pod in pods()), REPAIR_S, "all members to be told")
    assert uids(client, namespace) == old
    assert not any(pod.metadata.deletion_timestamp for pod in pods())
    url = next(each.value for each in pods()[0].spec.containers[0].env if each.name == "KUBEFLOW_TRAINER_SERVER_URL")
    bearer = token(client, namespace, PATH.format(namespace, "gang"))
    metric = {"name": CHECKPOINT, "value": f"step=7,at={format_time(time.time())}"}
    said = {"trainerStatus": {"metrics": [metric], "lastUpdatedTime": format_time(time.time())}}
    assert report(plane, url, bearer, json.dumps(said).encode())[0] == 200
    wait_for(lambda: moved(client, namespace, before, 1) and not set(old) & set(uids(client, namespace)), 90, "restart")
