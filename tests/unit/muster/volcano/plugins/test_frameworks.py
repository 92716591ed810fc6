"""Plugins tensorflow, mpi, ray and hcclrank."""

import json
from typing import Any

import pytest
from plugin_jobs import container, job, objects, shaped, variables

from muster.volcano.plugins.base import PluginError

TF = {"chief": 1, "worker": 2, "ps": 1, "board": 1}


@pytest.mark.parametrize(
    ("task", "index", "role"), [("chief", 0, "chief"), ("worker", 1, "worker"), ("ps", 0, "ps"), ("board", 0, "board")]
)
def test_tf_config(task: str, index: int, role: str) -> None:
    """The cluster by role, in fixed order, and the pod's own task; a task without a role is not in the cluster."""
    manifest = shaped(job(TF, tensorflow=[]), task, index)
    for name in ("main", "side"):
        text = variables(manifest, name)["TF_CONFIG"]
        assert json.loads(text) == {
            "cluster": {
                "ps": ["j-ps-0.j:2222"],
                "worker": ["j-worker-0.j:2222", "j-worker-1.j:2222"],
                "chief": ["j-chief-0.j:2222"],
            },
            "task": {"type": role, "index": index},
        }
        assert " " not in text
    assert "TF_CONFIG" not in variables(manifest, "init")


def test_tensorflow_flags() -> None:
    """Tasks and port have other names; a Job of one pod is no cluster; too many hosts are said."""
    of = job({"trainer": 2}, tensorflow=["--worker=trainer", "-port", "3333"])
    config = json.loads(variables(shaped(of, "trainer", 1))["TF_CONFIG"])
    assert config["cluster"] == {"worker": ["j-trainer-0.j:3333", "j-trainer-1.j:3333"]}
    assert config["task"] == {"type": "worker", "index": 1}
    assert variables(shaped(job({"worker": 1}, tensorflow=[]), "worker", 0)) == {}
    with pytest.raises(PluginError, match="more than a program can be started with"):
        objects(job({"worker": 9000}, tensorflow=[]))


def test_mpi() -> None:
    """The port everywhere, also in init containers; the workers' names in all containers of the master."""
    of = job({"master": 1, "worker": 2}, mpi=[])
    master, worker = shaped(of, "master", 0), shaped(of, "worker", 1)
    for name in ("main", "side", "init"):
        for manifest in (master, worker):
            assert container(manifest, name)["ports"] == [
                {"name": "mpijob-port", "containerPort": 22, "protocol": "TCP"}
            ]
        assert variables(master, name) == {"MPI_HOST": "j-worker-0.j,j-worker-1.j"}
        assert variables(worker, name) == {}


def test_mpi_flags() -> None:
    """Other names and another port; a port that is open already stays; no master is an error."""
    of = job({"boss": 1, "hand": 1}, mpi=["--master=boss", "--worker=hand", "--port=2222"])
    of.spec.tasks[0].template["spec"]["containers"][0]["ports"] = [{"name": "own", "containerPort": 2222}]
    manifest = shaped(of, "boss", 0)
    assert container(manifest)["ports"] == [{"name": "own", "containerPort": 2222}]
    assert variables(manifest)["MPI_HOST"] == "j-hand-0.j"
    with pytest.raises(PluginError, match="no task is named 'master'"):
        objects(job({"worker": 1}, mpi=[]))


def test_mpi_with_more_workers_than_a_variable_holds() -> None:
    """The file that svc writes takes its place."""
    of = job({"master": 1, "worker": 9000}, mpi=[])
    assert variables(shaped(of, "master", 0)) == {"MPI_HOSTFILE": "/etc/volcano/worker.host"}


def ray_job(*flags: str) -> Any:
    """A head and two workers with Ray's container names."""
    of = job({"head": 1, "worker": 2, "submit": 1}, ray=list(flags))
    for task in of.spec.tasks:
        task.template["spec"]["containers"][0] |= {"name": task.name, "command": ["mine"], "args": ["kept"]}
    return of


def test_ray() -> None:
    """Commands are replaced in the containers of these names, arguments are not; the head's ports are open."""
    of = ray_job()
    head, worker = container(shaped(of, "head", 0), "head"), container(shaped(of, "worker", 1), "worker")
    start = "ray start --head --block --dashboard-host=0.0.0.0 --port=6379"
    assert head["command"] == ["sh", "-c", f"{start} --dashboard-port=8265 --ray-client-server-port=10001"]
    assert worker["command"] == ["sh", "-c", "ray start --block --address=j-head-0.j:6379"]
    assert head["args"] == worker["args"] == ["kept"]
    assert {one["name"]: one["containerPort"] for one in head["ports"]} == {
        "gcs": 6379,
        "dashboard": 8265,
        "client-server": 10001,
    }
    assert "ports" not in worker
    assert container(shaped(of, "submit", 0), "submit")["command"] == ["mine"]
    assert "command" not in container(shaped(of, "head", 0), "side")


def test_ray_service() -> None:
    """Named after the Job, for the head's pods only; without a head there is nothing to name."""
    (owned,) = objects(ray_job("--port=1", "--dashboardPort=2", "--clientPort=3"))
    assert owned.manifest == {
        "metadata": {"name": "j-head-svc"},
        "spec": {
            "selector": {
                "volcano.sh/job-name": "j",
                "volcano.sh/job-namespace": "n",
                "volcano.sh/task-spec": "head",
            },
            "ports": [
                {"name": "gcs", "port": 1, "targetPort": 1, "protocol": "TCP"},
                {"name": "dashboard", "port": 2, "targetPort": 2, "protocol": "TCP"},
                {"name": "client-server", "port": 3, "targetPort": 3, "protocol": "TCP"},
            ],
        },
    }
    with pytest.raises(PluginError, match="no task is named 'leader'"):
        objects(ray_job("--head=leader"))


@pytest.mark.parametrize(("task", "index", "rank"), [("master", 1, "1"), ("worker", 0, "2"), ("other", 0, None)])
def test_hccl_rank(task: str, index: int, rank: str | None) -> None:
    """Masters first, then workers; others have none."""
    manifest = shaped(job({"master": 2, "worker": 2, "other": 1}, hcclrank=[]), task, index)
    assert manifest["metadata"]["annotations"].get("hccl/rankIndex") == rank


def test_hccl_rank_of_others() -> None:
    """RANK goes first, be it pytorch's or the user's, and so does an annotation of the template."""
    of = job({"master": 1, "worker": 2}, hcclrank=["--worker=none"], pytorch=[])
    assert shaped(of, "worker", 1)["metadata"]["annotations"]["hccl/rankIndex"] == "2"
    of.spec.tasks[1].template["metadata"] = {"annotations": {"hccl/rankIndex": "7"}}
    assert shaped(of, "worker", 1)["metadata"]["annotations"]["hccl/rankIndex"] == "7"
