"""What commands say to those who may list what is in their namespace, and nothing of the cluster."""

import json
from pathlib import Path
from typing import Any

import pytest

GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/mine/podgroups"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
RUNTIMES = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes"
NAMESPACE = "--namespace=mine"
WHY = "worker: 2 more pods must start together and 0 of them find a place"
GROUP: dict[str, Any] = {
    "metadata": {"name": "train-1", "namespace": "mine", "uid": "g1",
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "j1",
        "controller": True}]},
    "spec": {"minMember": 2, "queue": "team"},
    "status": {"phase": "Inqueue", "place": 21, "expectedStart": "2027-01-15T08:00:00Z",
        "conditions": [{"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": WHY}]},
}  # fmt: skip
QUEUE: dict[str, Any] = {
    "metadata": {"name": "team", "uid": "q1"},
    "spec": {"parent": "root", "capability": {"nvidia.com/gpu": "24"}},
    "status": {"state": "Open", "allocated": {"cpu": "0", "memory": "0", "nvidia.com/gpu": "8"},
        "fairShare": {"nvidia.com/gpu": "32"}, "deserved": {"nvidia.com/gpu": "16"}, "waiting": 24, "running": 3,
        "inqueue": 2, "message": "the first gang of the queue waits: NotEnoughResources"},
}  # fmt: skip
ROOT: dict[str, Any] = {"metadata": {"name": "root", "uid": "q0"}, "spec": {}, "status": {"state": "Open"}}
JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: more}
spec:
  queue: team
  minAvailable: 2
  tasks:
  - name: worker
    replicas: 2
    template:
      spec: {containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: SIZE}}}]}
"""


def test_explain_tells_the_gangs_own_words(muster: Any, lists: dict[str, list[Any]]) -> None:
    """And on standard error what is not there, and which role would show it."""
    lists[GROUPS] = [GROUP]
    result = muster("explain", "job", "train", NAMESPACE)
    lines = result.stdout.splitlines()
    assert lines[:2] == ["Job mine/train", f"it waits: {WHY}"]
    assert "queue          team, place 21-30 in it" in lines
    assert "expected       to start at 2027-01-15T08:00:00Z" in lines
    assert "you cannot list nodes in the whole cluster" in result.stderr
    assert "ClusterRole muster-view-cluster" in result.stderr
    found = json.loads(muster("explain", "job", "train", NAMESPACE, "-o", "json").stdout)
    assert (found["whole"], found["reason"], found["queue"]["place"]) == (False, "NotEnoughResources", 21)


def test_explain_with_queues_tells_how_many_wait(muster: Any, lists: dict[str, list[Any]]) -> None:
    """As the Queue says it."""
    lists[GROUPS], lists[QUEUES] = [GROUP], [ROOT, QUEUE]
    assert "team (Open), place 21-24 of 24 in it" in muster("explain", "gang", "train", NAMESPACE).stdout


@pytest.mark.parametrize("command", [["explain", "job", "x"], ["simulate", "-f", "-"]], ids=" ".join)
def test_who_may_not_even_see_his_namespace_is_told_what_to_ask_for(muster: Any, command: list[str]) -> None:
    """A role there, and by whom."""
    told = muster(*command, NAMESPACE, code=1).stderr
    assert "you cannot list the gangs of namespace mine" in told
    assert "muster-view or muster-edit in a RoleBinding" in told


def test_queue_top_is_what_queues_say(muster: Any, lists: dict[str, list[Any]]) -> None:
    """Use, share, quota and number of gangs, in the columns that an administrator has."""
    lists[QUEUES] = [QUEUE, ROOT]
    head, root, team = muster("queue", "top").stdout.splitlines()
    assert head.split() == ["QUEUE", "RESOURCE", "USED", "FAIR", "DESERVED", "SHARE", "WAITING"]
    assert root.split()[0] == "root"
    assert team.split() == ["team", "nvidia.com/gpu", "8", "32", "16", "#####...............", "25%", "24"]
    told = muster("queue", "explain", "team").stdout
    assert "24 gangs wait in it\n    the first gang of the queue waits: NotEnoughResources" in told


def test_queue_top_without_queues_is_where_ones_own_gangs_stand(muster: Any, lists: dict[str, list[Any]]) -> None:
    """The context's namespace is meant."""
    lists[GROUPS.replace("mine", "default")] = [GROUP]
    result = muster("queue", "top")
    assert result.stdout.splitlines()[1].split() == ["team", "0", "1", "21-30", "2027-01-15T08:00:00Z"]
    assert "muster-view-queues" in result.stderr
    assert "muster-view-queues" in muster("queue", "explain", "team", code=1).stderr


@pytest.mark.parametrize(("size", "remark"), [
    (4, "the queue uses 8 nvidia.com/gpu, with this gang 16, of the 16 that the queue deserves"),
    (8, "the queue uses 8 nvidia.com/gpu, with this gang 24: more than the 16 that the queue deserves; others"),
    (16, "the queue uses 8 nvidia.com/gpu, with this gang 40: more than the 24 that the queue may use (capability)"),
])  # fmt: skip
def test_simulate_says_what_the_queue_says(muster: Any, lists: dict[str, list[Any]], size: int, remark: str) -> None:
    """Of a manifest that admission takes."""
    lists[GROUPS], lists[QUEUES] = [], [ROOT, QUEUE]
    told = muster("simulate", "-f", "-", NAMESPACE, stdin=JOB.replace("SIZE", str(size))).stdout
    assert f"worker: 2 pods, each {size} nvidia.com/gpu" in told
    assert "team, 24 gangs wait in it now" in told
    assert remark in told


def test_simulate_of_changes_of_the_cluster_is_refused_in_words(muster: Any, lists: dict[str, list[Any]]) -> None:
    """Nothing can be said of them."""
    lists[GROUPS] = []
    assert "users who can list the whole cluster" in muster("simulate", "--cordon", "n", NAMESPACE, code=2).stderr


def test_topo_has_the_nodes_of_ones_own_gangs(muster: Any, lists: dict[str, list[Any]]) -> None:
    """In rank order; of one that waits it says so."""
    lists[GROUPS] = [GROUP]
    assert muster("topo", "--gang", "mine/train").stdout.split() == ["Job", "mine/train", "on", "no", "node", "yet"]
    lists[GROUPS.replace("mine", "default")] = []
    assert muster("topo").stdout.strip() == "no gang has nodes"


def test_train_takes_the_runtime_that_the_chart_ships(muster: Any, tmp_path: Path) -> None:
    """Any other one is not known, and the role is named."""
    file = tmp_path / "fit.py"
    file.write_text("print(1)\n")
    assert "torchrun" in muster("train", str(file), NAMESPACE, "--dry-run").stdout
    told = muster("train", str(file), NAMESPACE, "--dry-run", "--runtime=ours", code=1).stderr
    assert "there is no runtime 'ours'" in told
    assert "muster-view-queues" in told


def test_queue_view_counts_gangs_that_may_not_be_listed(muster: Any, lists: dict[str, list[Any]]) -> None:
    """And says so of Events, which are in namespace default."""
    lists[QUEUES], lists[f"{QUEUES}/team"] = [ROOT, QUEUE], [QUEUE]
    told = muster("queue", "view", "team").stdout
    assert "Gangs: 3 running, 2 inqueue, 0 pending (you cannot list the gangs of all namespaces)" in told
    assert "Events: you cannot list the Events of namespace default" in told
