"""Pods of a resource group run on its nodes, gangs too; pods that ask for Volcano's gate wait behind it for a node."""

import json
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from gang_jobs import job

from muster.api.base import Resource
from muster.api.kubernetes.core import PODS, Pod
from muster.api.kubernetes.meta import Object
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.long]

JSON = dict[str, Any]
WaitFor = Callable[..., Any]
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet", Object)
GATE = "scheduling.volcano.sh/queue-allocation-gate"
MEMBERS = {"node-0000", "node-0001"}
OUTSIDE = "node-0002"
CONFIG = r"""
resourceGroups:
- resourceGroup: research
  object: {key: namespace, value: [research, queued]}
  schedulerName: volcano
  tolerations: [{key: pool, operator: Equal, value: research, effect: NoSchedule}]
  labels: {pool: research}
- resourceGroup: odd
  object: {key: annotation, value: ['example.com/odd: "a ''b'' \"c\" \\ ü"']}
  schedulerName: muster
  tolerations: [{key: pool, operator: Exists}]
  affinity: '{"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
    {"matchExpressions": [{"key": "pool", "operator": "Exists"}]}]}}}'
- resourceGroup: cluster
  schedulerName: default-scheduler
"""
ODD = {"example.com/odd": "a 'b' \"c\" \\ ü"}


@pytest.fixture(scope="module")
def grouped(module_plane: Callable[..., Plane]) -> Plane:
    """Three nodes, two of them with the label and the taint of a group, and namespaces."""
    plane = module_plane(nodes=3, admission_config=CONFIG)
    for node in MEMBERS:
        assert plane.kubectl("label", "node", node, "pool=research").returncode == 0
        assert plane.kubectl("taint", "node", node, "pool=research:NoSchedule").returncode == 0
    for namespace in ("research", "queued"):
        assert plane.kubectl("create", "namespace", namespace).returncode == 0
    assert plane.kubectl("label", "namespace", "queued", "muster.dev/queue=default").returncode == 0
    return plane


@pytest.fixture
def client(grouped: Plane) -> Client:
    """A client of the plane."""
    return grouped.client()


def pod(name: str, *, gpus: int = 0, annotations: JSON | None = None, **spec: Any) -> JSON:
    """A pod of one container."""
    limits = {"nvidia.com/gpu": gpus} if gpus else {}
    container = {"name": "main", "image": "none", "resources": {"limits": limits}}
    return {
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }


def gates(pod: Pod) -> list[str]:
    """The names of its gates."""
    return [gate.name for gate in pod.spec.scheduling_gates]


def reviews(plane: Plane) -> float:
    """How often the webhook was asked to change a pod."""
    port = plane.state.ports["webhook-status"]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    return sum(
        float(line.rpartition(" ")[2])
        for line in lines
        if line.startswith("muster_webhook_reviews_total{") and 'route="/mutate/pod"' in line
    )


@pytest.mark.parametrize(("namespace", "annotations"), [("research", {}), ("queued", {}), ("default", ODD)])
def test_a_pod_runs_on_its_groups_nodes(client: Client, wait_for: WaitFor, namespace: str, annotations: JSON) -> None:
    """By its namespace or an annotation, whatever that is written with; it need not say anything else."""
    made = client.create(PODS, pod("plain", annotations=annotations), namespace)
    assert made.spec.scheduler_name in {"volcano", "muster"}
    assert wait_for(lambda: client.get(PODS, "plain", namespace).spec.node_name, 60, "a node") in MEMBERS
    client.delete(PODS, "plain", namespace, grace_period_s=0)


def test_a_gang_is_planned_on_the_nodes_of_its_group(grouped: Plane, client: Client, wait_for: WaitFor) -> None:
    """The Job records the group, so the gang is planned once with it, and its pods need not be sent."""
    before = reviews(grouped)
    template = client.create(JOBS, job("train", "research", replicas=2), "research").spec.tasks[0].template["spec"]
    assert (template["nodeSelector"], template["schedulerName"]) == ({"pool": "research"}, "volcano")

    def nodes() -> set[str]:
        return {each.spec.node_name for each in client.list(PODS, "research") if each.spec.node_name}

    wait_for(lambda: nodes() == MEMBERS, 60, "a pod on each node of the group")
    epochs = [each.spec.epoch for each in client.list(PLACEMENTS, "research") if each.metadata.name.startswith("train")]
    assert epochs == [1]
    assert reviews(grouped) == before
    client.delete(JOBS, "train", "research")
    wait_for(lambda: not client.list(PODS, "research"), 60, "the pods to be gone")


def test_a_manifest_can_be_applied_again(grouped: Plane, client: Client) -> None:
    """By `kubectl apply` and by two managers on the server: the tasks are as they were sent, and nothing changes."""
    manifest = job("again", "queued", replicas=2, gpus=0)

    def run(verb: str, *options: str) -> str:
        done = grouped.kubectl(verb, *options, "--filename=-", stdin=json.dumps(manifest))
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    for managers in (("flux", "argo", "flux"), ("",)):
        for manager in managers:
            run("apply", *(("--server-side", f"--field-manager={manager}") if manager else ()))
        made = client.get(JOBS, "again", "queued")
        assert made.spec.tasks[0].template["spec"]["nodeSelector"] == {"pool": "research"}
        stored = json.loads(grouped.kubectl("get", "vcjob", "again", "--namespace=queued", "--output=json").stdout)
        assert stored["spec"]["tasks"] == manifest["spec"]["tasks"]
        if not managers[0]:
            assert run("diff") == ""
            assert run("apply").endswith(" unchanged")
        assert client.get(JOBS, "again", "queued").metadata.generation == 1
        client.delete(JOBS, "again", "queued")


def test_a_group_of_the_clusters_scheduler(client: Client, wait_for: WaitFor) -> None:
    """Its pods do not come to Muster, even where their namespace has a queue."""
    annotations = {"volcano.sh/resource-group": "cluster", GATE: "true"}
    made = client.create(PODS, pod("other", annotations=annotations, schedulerName="muster"), "default")
    assert (made.spec.scheduler_name, gates(made)) == ("default-scheduler", [])
    assert wait_for(lambda: client.get(PODS, "other", "default").spec.node_name, 60, "a node") == OUTSIDE
    client.delete(PODS, "other", "default", grace_period_s=0)


@pytest.mark.parametrize(("namespace", "annotations", "expected"), [
    ("research", {}, 1),
    ("research", {GATE: "true"}, 1),
    ("queued", {GATE: "true", **ODD}, 1),
    ("default", ODD, 1),
    ("default", {GATE: "true"}, 1),
    ("default", {GATE: "false"}, 0),
    ("default", {}, 0),
])  # fmt: skip
def test_a_pod_is_sent_once(grouped: Plane, client: Client, namespace: str, annotations: JSON, expected: int) -> None:
    """However many reasons there are; and not without any."""
    before = reviews(grouped)
    client.create(PODS, pod("counted", annotations=annotations), namespace)
    assert reviews(grouped) - before == expected
    client.delete(PODS, "counted", namespace, grace_period_s=0)


@pytest.mark.parametrize(("owner", "taken"), [
    ({}, True),
    ({"controller": False}, True),
    ({"controller": True}, False),
    ({"controller": True, "apiVersion": "batch/v1"}, True),
])  # fmt: skip
def test_a_pod_of_a_job_is_as_its_template(client: Client, owner: JSON, taken: bool) -> None:  # noqa: FBT001 - a column
    """Only a controller has made the pod from a template; other owners leave it to its group."""
    owned = pod("owned")
    reference = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "u", **owner}
    owned["metadata"]["ownerReferences"] = [reference]
    assert (client.create(PODS, owned, "research", dry_run=True).spec.scheduler_name == "volcano") == taken


@pytest.mark.parametrize("labels", [{}, {"muster.dev/queue": "default"}])
def test_a_pod_waits_behind_volcanos_gate(client: Client, wait_for: WaitFor, labels: JSON) -> None:
    """While there is no room it is no candidate of kube-scheduler's; it loses its gates when it is pinned."""
    client.create(PODS, pod("first", gpus=8, nodeName=OUTSIDE), "default")
    template = pod("", gpus=8, annotations={GATE: "true"}, schedulerName="volcano", restartPolicy="Always")
    template["metadata"] |= {"labels": {"app": "waiting", **labels}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "waiting"}}, "template": template}
    client.create(REPLICA_SETS, {"metadata": {"name": "waiting"}, "spec": spec}, "default")

    def waiting() -> Pod | None:
        return next(iter(client.list(PODS, "default", label_selector="app=waiting")), None)

    def unschedulable() -> bool:
        conditions = [each for group in client.list(POD_GROUPS, "default") for each in group.status.conditions]
        return any(each.type == "Unschedulable" and each.status == "True" for each in conditions)

    wait_for(unschedulable, 60, "the planner to say that there is no room")
    found = waiting()
    assert found is not None
    assert gates(found) == ([*(["muster.dev/gang"] if labels else []), GATE])
    client.delete(PODS, "first", "default", grace_period_s=0)
    found = wait_for(lambda: (now := waiting()) and now.status.phase == "Running" and now, 60, "the pod to run")
    assert gates(found) == []
    assert (found.spec.node_name, found.metadata.annotations["muster.dev/node"]) == (OUTSIDE, OUTSIDE)
    client.delete(REPLICA_SETS, "waiting", "default")
    wait_for(lambda: not client.list(PODS, "default"), 60, "the pods to be gone")


def test_a_bare_pod_waits_behind_volcanos_gate(client: Client, wait_for: WaitFor) -> None:
    """It gets a PodGroup of its own, and its node with it."""
    client.create(PODS, pod("bare", annotations={GATE: "true"}, schedulerName="volcano"), "default")
    found = wait_for(lambda: (now := client.get(PODS, "bare", "default")).spec.node_name and now, 60, "a node")
    assert (gates(found), found.metadata.annotations["muster.dev/node"]) == ([], OUTSIDE)
    client.delete(PODS, "bare", "default", grace_period_s=0)
