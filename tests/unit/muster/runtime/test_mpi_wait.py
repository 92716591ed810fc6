"""The launcher's wait: who gets it, what it is made of, and the script itself, run by a real shell."""

import os
import subprocess
from pathlib import Path
from typing import Any

import frameworks_world as w
import pytest

from muster.runtime.plugins.mpi_objects import SCRIPT, WAIT_NAME
from muster.runtime.plugins.mpi_settings import HOSTFILE

JSON = dict[str, Any]
RANK_KEYS = (
    "batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index",
    "leaderworkerset.sigs.k8s.io/worker-index", "jobset.sigs.k8s.io/job-index",
)  # fmt: skip


def as_rank_0(pod: JSON) -> JSON:
    """The pod, as if it were the first of its group."""
    meta = pod["metadata"]
    for values in (meta.get("labels") or {}, meta.get("annotations") or {}):
        values |= {key: "0" for key in RANK_KEYS if key in values}
    if "volcano.sh/task-index" in meta.get("annotations", {}):
        meta["annotations"]["volcano.sh/task-index"] = "0"
    if meta.get("name", "").startswith("train-"):
        meta["name"] = "train-0"
    return pod


def inits(pod: JSON) -> list[str]:
    """The names of the pod's init containers."""
    return [each["name"] for each in pod["spec"].get("initContainers") or []]


PLAIN = ["Indexed Job `train`", "Indexed Job, Kubernetes before 1.28", "JobSet, one Job of 4 pods", "StatefulSet"]
PLAIN += ["StatefulSet, Kubernetes before 1.28, pod `train-2`", "LeaderWorkerSet, second group"]
PLAIN += ["Volcano Job, task `worker`"]


@pytest.mark.parametrize("owner", PLAIN)
def test_only_the_first_pod_waits(owner: str) -> None:
    """Rank 0 launches; for the others nobody has to answer."""
    group = w.OWNERS[owner](w.template("mpi", w.SECRET, {}))
    assert inits(w.shaped(group).pod) == []
    as_rank_0(group.pod)
    result = w.shaped(group)
    assert not result.errors
    assert inits(result.pod) == [WAIT_NAME]
    group.pod = result.pod
    assert w.shaped(group).pod == result.pod  # asked again, it changes nothing


def test_made_like_the_launcher() -> None:
    """Its image, rights, keys and hostfile; CPU and memory, so that quotas hold, but no device."""
    resources = {"limits": {"nvidia.com/gpu": 8, "cpu": "4"}, "requests": {"memory": "1Gi"}}
    group = w.stateful_set(w.template("mpi", w.SECRET, resources))
    [container] = as_rank_0(group.pod)["spec"]["containers"]
    container |= {"securityContext": {"runAsUser": 1000}, "imagePullPolicy": "Always"}
    mine = {"name": "mine", "mountPath": "/root/.ssh"}
    container["volumeMounts"] = [mine, {"name": "data", "mountPath": "/data"}]
    group.pod["spec"]["initContainers"] = [{"name": "first", "image": "i"}]
    first, wait = w.shaped(group).pod["spec"]["initContainers"]
    assert (first["name"], wait["name"]) == ("first", WAIT_NAME)
    assert (wait["image"], wait["imagePullPolicy"], wait["securityContext"]) == ("image", "Always", {"runAsUser": 1000})
    assert wait["resources"] == {"limits": {"cpu": "4"}, "requests": {"memory": "1Gi"}}
    assert wait["volumeMounts"] == [mine, {"name": "mpi-hostfile", "mountPath": "/etc/mpi", "readOnly": True}]
    assert wait["env"] == [{"name": "MUSTER_WAIT_S", "value": "600"}, {"name": "MUSTER_LAUNCHER", "value": "train-0"}]


@pytest.mark.parametrize(("computes", "nodes", "waits"), [(False, 1, True), (True, 2, True), (True, 1, False)])
@pytest.mark.parametrize("target", ["Job", "JobSet"])
def test_the_launcher_of_a_train_job(target: Any, nodes: int, *, computes: bool, waits: bool) -> None:
    """It waits for the nodes, which do not; alone it waits for nobody."""
    result = w.compiled(w.train_job(trainer={"numNodes": nodes}), w.mpi_runtime(runLauncherAsNode=computes), target)
    spec = w.pods_of(result, "launcher")["spec"]
    assert inits({"spec": spec}) == ([WAIT_NAME] if waits else [])
    if waits:
        [wait] = spec["initContainers"]
        assert {mount["mountPath"] for mount in wait["volumeMounts"]} == {"/root/.ssh", "/etc/mpi"}
        assert inits({"spec": w.pods_of(result)["spec"]} if nodes > 1 or not computes else {"spec": {}}) == []


def test_a_wait_of_ones_own() -> None:
    """Seconds, or 0 for not at all."""
    for text, found in (("30", ["30"]), ("0", [])):
        group = w.indexed_job(w.template("mpi", {**w.SECRET, "muster.dev/mpi-wait": text}, {}))
        as_rank_0(group.pod)
        waits = w.shaped(group).pod["spec"].get("initContainers") or []
        assert [each["env"][0]["value"] for each in waits] == found
    [wrong] = w.errors_of(w.compiled(w.train_job({"annotations": {"muster.dev/mpi-wait": "soon"}}), w.mpi_runtime()))
    assert wrong.startswith("metadata.annotations[muster.dev/mpi-wait]: ")
    assert wrong.endswith("must be a number of seconds from 0 (do not wait) to 86400")


SSH = """\
#!/bin/sh
for each in "$@"; do [ "$each" = true ] || host=$each; done
echo "$host" >>"$ASKED"
case $host in never*) echo "ssh: Could not resolve hostname $host" >&2; exit 255;; esac
grep -c "^$host$" "$ASKED" | grep -q '^[3-9]' || { echo "ssh: not yet" >&2; exit 255; }
"""


def run(folder: Path, hosts: str, wait_s: int, *, ssh: str | None = SSH) -> subprocess.CompletedProcess[str]:
    """Runs the script with this `ssh`, which writes down whom it is asked for."""
    tools = folder / "bin"
    tools.mkdir()
    for name in ("sh", "date", "sleep", "grep", "true"):
        found = next(each for each in ("/bin", "/usr/bin") if Path(each, name).exists())
        (tools / name).symlink_to(Path(found, name))
    if ssh is not None:
        (tools / "ssh").write_text(ssh)
        (tools / "ssh").chmod(0o755)
    (folder / "hostfile").write_text(hosts)
    script = SCRIPT.replace(HOSTFILE, str(folder / "hostfile"))
    given = {"PATH": str(tools), "MUSTER_WAIT_S": str(wait_s), "MUSTER_LAUNCHER": "train-0"}
    command = [os.fspath(tools / "sh"), "-c", script]
    environment = {**given, "ASKED": str(folder / "asked")}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("line", ["{} slots=2", "{}:2"])
def test_the_script_waits_for_all_but_itself(tmp_path: Path, line: str) -> None:
    """As often as it takes, and says for whom; in both forms of the hostfile."""
    hosts = ["train-0", *(f"train-{index}.train" for index in range(1, 35))]
    result = run(tmp_path, "".join(f"{line.format(host)}\n" for host in hosts), 60)
    assert (result.returncode, result.stderr) == (0, "")
    assert "waiting until train-1.train answers ssh: ssh: not yet" in result.stdout
    assert result.stdout.endswith("all 34 hosts answer ssh\n")
    asked = (tmp_path / "asked").read_text().split()
    assert {host: asked.count(host) for host in hosts} == {"train-0": 0, **dict.fromkeys(hosts[1:], 3)}


def test_the_script_ends_in_time(tmp_path: Path) -> None:
    """And says who did not answer, what ssh said, and what to do."""
    result = run(tmp_path, "train-0 slots=1\nnever.train slots=1\n", 1)
    assert result.returncode == 1
    assert "never.train has not answered ssh for 1 s: ssh: Could not resolve hostname never.train" in result.stdout
    assert "annotation muster.dev/mpi-wait says how many seconds to wait, 0 for not at all" in result.stdout


def test_the_script_without_ssh(tmp_path: Path) -> None:
    """An image without ssh is named at once."""
    result = run(tmp_path, "train-1.train slots=1\n", 60, ssh=None)
    assert (result.returncode, result.stdout.partition(",")[0]) == (1, "this image has no ssh")
