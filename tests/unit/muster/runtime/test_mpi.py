"""MPI: counts and slots, keys with modes that ssh accepts, sshd on the nodes, and the key Secret made once."""

from collections.abc import Callable
from typing import Any

import frameworks_world as w
import pytest

JSON = dict[str, Any]
GPU = "nvidia.com/gpu"


def node(**fields: Any) -> JSON:
    """A pod spec with container `node`."""
    return {"containers": [{"name": "node", "image": "i", **fields}]}


def hostfile(result: Any) -> list[str]:
    """The lines of the hostfile."""
    lines: list[str] = w.component(result, "ConfigMap")["data"]["hostfile"].splitlines()
    return lines


@pytest.mark.parametrize(("nodes", "computes", "lines"), [
    (1, False, ["train-node-0-0.train slots=1"]),
    (3, False, [f"train-node-0-{index}.train slots=1" for index in range(3)]),
    (3, True, ["train-launcher-0-0 slots=1", "train-node-0-0.train slots=1", "train-node-0-1.train slots=1"]),
    (1, True, ["train-launcher-0-0 slots=1"]),
])  # fmt: skip
def test_hosts(nodes: int, computes: bool, lines: list[str]) -> None:  # noqa: FBT001 - a column of the table
    """`numNodes` counts what computes; the launcher's own line has no domain."""
    result = w.compiled(w.train_job(trainer={"numNodes": nodes}), w.mpi_runtime(runLauncherAsNode=computes))
    assert hostfile(result) == lines


def test_one_node_that_launches_is_one_pod() -> None:
    """No replicated job `node`, and nobody waits for it."""
    result = w.compiled(w.train_job(trainer={"numNodes": 1}), w.mpi_runtime(runLauncherAsNode=True))
    [job] = w.component(result, "JobSet")["spec"]["replicatedJobs"]
    assert (job["name"], "dependsOn" in job) == ("launcher", False)


@pytest.mark.parametrize(("policy", "trainer", "slots"), [
    ({}, {}, 1),
    ({}, {"resourcesPerNode": {"limits": {GPU: 4}}}, 4),
    ({}, {"resourcesPerNode": {"limits": {"nvidia.com/mig-1g.5gb": 2, "cpu": "8"}}}, 2),
    ({"numProcPerNode": 8}, {"resourcesPerNode": {"limits": {GPU: 4}}}, 8),
    ({"numProcPerNode": 8}, {"numProcPerNode": 2}, 2),
])  # fmt: skip
def test_slots(policy: JSON, trainer: JSON, slots: int) -> None:
    """The TrainJob's, else the runtime's, else the GPUs of a node."""
    result = w.compiled(w.train_job(trainer=trainer), w.mpi_runtime(**policy))
    assert hostfile(result) == [f"train-node-0-0.train slots={slots}"]
    env = w.env_of(w.pods_of(result, "launcher")["spec"]["containers"][0])
    assert env["OMPI_MCA_orte_set_default_slots"] == env["PRTE_MCA_prte_set_default_slots"] == str(slots)


@pytest.mark.parametrize(("path", "security", "mode"), [
    ("/root/.ssh", {}, 0o600),
    ("/root/.ssh", {"fsGroup": 1000}, 0o600),
    ("//root//.ssh/", {}, 0o600),
    ("/home/user/.ssh", {"fsGroup": 1000}, 0o640),
    ("/home/user/.ssh", {}, 0o644),
    ("/home/user/.ssh", {"runAsUser": 0}, 0o600),
    ("/root/.ssh", {"runAsUser": 1000}, 0o644),
    ("/root/.ssh", {"runAsUser": 1000, "fsGroup": 1000}, 0o640),
    ("/rooted", {}, 0o644),
])  # fmt: skip
def test_modes_of_the_key(path: str, security: JSON, mode: int) -> None:
    """Ssh must be able to read the key, and must not find it too open; Open MPI runs as root where root is the user."""
    spec = {**node(), "securityContext": security}
    result = w.compiled(w.train_job(), w.mpi_runtime(spec, spec, sshAuthMountPath=path))
    for pod_set in ("launcher", "node"):
        pods = w.pods_of(result, pod_set)["spec"]
        secret = pods["volumes"][0]["secret"]
        assert [(item["path"], item["mode"]) for item in secret["items"]] == [
            (".ssh/id_rsa", mode),
            (".ssh/id_rsa.pub", 0o644),
            (".ssh/authorized_keys", 0o644),
        ]
        assert (secret["secretName"], secret["defaultMode"]) == ("train-mpi-ssh-auth", 0o400)
        # The folder in the volume: the volume's root is open to everybody, and sshd refuses keys from there.
        [mount] = [each for each in pods["containers"][0]["volumeMounts"] if each["name"] == "mpi-ssh-auth"]
        assert (mount["mountPath"], mount["subPath"]) == (path.replace("//", "/").rstrip("/"), ".ssh")
    allowed = w.env_of(w.pods_of(result, "launcher")["spec"]["containers"][0]).get("OMPI_ALLOW_RUN_AS_ROOT")
    assert allowed == ("1" if mode == 0o600 else None)


@pytest.mark.parametrize(("given", "command", "port"), [
    ({}, ["/usr/sbin/sshd", "-De"], 22),
    ({"ports": [{"containerPort": 2222}]}, ["/usr/sbin/sshd", "-De"], 2222),
    ({"command": ["my-sshd"], "ports": [{"name": "ssh", "containerPort": 99}]}, ["my-sshd"], 99),
    ({"command": ["my-sshd"]}, ["my-sshd"], None),
])  # fmt: skip
def test_nodes_serve_ssh(given: JSON, command: list[str], port: int | None) -> None:
    """A node without a command runs sshd, and is ready when ssh gets through, where the port is known."""
    [container] = w.pods_of(w.compiled(w.train_job(), w.mpi_runtime(None, node(**given))))["spec"]["containers"]
    assert container["command"] == command
    assert container.get("readinessProbe", {}).get("tcpSocket") == (port and {"port": port})


def test_probe_of_the_runtime_stays() -> None:
    """A readiness probe that is there already is not replaced."""
    probe = {"exec": {"command": ["true"]}}
    result = w.compiled(w.train_job(), w.mpi_runtime(None, node(readinessProbe=probe)))
    [container] = w.pods_of(result)["spec"]["containers"]
    assert container["readinessProbe"] == probe


@pytest.mark.parametrize(
    ("annotations", "kind"),
    [({}, "ed25519"), ({"muster.dev/ssh-key": "ed25519"}, "ed25519"), ({"muster.dev/ssh-key": "ecdsa"}, "ecdsa")],
)
def test_key_is_made_once(annotations: JSON, kind: str) -> None:
    """The Secret is immutable, created once, goes away with the TrainJob, and comes before the pods."""
    result = w.compiled(w.train_job({"annotations": annotations}), w.mpi_runtime())
    [secret] = [each for each in result.components if each.kind == "Secret"]
    assert (secret.keys, secret.once, secret.stage) == (kind, True, 0)
    assert (secret.manifest["type"], secret.manifest["immutable"]) == ("kubernetes.io/ssh-auth", True)
    assert secret.manifest["metadata"]["ownerReferences"][0]["uid"] == "uid"


def test_nodes_get_image_env_and_resources_but_not_the_command() -> None:
    """Processes of the training run on the nodes; what the user starts runs on the launcher only."""
    env = [{"name": "A", "value": "1"}]
    trainer = {"image": "mine", "command": ["mpirun", "x"], "env": env, "resourcesPerNode": {"limits": {GPU: 1}}}
    result = w.compiled(w.train_job(trainer=trainer), w.mpi_runtime())
    [launcher] = w.pods_of(result, "launcher")["spec"]["containers"]
    [worker] = w.pods_of(result)["spec"]["containers"]
    assert (launcher["command"], worker["command"]) == (["mpirun", "x"], ["/usr/sbin/sshd", "-De"])
    assert (launcher["image"], worker["image"], w.env_of(worker)) == ("mine", "mine", {"A": "1"})
    assert ("resources" in launcher, worker["resources"]) == (False, {"limits": {GPU: 1}})


@pytest.mark.parametrize("implementation", ["Intel", "MPICH"])
def test_nodes_find_the_launcher(implementation: str) -> None:
    """Where nodes connect back by short name, they search its domain."""
    result = w.compiled(w.train_job(), w.mpi_runtime(mpiImplementation=implementation))
    assert w.pods_of(result)["spec"]["dnsConfig"] == {"searches": ["train.team.svc.cluster.local"]}
    assert hostfile(result) == ["train-node-0-0.train:1"]
    alone = w.mpi_runtime(mpiImplementation=implementation, runLauncherAsNode=True)
    assert hostfile(w.compiled(w.train_job(trainer={"numNodes": 1}), alone)) == ["train-launcher-0-0.train:1"]


def test_job_ends_with_its_launcher() -> None:
    """As a Job of ours: the launcher comes after the nodes, and its end is the Job's; sshd would never end."""
    result = w.compiled(w.train_job(), w.mpi_runtime(), "Job")
    job = next(each for each in result.components if each.kind == "Job").manifest
    tasks = {task["name"]: task for task in job["spec"]["tasks"]}
    assert tasks["launcher"]["dependsOn"] == {"name": ["node"]}
    assert tasks["launcher"]["policies"] == [{"event": "TaskCompleted", "action": "CompleteJob"}]
    assert (tasks["launcher"]["minAvailable"], tasks["node"]["minAvailable"], job["spec"]["minAvailable"]) == (0, 1, 1)


def of_size(size: int) -> w.Group:
    """A labelled Indexed Job of so many pods, and one of them."""
    group = w.indexed_job(w.template("mpi", w.SECRET, {}))
    assert group.owner
    group.owner["spec"] |= {"completions": size, "parallelism": size}
    return group


def test_a_long_hostfile_is_a_config_map() -> None:
    """Pods carry no copies of it; its name follows from its text, so that a scaled workload has another one."""
    names = set()
    for size in (1000, 1000, 1001):
        result = w.shaped(of_size(size))
        assert not result.errors
        assert "muster.dev/mpi-hostfile" not in result.pod["metadata"].get("annotations", {})
        [source] = [volume["configMap"] for volume in result.pod["spec"]["volumes"] if volume["name"] == "mpi-hostfile"]
        assert source["items"] == [{"key": "hostfile", "path": "hostfile", "mode": 0o444}]
        assert source["name"].startswith("train-mpi-hostfile-")
        names.add(source["name"])
    assert len(names) == 2


@pytest.mark.parametrize("size", [60_000, 2_000_000_000])
def test_more_pods_than_a_gang_may_have(size: int) -> None:
    """The pod is refused, and no list is made of a number that somebody wrote."""
    [error] = w.shaped(of_size(size)).errors
    assert f"Invalid value: {size}: must be at most 20000" in str(error)


@pytest.mark.parametrize("more", [{}, {"muster.dev/mpi-launcher-as-node": "never"}])
def test_labelled_pods_carry_the_hostfile(more: JSON) -> None:
    """The annotation is mounted at /etc/mpi; the key is the Secret that the user names. All of them compute."""
    result = w.shaped(w.indexed_job(w.template("mpi", {**w.SECRET, **more}, {"limits": {GPU: 2}})))
    assert not result.errors
    assert result.pod["metadata"]["annotations"]["muster.dev/mpi-hostfile"].splitlines() == [
        "train-0 slots=2",
        "train-1.train slots=2",
        "train-2.train slots=2",
        "train-3.train slots=2",
    ]
    volumes = {volume["name"]: volume for volume in result.pod["spec"]["volumes"]}
    assert volumes["mpi-ssh-auth"]["secret"]["secretName"] == "keys"
    [item] = volumes["mpi-hostfile"]["downwardAPI"]["items"]
    assert item["fieldRef"] == {"fieldPath": "metadata.annotations['muster.dev/mpi-hostfile']"}
    mounts = {mount["mountPath"] for mount in result.pod["spec"]["containers"][0]["volumeMounts"]}
    assert mounts == {"/root/.ssh", "/etc/mpi"}


@pytest.mark.parametrize(("annotations", "path"), [
    ({"muster.dev/mpi-implementation": "openmpi"}, "metadata.annotations[muster.dev/mpi-implementation]"),
    ({"muster.dev/ssh-auth-mount-path": "ssh"}, "metadata.annotations[muster.dev/ssh-auth-mount-path]"),
])  # fmt: skip
def test_settings_that_mean_nothing(annotations: JSON, path: str) -> None:
    """Each is refused at its own path."""
    found = w.errors_of(w.compiled(w.train_job({"annotations": annotations}), w.mpi_runtime()))
    # The runtime has an implementation and a path already; the TrainJob's own annotation goes before them.
    assert [error.partition(": ")[0] for error in found] == [path]


@pytest.mark.parametrize("owner", [w.indexed_job, w.jobset, w.leader_worker_set])
def test_labelled_pods_share_the_key_of_their_workload(owner: Callable[[JSON], w.Group]) -> None:
    """Without a Secret of the user's they mount the one that the controller makes, called after the highest owner."""
    result = w.shaped(owner(w.template("mpi", {}, {})))
    assert not result.errors
    names = [each["secret"]["secretName"] for each in result.pod["spec"]["volumes"] if "secret" in each]
    assert names == ["train-mpi-ssh-auth"]


@pytest.mark.parametrize(("pods", "text"), [
    ({"volumes": [{"name": "mpi-ssh-auth"}]}, "no volume 'mpi-ssh-auth'"),
    ({"volumes": [{"name": "v"}], "path": "/root/.ssh/"}, "nothing mounted at /root/.ssh"),
    ({"volumes": [{"name": "mpi-hostfile"}]}, "no volume 'mpi-hostfile'"),
    ({"volumes": [{"name": "v"}], "path": "/etc/mpi"}, "nothing mounted at /etc/mpi"),
    ({"volumes": [{"name": "v"}], "path": "/data"}, ""),
])  # fmt: skip
def test_volumes_of_the_runtime_are_not_replaced(pods: JSON, text: str) -> None:
    """Muster's own would take their place without a word."""
    mounts = [{"name": "v", "mountPath": pods["path"]}] if "path" in pods else []
    launcher = {"containers": [{"name": "node", "image": "i", "volumeMounts": mounts}], "volumes": pods["volumes"]}
    found = w.errors_of(w.compiled(w.train_job(), w.mpi_runtime(launcher)))
    assert len(found) == bool(text)
    assert all(text in each and each.startswith("spec.runtimeRef: ") for each in found)
