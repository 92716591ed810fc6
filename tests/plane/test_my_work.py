"""What a user types to see and end his work: `ps`, `logs`, `train`, `queue` and `nodes`, on a real plane."""

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from gang_jobs import job
from kubelets import LINES, kubelet, serve_all_nodes
from planes import Muster, drop_queue
from tenants import ACCOUNTS, ROLE_BINDINGS
from train_jobs import train_job

from muster.api import names
from muster.api.base import Resource
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.core import INDEXED_JOBS, PODS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import QUEUES
from muster.kube.client import Client
from muster.kube.errors import NotFound
from musterctl.app import main
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.alone]
WaitFor = Callable[..., Any]
JSON = dict[str, Any]
PATIENCE_S = 60.0
DEPLOYMENTS: Resource[JSON] = Resource("apps", "v1", "deployments", "Deployment", dict[str, Any])
STATEFUL_SETS: Resource[JSON] = Resource("apps", "v1", "statefulsets", "StatefulSet", dict[str, Any])


def plain_job(name: str, pods: int, gpus: int, minimum: int = 0) -> JSON:
    """A Job of Kubernetes' own, in the queue `default`."""
    container = {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    metadata: JSON = {"name": name, "labels": {names.QUEUE: "default"}}
    if minimum:
        metadata["annotations"] = {names.MIN_MEMBER: str(minimum)}
    pod = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {"metadata": metadata, "spec": {"parallelism": pods, "completions": pods, "template": pod}}


def listed(muster: Muster, namespace: str, *more: str) -> dict[str, JSON]:
    """The gangs by name, as data."""
    found = json.loads(muster("ps", f"--namespace={namespace}", "-o", "json", *more))["gangs"]
    return {each["name"]: each for each in found}


def states(muster: Muster, namespace: str) -> dict[str, str]:
    """The state of each gang."""
    return {name: f"{each['kind']} {each['state']}" for name, each in listed(muster, namespace).items()}


def test_gangs_of_every_kind_in_one_list(client: Client, namespace: str, muster: Muster, wait_for: WaitFor) -> None:
    """Each under the name that its user gave it; one that waits says why in a few words."""
    client.create(JOBS, job("volcano", namespace, replicas=2, gpus=1), namespace)
    client.create(INDEXED_JOBS, plain_job("plain", 2, 1), namespace)
    client.create(
        TRAIN_JOBS,
        train_job("fit", nodes=2) | {"metadata": {"name": "fit", "labels": {names.QUEUE: "default"}}},
        namespace,
    )
    lone = {"schedulerName": names.SCHEDULER, "containers": [{"name": "main", "image": "none"}]}
    client.create(PODS, {"metadata": {"name": "lone", "labels": {names.QUEUE: "default"}}, "spec": lone}, namespace)
    wanted = {"volcano": "Job Running", "plain": "Job Running", "fit": "TrainJob Running", "lone": "Pod Running"}
    wait_for(lambda: states(muster, namespace) == wanted, 60, "them to run")
    wait_for(lambda: listed(muster, namespace)["plain"]["running"] == 2, 30, "all pods to run")
    client.create(INDEXED_JOBS, plain_job("huge", 9, 8, minimum=9), namespace)
    wait_for(lambda: states(muster, namespace) == wanted | {"huge": "Job Waiting"}, 60, "one to wait")
    wait_for(lambda: "planner has not" not in listed(muster, namespace)["huge"]["message"], 30, "the reason")

    lines = muster("ps", f"--namespace={namespace}").splitlines()
    assert lines[0].split() == ["NAME", "QUEUE", "STATE", "SIZE", "PRIORITY", "AGE", "START", "NODES", "REASON"]
    rows = {line.split()[1]: line for line in lines[1:]}
    assert "podgroup-" not in "".join(lines)
    assert rows["plain"].startswith("Job plain")
    assert "2/1/2" in rows["plain"]
    assert "node-" in rows["plain"]
    huge = rows["huge"]
    assert "0/9/9" in huge
    assert " unknown " in huge
    assert len(listed(muster, namespace)["huge"]["reason"].split()) <= 10
    assert listed(muster, namespace)["huge"]["reason"] in huge

    assert muster("ps", f"--namespace={namespace}", "-o", "name").split() == [
        each["reference"] for each in listed(muster, namespace).values()
    ]
    assert "job.batch/plain" in muster("ps", f"--namespace={namespace}", "-o", "name")
    assert "GANG" in muster("ps", f"--namespace={namespace}", "-o", "wide")
    assert namespace in muster("ps", "-A")
    assert "No gangs found" in muster("ps", f"--namespace={namespace}", "--queue=nobody")
    assert "TrainJob fit" in muster("train", "list", f"--namespace={namespace}")
    assert "plain" not in muster("train", "list", f"--namespace={namespace}")


def workload(kind: str, pods: int) -> JSON:
    """A StatefulSet or Deployment in the queue `default`."""
    labels = {"app": kind.lower()}
    spec = {"containers": [{"name": "main", "image": "none"}]}
    return {
        "metadata": {"name": kind.lower(), "labels": {names.QUEUE: "default"}},
        "spec": {
            "replicas": pods,
            "serviceName": kind.lower() if kind == "StatefulSet" else None,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def test_workloads_that_go_on(client: Client, namespace: str, muster: Muster, wait_for: WaitFor) -> None:
    """A Deployment is called by its own name, and not by that of its ReplicaSet."""
    for kind, resource in (("Deployment", DEPLOYMENTS), ("StatefulSet", STATEFUL_SETS)):
        client.create(resource, workload(kind, 2), namespace)
    wanted = {"deployment": "Deployment Running", "statefulset": "StatefulSet Running"}
    wait_for(lambda: states(muster, namespace) == wanted, 60, "both to run")
    assert listed(muster, namespace)["deployment"]["reference"] == "deployment.apps/deployment"


def test_a_watch(plane: Plane, client: Client, namespace: str) -> None:
    """A gang that comes, runs and goes is three lines or more."""
    program = str(Path(sys.executable).with_name("muster"))
    command = [program, "ps", "-w", f"--namespace={namespace}", f"--kubeconfig={plane.kubeconfig}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        late = Timer(PATIENCE_S, process.kill)
        late.start()
        try:
            lines = iter(process.stdout.readline, "")
            client.create(JOBS, job("watched", namespace, replicas=1, gpus=1), namespace)
            assert any(line.startswith("Job watched") and " Running " in line for line in lines)
            client.delete(JOBS, "watched", namespace)
            assert any(line.startswith("Job watched") and " Gone " in line for line in lines)
        finally:
            late.cancel()
            process.kill()


def test_a_train_job_is_stopped_and_resumed(client: Client, namespace: str, muster: Muster, wait_for: WaitFor) -> None:
    """Stopped it has no nodes, and stays in the list."""
    client.create(TRAIN_JOBS, train_job("fit", nodes=2), namespace)
    space = f"--namespace={namespace}"
    wait_for(lambda: states(muster, namespace) == {"fit": "TrainJob Running"}, 60, "it to run")
    assert "is held: it leaves its queue, and its pods end" in muster("train", "stop", "fit", space)
    wait_for(lambda: states(muster, namespace) == {"fit": "TrainJob Suspended"}, 60, "it to be suspended")
    muster("train", "resume", "fit", space)
    wait_for(lambda: states(muster, namespace) == {"fit": "TrainJob Running"}, 60, "it to run again")
    assert "there is no trainjob.trainer.kubeflow.org/no" in muster("train", "stop", "no", space, code=1)


def test_a_train_job_is_followed_to_its_end(client: Client, namespace: str, muster: Muster) -> None:
    """Also one that somebody else has sent; the exit code is that of the training."""
    client.create(TRAIN_JOBS, train_job("good", nodes=1, run_s=1), namespace)
    assert "good: complete" in muster("train", "attach", "good", "--no-logs", f"--namespace={namespace}")
    client.create(TRAIN_JOBS, train_job("bad", nodes=1, run_s=1, exit_code=3), namespace)
    assert "bad: failed: " in muster("train", "attach", "bad", "--no-logs", f"--namespace={namespace}", code=1)
    assert {row["state"] for row in listed(muster, namespace, "-a").values()} == {"Completed", "Failed"}


def test_logs_of_gangs(client: Client, namespace: str, muster: Muster, wait_for: WaitFor, tmp_path: Path) -> None:
    """Of rank 0, of another rank, of all; of a gang that waits the reason is told."""
    client.create(JOBS, job("volcano", namespace, replicas=2, gpus=1), namespace)
    client.create(INDEXED_JOBS, plain_job("huge", 9, 8, minimum=9), namespace)
    space = f"--namespace={namespace}"
    wait_for(lambda: states(muster, namespace) == {"volcano": "Job Running", "huge": "Job Waiting"}, 60, "one to run")
    wait_for(lambda: listed(muster, namespace)["volcano"]["running"] == 2, 30, "both pods to run")
    with kubelet(tmp_path / "kubelet") as one, serve_all_nodes(client, one):
        assert muster("logs", "volcano", space) == LINES.decode()
        assert "/volcano-worker-0/main" in one.asked[-1]
        assert muster("logs", "-f", "job/volcano", "--rank", "1", space) == LINES.decode()
        assert "/volcano-worker-1/main" in one.asked[-1]
        every = muster("logs", "volcano", "--all", space).splitlines()
        assert every == [f"[volcano-worker-{n}] {line}" for n in (0, 1) for line in LINES.decode().splitlines()]
    assert "Job huge has no log of rank 0 yet; its state is Waiting: " in muster("logs", "huge", space, code=1)
    assert "there is volcano" in muster("logs", "volcan", space, code=1)
    assert "has 2 pods (ranks 0-1), but no pod of rank 2" in muster("logs", "volcano", "--rank", "2", space, code=1)


@pytest.fixture
def tenant(plane: Plane, client: Client, namespace: str, tmp_path: Path) -> Path:
    """The kubeconfig of one who has the role muster-edit in this namespace, and nothing else."""
    client.create(ACCOUNTS, {"metadata": {"name": "user"}}, namespace)
    subject = {"kind": "ServiceAccount", "name": "user", "namespace": namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "muster-edit"}
    client.create(ROLE_BINDINGS, {"metadata": {"name": "user"}, "roleRef": role, "subjects": [subject]}, namespace)
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/user/token"
    answer = json.loads(client.request("POST", path, body=json.dumps(asked).encode()))
    config = yaml.safe_load(plane.kubeconfig.read_text(encoding="utf-8"))
    config["users"][0]["user"] = {"token": answer["status"]["token"]}
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    return file


def test_a_tenant_sees_his_work(
    client: Client, namespace: str, tenant: Path, muster: Muster, wait_for: WaitFor
) -> None:
    """With muster-edit in one namespace: the list is his, and the whole cluster's is refused in a sentence."""
    client.create(JOBS, job("mine", namespace, replicas=2, gpus=1), namespace)
    wait_for(lambda: states(muster, namespace) == {"mine": "Job Running"}, 60, "it to run")
    wait_for(lambda: CliRunner().invoke(main, ["ps", f"--kubeconfig={tenant}", "-n", namespace]).exit_code == 0)
    shown = muster("ps", f"--namespace={namespace}", kubeconfig=tenant)
    row = next(line for line in shown.splitlines() if line.startswith("Job mine"))
    assert " Running " in row
    assert "node-" in row
    assert "cannot list" in muster("ps", "-A", kubeconfig=tenant, code=1)
    client.create(TRAIN_JOBS, train_job("fit", nodes=1), namespace)
    wait_for(lambda: states(muster, namespace).get("fit") == "TrainJob Running", 60, "it to run")
    space = f"--namespace={namespace}"
    assert "TrainJob fit" in muster("train", "list", space, kubeconfig=tenant)
    assert "is held" in muster("train", "stop", "fit", space, kubeconfig=tenant)
    assert "muster ps` shows the nodes of your own gangs" in muster("nodes", kubeconfig=tenant, code=1)


def test_expected_starts(client: Client, namespace: str, muster: Muster, wait_for: WaitFor) -> None:
    """By what the gang in the way declares; a gang that can never start has none, and those that run are not there."""
    wait_for(lambda: "Full" not in muster("nodes") and "Mixed" not in muster("nodes"), 60, "all nodes to be free")
    before = job("before", namespace, replicas=8)
    before["metadata"]["annotations"] = {names.EXPECTED_RUNTIME: "2h"}
    client.create(JOBS, before, namespace)
    wait_for(lambda: states(muster, namespace) == {"before": "Job Running"}, 60, "the nodes to be full")
    client.create(JOBS, job("after", namespace, replicas=2), namespace)
    client.create(JOBS, job("never", namespace, replicas=9), namespace)
    space = f"--namespace={namespace}"
    wait_for(lambda: "about " in muster("ps", "--start", space), 60, "the start to be known")
    rows = {line.split()[1]: line for line in muster("ps", "--start", space).splitlines()[1:]}
    assert rows.keys() == {"after", "never"}
    assert re.search(r"about \d\d:\d\d \(in (119m|1h|2h)\)", rows["after"])
    assert "unknown" in rows["never"]
    for name in ("before", "after", "never"):
        client.delete(JOBS, name, namespace)


def test_free_gpus_of_nodes(client: Client, namespace: str, muster: Muster, wait_for: WaitFor) -> None:
    """A node that is used has fewer free ones; without the right to list nodes a sentence says what to ask for."""
    wait_for(lambda: muster("nodes").count("8/8") == muster("nodes").count("/8"), 60, "all nodes to be free")
    before = muster("nodes")
    assert before.splitlines()[0].split()[:4] == ["RACK", "MODEL", "STATE", "COUNT"]
    assert [line.split()[0] for line in before.splitlines()[1:]] == ["rack-0", "rack-1"]
    client.create(JOBS, job("three", namespace, replicas=1, gpus=3), namespace)
    wait_for(lambda: " 5/8 " in muster("nodes"), 30, "a node to be used")
    each = muster("nodes", "-N", "--rack=rack-0")
    assert len(each.splitlines()) == 5
    assert "node-0000" in each
    assert {row["rack"] for row in json.loads(muster("nodes", "-o", "json"))["nodes"]} == {"rack-0", "rack-1"}
    client.delete(JOBS, "three", namespace)


def test_a_queue_is_changed_and_deleted(client: Client, namespace: str, muster: Muster, wait_for: WaitFor) -> None:
    """What is not named stays; a misspelt resource is refused with the right one; gangs keep their queue."""
    name = f"{namespace}-q"
    wrong = muster("queue", "create", name, "--capability=nvidia.com/gpus=8", code=2)
    assert "nvidia.com/gpus is an unknown resource" in wrong
    assert "did you mean nvidia.com/gpu?" in wrong
    muster("queue", "create", name, "--priority=5", "--capability=cpu=64,nvidia.com/gpu=8", "--deserved=cpu=8")
    try:
        assert client.get(QUEUES, name).spec.priority == 5
        muster("queue", "update", name, "--weight=3", "--capability=cpu=none,nvidia.com/gpu=4")
        spec = client.get(QUEUES, name).spec
        assert (spec.weight, spec.priority, spec.deserved) == (3, 5, {"cpu": "8"})
        assert spec.capability == {"nvidia.com/gpu": "4"}
        assert "there is nothing to change" in muster("queue", "update", name, code=2)
        wait_for(lambda: client.get(QUEUES, name).status.state == "Open")
        client.create(JOBS, _in_queue(job("mine", namespace, replicas=1, gpus=1), name), namespace)
        wait_for(lambda: states(muster, namespace) == {"mine": "Job Running"}, 60, "it to run")
        wait_for(lambda: f"  Job {namespace}/mine: Running, 1 pod at least" in muster("queue", "view", name))
        assert f"has gangs: Job {namespace}/mine." in muster("queue", "delete", name, code=1)
        wait_for(lambda: client.get(QUEUES, name).status.allocated.get("pods") == "1")
        client.delete(JOBS, "mine", namespace)
        wait_for(lambda: states(muster, namespace) == {})
        wait_for(lambda: client.get(QUEUES, name).status.allocated.get("pods", "0") == "0")
        assert f'queue.scheduling.volcano.sh "{name}" deleted' in muster("queue", "delete", name)
    finally:
        with contextlib.suppress(NotFound):
            drop_queue(client, name)


def _in_queue(manifest: JSON, queue: str) -> JSON:
    return manifest | {"spec": manifest["spec"] | {"queue": queue}}
