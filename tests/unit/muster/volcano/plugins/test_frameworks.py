"""Plugins tensorflow, mpi, ray, hcclrank, and ssh: one Secret per Job, and where its files are."""

import json
import subprocess
from base64 import b64decode
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from plugin_jobs import container, job, objects, shaped, variables

from certs import ssh
from muster.volcano.plugins.base import Owned, PluginError
from muster.volcano.plugins.registry import warnings

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
    with pytest.raises(PluginError, match="more than a program can be started with"):
        shaped(job({"worker": 9000}, tensorflow=[]), "worker", 0)


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
    """Commands and arguments are replaced in the containers of these names; the head's ports are open."""
    of = ray_job()
    head, worker = container(shaped(of, "head", 0), "head"), container(shaped(of, "worker", 1), "worker")
    start = "ray start --head --block --dashboard-host=0.0.0.0 --port=6379"
    assert head["command"] == ["sh", "-c", f"{start} --dashboard-port=8265 --ray-client-server-port=10001"]
    assert worker["command"] == ["sh", "-c", "ray start --block --address=j-head-0.j:6379"]
    assert "args" not in {*head, *worker}
    assert {one["name"]: one["containerPort"] for one in head["ports"]} == {
        "gcs": 6379,
        "dashboard": 8265,
        "client-server": 10001,
    }
    assert "ports" not in worker
    assert container(shaped(of, "submit", 0), "submit")["command"] == ["mine"]
    assert "command" not in container(shaped(of, "head", 0), "side")
    assert [each.partition(": ")[0] for each in warnings(of)] == [
        "spec.tasks[0].template.spec.containers[0].command",
        "spec.tasks[1].template.spec.containers[0].command",
    ]


@pytest.mark.parametrize("given", [
    {"command": ["ray", "start", "--head", "--block", "--num-gpus=8"]},
    {"command": ["sh", "-c"], "args": ["sleep 1; exec ray start --block --address=$HEAD"]},
])  # fmt: skip
def test_a_command_that_starts_ray_stays(given: dict[str, Any]) -> None:
    """It does what the plugin's does, with options that no flag has."""
    of = ray_job()
    for task in of.spec.tasks[:2]:
        task.template["spec"]["containers"][0] = {"name": task.name, **given}
        made = container(shaped(of, task.name, 0), task.name)
        assert {key: made[key] for key in given} == given
    assert warnings(of) == []


def test_a_container_without_a_command_is_not_warned_of() -> None:
    """The plugin's is what it is for."""
    assert warnings(job({"head": 1, "worker": 2}, ray=["--headContainer=main", "--workerContainer=main"])) == []


def test_ray_service() -> None:
    """Named after the Job, for the head's pods only; without a head there is nothing to name."""
    (owned,) = objects(ray_job("--port=1", "--dashboardPort=2", "--clientPort=3"))
    assert owned.manifest == {
        "metadata": {"name": "j-head-svc"},
        "spec": {
            "selector": {"volcano.sh/job-name": "j", "volcano.sh/job-namespace": "n", "volcano.sh/task-spec": "head"},
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


def files(owned: Owned) -> dict[str, str]:
    """The Secret's files as they are created."""
    assert owned.keys is not None
    return {name: b64decode(text).decode() for name, text in {**owned.manifest["data"], **owned.keys(ssh)}.items()}


def test_the_secret() -> None:
    """Four files: the keys are made when the Secret is created, the configuration can be brought up to date."""
    (owned,) = objects(job({"a": 1, "b": 2}, ssh=[]))
    assert (owned.resource.kind, owned.manifest["metadata"]["name"]) == ("Secret", "j-ssh")
    assert set(owned.manifest["data"]) == {"config"}
    made = files(owned)
    assert set(made) == {"id_rsa", "id_rsa.pub", "authorized_keys", "config"}
    assert made["id_rsa"].startswith("-----BEGIN OPENSSH PRIVATE KEY-----")
    assert made["id_rsa.pub"] == made["authorized_keys"]
    assert made["id_rsa.pub"].startswith("ssh-ed25519 ")
    assert made["config"] == (
        "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
        "Host j-a-* !*.*\n  HostName %h.j\nHost j-b-* !*.*\n  HostName %h.j\n"
    )


def test_rsa_and_port() -> None:
    """Keys in the format of old readers; a port other than 22 stands at every host; a port that is none is 22."""
    (owned,) = objects(job({"a": 1}, ssh=["--ssh-key-type=rsa", "--ssh-port=2222"]))
    made = files(owned)
    assert made["id_rsa"].startswith("-----BEGIN RSA PRIVATE KEY-----")
    assert made["id_rsa.pub"].startswith("ssh-rsa ")
    assert "Host j-a-* !*.*\n  HostName %h.j\n  Port 2222\n" in made["config"]
    (owned,) = objects(job({"a": 1}, ssh=["--ssh-port=many"]))
    assert "Port" not in files(owned)["config"]


def test_names_that_templates_give() -> None:
    """A task's own subdomain and host name; a name that begins as another task's is the longer one's."""
    of = job({"a": 2, "a-b": 2, "c": 1}, ssh=[])
    of.spec.tasks[1].template["spec"]["subdomain"] = "elsewhere"
    of.spec.tasks[2].template["spec"]["hostname"] = "head"
    (owned,) = objects(of)
    assert files(owned)["config"].endswith(
        "Host j-a-b-* !*.*\n  HostName %h.elsewhere\nHost j-a-* !*.*\n  HostName %h.j\nHost head\n  HostName head.j\n"
    )


def test_the_configuration_does_not_grow_with_the_pods() -> None:
    """A Secret holds 1 MiB, however many workers there are."""
    sizes = {len(files(*objects(job({"worker": count}, ssh=[])))["config"]) for count in (1, 9_000, 1_000_000_000)}
    assert len(sizes) == 1


@pytest.mark.skipif(which("ssh") is None, reason="needs the program ssh")
def test_what_ssh_makes_of_it(tmp_path: Path) -> None:
    """The short name of a pod becomes the whole one, and a whole one stays as it is."""
    (owned,) = objects(job({"a": 2}, ssh=["--ssh-port=2222"]))
    file = tmp_path / "config"
    file.write_text(files(owned)["config"])

    def understood(host: str) -> set[str]:
        done = subprocess.run(["ssh", "-G", "-F", str(file), host], capture_output=True, text=True, check=True)
        return {line for line in done.stdout.splitlines() if line.startswith(("hostname ", "port "))}

    assert understood("j-a-1") == {"hostname j-a-1.j", "port 2222"}
    assert understood("j-a-1.j") == {"hostname j-a-1.j", "port 22"}


def test_keys_of_the_user() -> None:
    """Both as given; the public one follows from the private one; a key that cannot be read is said."""
    pair = ssh.key_pair()
    given = [f"--ssh-private-key={pair.private.decode()}"]
    (owned,) = objects(job({"a": 1}, ssh=given))
    assert (files(owned)["id_rsa"], files(owned)["id_rsa.pub"]) == (pair.private.decode(), pair.public.decode())
    (owned,) = objects(job({"a": 1}, ssh=[*given, "--ssh-public-key=mine"]))
    assert files(owned)["authorized_keys"] == "mine"
    with pytest.raises(PluginError, match="ssh-private-key: the private key cannot be read"):
        files(*objects(job({"a": 1}, ssh=["--ssh-private-key=none"])))
    with pytest.raises(PluginError, match="ssh-key-type must be one of ed25519, rsa"):
        objects(job({"a": 1}, ssh=["--ssh-key-type=dsa"]))


@pytest.mark.parametrize(
    ("arguments", "path", "mode"),
    [([], "/root/.ssh", 0o600), (["--no-root", "--ssh-key-file-path=/home/me/.ssh"], "/home/me/.ssh", 0o644)],
)
def test_mounts(arguments: list[str], path: str, mode: int) -> None:
    """In every container; where somebody else than root reads them, with a mode that lets them."""
    manifest = shaped(job({"a": 1}, ssh=arguments), "a", 0)
    (volume,) = manifest["spec"]["volumes"]
    assert (volume["name"], volume["secret"]["secretName"], volume["secret"]["defaultMode"]) == ("j-ssh", "j-ssh", mode)
    paths = {item["key"]: item["path"] for item in volume["secret"]["items"]}
    assert paths == {name: f".ssh/{name}" for name in ("id_rsa", "id_rsa.pub", "authorized_keys", "config")}
    for name in ("main", "side", "init"):
        assert container(manifest, name)["volumeMounts"] == [{"name": "j-ssh", "mountPath": path, "subPath": ".ssh"}]
