"""What happens between plan and binding: a gang whose placement fails is planned again and runs whole."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from gang_jobs import History, job, metric
from leases import revive, start_at_once

from muster.api.base import Resource
from muster.api.kubernetes.core import INDEXED_JOBS, NODES, PODS
from muster.api.kubernetes.storage import CLAIMS, VOLUMES
from muster.api.muster.placement import PLACEMENTS, Placement
from muster.api.names import JOB_NAME, SCHEDULER_LEASE
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from musterctl.plane.install import node_objects
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.alone]
WaitFor = Callable[..., Any]
RECOVERY_S = 90.0
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
CSI_NODES: Resource[dict[str, Any]] = Resource(
    "storage.k8s.io", "v1", "csinodes", "CSINode", dict[str, Any], namespaced=False
)


def on(node: str) -> dict[str, Any]:
    """The term of a node affinity that means this node."""
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}


@pytest.fixture
def client(plane: Plane) -> Iterator[Client]:
    """A client; afterwards everything runs again and every node is schedulable."""
    client = plane.client()
    yield client
    revive(plane)
    there = set()
    for node in client.list(NODES):
        there.add(node.metadata.name)
        if node.spec.unschedulable or node.spec.taints:
            client.merge_patch(NODES, node.metadata.name, {"spec": {"unschedulable": None, "taints": None}})
    for manifest in node_objects(plane.state.options):
        if manifest["metadata"]["name"] not in there:
            client.create(NODES, manifest)


@pytest.fixture
def planned(plane: Plane, client: Client, namespace: str, wait_for: WaitFor) -> Iterator[Placement]:
    """Stops kube-scheduler and submits a gang of four: its placement stands, its pods are pinned, none is bound.

    The extender plans on while kube-scheduler's lease lasts.
    """
    wait_for(lambda: metric(plane, "extender", 'muster_leading{pool=""}') == 1, 30, "the extender to lead")
    # Its room may be that of the test before still: then its pods are made before it is planned.
    wait_for(lambda: not client.list(PODS, label_selector=f"{JOB_NAME}=gang"), 30, "the pods before to be gone")
    plane.part("muster-scheduler").kill()
    client.create(JOBS, job("gang", namespace, replicas=4, gpus=8), namespace)
    wait_for(lambda: client.list(PLACEMENTS, namespace), 30, "the placement")
    wait_for(lambda: len(client.list(PODS, namespace)) == 4, 30, "the pods")
    yield client.list(PLACEMENTS, namespace)[0]
    client.delete(JOBS, "gang", namespace)


@pytest.fixture
def runs_again(plane: Plane, client: Client, namespace: str, wait_for: WaitFor) -> Callable[[], None]:
    """Starts kube-scheduler, and waits until the gang of four runs."""

    def start() -> None:
        start_at_once(plane, "muster-scheduler", SCHEDULER_LEASE)
        wait_for(lambda: runs(client, namespace, 4), RECOVERY_S, "the gang to run")

    return start


def runs(client: Client, namespace: str, replicas: int) -> bool:
    """Whether the Job runs with all its pods."""
    status = client.get(JOBS, "gang", namespace).status
    return status.state.phase == "Running" and status.running == replicas


def epoch(client: Client, namespace: str) -> int:
    """The epoch of the gang's placement; 0 if there is none."""
    return max((placement.spec.epoch for placement in client.list(PLACEMENTS, namespace)), default=0)


def nodes_of_pods(client: Client, namespace: str) -> set[str]:
    """Where pods are bound."""
    return {pod.spec.node_name for pod in client.list(PODS, namespace) if pod.spec.node_name}


def cordon(client: Client, node: str) -> None:
    """Somebody is about to take the machine away."""
    client.merge_patch(NODES, node, {"spec": {"unschedulable": True}})


def taint(client: Client, node: str) -> None:
    """Somebody keeps it for others."""
    client.merge_patch(NODES, node, {"spec": {"taints": [{"key": "kept", "value": "yes", "effect": "NoSchedule"}]}})


def lose(client: Client, node: str) -> None:
    """The machine is gone."""
    client.delete(NODES, node)


@pytest.mark.long
@pytest.mark.parametrize("happens", [cordon, taint, lose])
def test_a_node_that_cannot_be_used_any_more_at_the_binding_is_not_used(
    happens: Callable[[Client, str], None],
    client: Client,
    namespace: str,
    planned: Placement,
    runs_again: Callable[[], None],
    wait_for: WaitFor,
) -> None:
    """The placement is abandoned, pinned pods are deleted, the next epoch goes elsewhere."""
    node = planned.spec.pod_sets[0].runs[0].node
    with History(client, namespace) as history:
        happens(client, node)
        wait_for(lambda: epoch(client, namespace) > planned.spec.epoch, 30, "a new placement")
        runs_again()
        assert node not in nodes_of_pods(client, namespace)
        assert history.half_placed_s("gang-", 4) < 10


def test_a_node_that_kube_scheduler_alone_refuses_is_left_out(
    client: Client, namespace: str, wait_for: WaitFor
) -> None:
    """Here because of CSI limits, which Muster does not model: the gang goes elsewhere, and its placement says why."""
    driver, target = f"{namespace}.example.com", "node-0000"
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",
        "csi": {"driver": driver, "volumeHandle": "v"},
        "claimRef": {"name": "data", "namespace": namespace},
    }
    client.create(VOLUMES, {"metadata": {"name": namespace}, "spec": spec})
    claim = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",
        "volumeName": namespace,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    client.create(CLAIMS, {"metadata": {"name": "data"}, "spec": claim}, namespace)
    drivers = [{"name": driver, "nodeID": target, "allocatable": {"count": 0}}]
    client.create(CSI_NODES, {"metadata": {"name": target}, "spec": {"drivers": drivers}})
    try:
        wait_for(lambda: client.get(CLAIMS, "data", namespace).status.phase == "Bound", 30, "the claim to be bound")
        manifest = job("gang", namespace, replicas=4, gpus=1)
        template = manifest["spec"]["tasks"][0]["template"]["spec"]
        template["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        template["affinity"] = {"nodeAffinity": {PREFERRED: [{"weight": 100, "preference": on(target)}]}}
        client.create(JOBS, manifest, namespace)
        wait_for(lambda: runs(client, namespace, 4), RECOVERY_S, "the gang to run")
        assert target not in nodes_of_pods(client, namespace)
        assert [each.node for each in client.list(PLACEMENTS, namespace)[0].status.avoided] == [target]
    finally:
        client.delete(CSI_NODES, target)
        client.delete(JOBS, "gang", namespace)


@pytest.mark.long
def test_a_slot_that_somebody_else_takes_is_given_up(
    client: Client, namespace: str, planned: Placement, runs_again: Callable[[], None]
) -> None:
    """A pod that was bound by another hand holds the GPUs of a planned node."""
    stolen = planned.spec.pod_sets[0].runs[0].node
    thief = {
        "metadata": {"name": "thief"},
        "spec": {
            "nodeName": stolen,
            "containers": [{"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": 1}}}],
        },
    }
    client.create(PODS, thief, namespace)
    runs_again()
    members = [pod for pod in client.list(PODS, namespace) if pod.metadata.name != "thief"]
    assert stolen not in {pod.spec.node_name for pod in members}
    assert epoch(client, namespace) > planned.spec.epoch


@pytest.mark.long
@pytest.mark.parametrize("kind", [PLACEMENTS, POD_GROUPS], ids=lambda kind: kind.kind)
def test_what_somebody_deletes_is_made_again(
    client: Client, namespace: str, planned: Placement, runs_again: Callable[[], None], kind: Resource[Any]
) -> None:
    """A placement has a later epoch than that of the pods that are pinned already; it goes with its PodGroup."""
    client.delete(kind, planned.metadata.name, namespace)
    runs_again()


@pytest.mark.long
def test_a_placement_that_somebody_edits_does_no_harm(
    client: Client, namespace: str, planned: Placement, runs_again: Callable[[], None]
) -> None:
    """All members on one node, says the edit; the pods are pinned elsewhere, so they are planned again."""
    spec = {"podSets": [{"name": "worker", "runs": [{"node": planned.spec.pod_sets[0].runs[0].node, "count": 4}]}]}
    client.merge_patch(PLACEMENTS, planned.metadata.name, {"spec": spec}, namespace)
    with History(client, namespace) as history:
        runs_again()
        alive = [life for life in history.of("gang-") if life.gone is None]
        assert len({life.node for life in alive}) == 4


@pytest.mark.long
@pytest.mark.usefixtures("planned")
def test_a_member_deleted_on_its_way_is_back(client: Client, namespace: str, runs_again: Callable[[], None]) -> None:
    """Its slot is still held."""
    deleted = client.list(PODS, namespace)[0]
    client.delete(PODS, deleted.metadata.name, namespace, uid=deleted.metadata.uid)
    runs_again()


@pytest.mark.long
def test_the_api_server_goes_away_meanwhile(plane: Plane, client: Client, namespace: str, wait_for: WaitFor) -> None:
    """Everybody waits for it and goes on."""
    client.create(JOBS, job("gang", namespace, replicas=32, gpus=2), namespace)
    wait_for(lambda: client.list(PODS, namespace), 30, "the first pod")
    plane.part("kube-apiserver").kill()
    plane.part("kube-apiserver").start()
    plane.wait_ready("kube-apiserver")

    def recovers() -> bool:
        revive(plane)  # on a slow machine the API server was away for longer than a lease lasts
        return runs(client, namespace, 32)

    with History(client, namespace) as history:
        wait_for(recovers, RECOVERY_S, "the gang to run")
        alive = [life for life in history.of("gang-") if life.gone is None]
        assert sorted(life.slot.rank for life in alive if life.slot) == list(range(32))
    client.delete(JOBS, "gang", namespace)


@pytest.mark.long
def test_giving_a_placement_up_costs_no_job(plane: Plane, client: Client, namespace: str, wait_for: WaitFor) -> None:
    """Its pinned pods go as evicted ones do, which a Job of Kubernetes does not count as failures.

    They are two, as the Job controller waits for twice as long before it makes each further one again.
    """
    wait_for(lambda: metric(plane, "extender", 'muster_leading{pool=""}') == 1, 30, "the extender to lead")
    plane.part("muster-scheduler").kill()
    resources = {"limits": {"nvidia.com/gpu": 8}}
    template = {
        "metadata": {"labels": {"muster.dev/framework": "torch"}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "none", "command": ["x"], "resources": resources}],
        },
    }
    spec = {"completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimit": 0, "template": template}
    labels = {"muster.dev/queue": "default"}
    client.create(INDEXED_JOBS, {"metadata": {"name": "gang", "labels": labels}, "spec": spec}, namespace)
    [placement] = wait_for(lambda: client.list(PLACEMENTS, namespace), 30, "the placement")

    def pinned() -> set[str]:
        pods = client.list(PODS, namespace)
        return {pod.metadata.uid for pod in pods if "muster.dev/node" in pod.metadata.annotations}

    wait_for(lambda: len(pinned()) == 2, 30, "two pinned pods")
    before = pinned()
    for node in {run.node for pod_set in placement.spec.pod_sets for run in pod_set.runs}:
        client.merge_patch(NODES, node, {"spec": {"unschedulable": True}})
    plane.mend()

    def runs_whole() -> bool:
        pods = [pod for pod in client.list(PODS, namespace) if pod.status.phase == "Running"]
        return len(pods) == 2 and not before & {pod.metadata.uid for pod in pods}

    wait_for(runs_whole, 2 * RECOVERY_S, "two other pods to run")
    assert not client.get(INDEXED_JOBS, "gang", namespace).status.get("failed")
