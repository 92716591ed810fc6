"""Lists of nodes, gangs and the history, in each form that they have: tables, data, and names that can be passed on."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from builders import manifests
from histories import gang_of_one

from history.model import MS, OutageRow, RowChanges
from history.store import HistoryStore

NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/default/pods"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
HOUR_MS = 3_600 * MS


def node(name: str, rack: str, **more: Any) -> Any:
    """A node of eight GPUs."""
    labels = {"rack": rack, "nvidia.com/gpu.product": "H100"}
    return manifests.node(name, gpus=8, cpu=4, memory="1Gi", labels=labels, **more)


def rows(text: str) -> list[list[str]]:
    """The cells of a table, which stand two blanks apart."""
    return [re.split(r"\s{2,}", line) for line in text.splitlines()]


@pytest.fixture
def nodes(lists: dict[str, list[Any]]) -> None:
    """Three nodes, of which two are alike; one has a pod of two GPUs, and one that has ended."""
    lists[NODES] = [node("n-0", "r1"), node("n-1", "r1"), node("n-2", "r2")]
    running, over = (
        manifests.pod(f"p-{phase}", node="n-2", phase=phase, limits={"nvidia.com/gpu": 2, "cpu": 1})
        for phase in ("Running", "Succeeded")
    )
    lists["/api/v1/pods"] = [running, over]


@pytest.mark.usefixtures("nodes")
@pytest.mark.parametrize(("options", "expected"), [
    ((), [["r1", "H100", "Free", "2", "8/8", "n-[0-1]"], ["r2", "H100", "Mixed", "1", "6/8", "n-2"]]),
    (("-o", "wide", "--rack=r1"), [["r1", "H100", "Free", "2", "8/8", "n-[0-1]"]]),
    (("-N", "--rack=r2", "--model=H100"), [["n-2", "r2", "H100", "Mixed", "6/8", "3", "1Gi", "1"]]),
])  # fmt: skip
def test_nodes_are_listed(muster: Any, options: tuple[str, ...], expected: list[list[str]]) -> None:
    """Those that are alike as one, or one by one; the heading stands above."""
    head, *found = rows(muster("nodes", *options).stdout)
    assert found == expected
    assert len(head) == len(expected[0])


@pytest.mark.usefixtures("nodes")
def test_nodes_are_data_and_names(muster: Any) -> None:
    """JSON, YAML, and names as kubectl takes them; with none there is a word on standard error."""
    found = json.loads(muster("nodes", "-o", "json", "--rack=r2").stdout)
    assert yaml.safe_load(muster("nodes", "-o", "yaml", "--rack=r2").stdout) == found
    [row] = found["nodes"]
    assert (row["name"], row["freeGpus"], row["freeCpu"], row["freeMemory"]) == ("n-2", 6.0, 3000, 2**30)
    assert muster("nodes", "-o", "name").stdout.split() == ["node/n-0", "node/n-1", "node/n-2"]
    none = muster("nodes", "--model=A100")
    assert (none.stdout, none.stderr.splitlines()[-1]) == ("", "No nodes found.")


def test_who_may_not_list_nodes_is_told_the_role(muster: Any) -> None:
    """And what shows the nodes of their own gangs."""
    told = muster("nodes", code=1).stderr
    assert "ask an administrator for the ClusterRole muster-view-cluster in a ClusterRoleBinding" in told


@pytest.fixture
def gangs(lists: dict[str, list[Any]]) -> None:
    """Two gangs of one JobSet that run, and a Job that has ended."""
    owner = manifests.owner("set", "JobSet", "jobset.x-k8s.io/v1alpha2", "u")
    lists[GROUPS] = [
        *(manifests.pod_group(f"set-{each}", 1, "default", queue="q", uid=each, owner=owner,
            phase="Running") for each in "ab"),
        manifests.pod_group("over", 1, "default", uid="o", owner=manifests.owner("old", "Job", "batch/v1", "j"),
            phase="Completed"),
    ]  # fmt: skip
    lists[PODS] = [
        manifests.pod(f"set-{each}-0", "default", node=f"n-{each}", phase="Running", gang=f"set-{each}", priority=3)
        for each in "ab"
    ]


@pytest.mark.usefixtures("gangs")
def test_gangs_are_listed(muster: Any) -> None:
    """What has ended only where that is asked for; `wide` adds the PodGroup."""
    head, *found = rows(muster("ps").stdout)
    assert head == ["NAME", "QUEUE", "STATE", "SIZE", "PRIORITY", "AGE", "START", "NODES", "REASON"]
    assert [[row[0], row[1], row[2], row[3], row[4], row[7]] for row in found] == [
        ["JobSet set (set-a)", "q", "Running", "1/1/1", "0", "n-a"],
        ["JobSet set (set-b)", "q", "Running", "1/1/1", "0", "n-b"],
    ]
    head, *found = rows(muster("ps", "-a", "-o", "wide").stdout)
    assert [(row[0], row[2], row[head.index("GANG")]) for row in found] == [
        ("Job old", "Completed", "over"),
        ("JobSet set (set-a)", "Running", "set-a"), ("JobSet set (set-b)", "Running", "set-b"),
    ]  # fmt: skip
    references = {row[head.index("WORKLOAD")].partition("/")[0] for row in found}
    assert references == {"job.batch", "jobset.jobset.x-k8s.io"}


@pytest.mark.usefixtures("gangs")
def test_gangs_of_a_user(lists: dict[str, Any], muster: Any) -> None:
    """The user is named, or is whoever asks; `wide` shows whose each gang is."""
    lists[GROUPS][0]["metadata"]["annotations"] = {"muster.dev/created-by": "anne"}
    head, *found = rows(muster("ps", "-o", "wide", "-a").stdout)
    assert sorted(row[head.index("USER")] for row in found) == ["-", "-", "anne"]
    assert len(rows(muster("ps", "-a", "--user=anne").stdout)) == 1 + 1
    assert "No gangs found" in muster("ps", "-a", "--user=bob").stderr
    assert muster("ps", "--mine", code=1).stderr.endswith("give it with --user\n")
    muster("ps", "--mine", "--user=bob", code=2)
    lists["/apis/authentication.k8s.io/v1/selfsubjectreviews"] = '{"status": {"userInfo": {"username": "anne"}}}'
    assert len(rows(muster("ps", "-a", "--mine").stdout)) == 1 + 1


@pytest.mark.usefixtures("gangs")
def test_gangs_are_data_and_names(muster: Any) -> None:
    """A workload of several gangs has one name; with none there is a word on standard error."""
    found = json.loads(muster("ps", "-o", "json").stdout)
    assert yaml.safe_load(muster("ps", "-o", "yaml").stdout) == found
    assert [(row["gang"], row["nodes"]) for row in found["gangs"]] == [("set-a", ["n-a"]), ("set-b", ["n-b"])]
    assert muster("ps", "-o", "name").stdout == "jobset.jobset.x-k8s.io/set\n"
    assert "No gangs found in default namespace." in muster("ps", "--queue=none").stderr


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A history of a gang that waited for an hour and ran for two, of one that was cancelled, and of a gap."""
    made = HistoryStore.for_writing(f"sqlite:///{tmp_path}/history.db")
    begin = round(time.time() * MS) - 24 * HOUR_MS
    ran = gang_of_one("default", "train", begin, 2 * HOUR_MS, bound=HOUR_MS, text="to queue research", user="=eve")
    for gang in ran.gangs.values():
        gang.started, gang.ended, gang.state = begin + HOUR_MS, begin + 3 * HOUR_MS, "Completed"
    left = gang_of_one("other", "tune", begin + 1, HOUR_MS, gpus=1, queue="small")
    left.holdings.clear()
    for gang in left.gangs.values():
        gang.ended, gang.state = begin + HOUR_MS, "Deleted"
    left.gaps = [OutageRow(since=begin, until=begin + 60_000, text="the recorder did not run")]
    for each in (ran, left, RowChanges()):
        made.write(each, {"seen-until": str(begin + 24 * HOUR_MS)})
    made.close()
    return f"--store=sqlite:///{tmp_path}/history.db"


def test_the_history_is_listed(muster: Any, store: str) -> None:
    """Of one namespace or of all, with what was not recorded on standard error."""
    result = muster("history", store)
    head, row = rows(result.stdout)
    del head[4], row[4]  # when it was submitted
    assert head == ["NAME", "QUEUE", "USER", "STATE", "WAITED", "RAN", "RESTARTS", "EVICTIONS", "GPU-HOURS", "NODES"]
    assert row == ["Job train", "research", "=eve", "Completed", "60m", "120m", "0", "0", "16.00", "node-of-default"]
    assert re.search(r"nothing was recorded from .* for 60s: the recorder did not run", result.stderr)
    head, *found = rows(muster("history", "-A", "--since=2d", store).stdout)
    assert [(row[0], row[1], row[6], row[7]) for row in found] == [
        ("other", "Job tune", "59m", "-"), ("default", "Job train", "60m", "120m"),
    ]  # fmt: skip
    assert [row[1] for row in rows(muster("ps", "--ended", "-A", "--queue=small", store).stdout)[1:]] == ["Job tune"]
    assert "No gangs found in that time in default namespace." in muster("history", "--since=1h", store).stderr
    assert [each["name"] for each in json.loads(muster("history", "-o", "json", store).stdout)["gangs"]] == ["train"]


def test_a_story_is_listed(muster: Any, store: str) -> None:
    """As `-o name` calls its workload, too; without one that is an error."""
    for name in ("train", "job.batch/train"):
        assert rows(muster("history", name, store).stdout)[1][1:] == ["-", "submitted", "-", "to queue research"]
    assert yaml.safe_load(muster("history", "train", "-o", "yaml", store).stdout)["story"][0]["what"] == "submitted"
    result = muster("history", "none", store, code=1).stderr
    assert "the history has no record of a workload 'none' in namespace default: `muster history -A` lists" in result
    result = muster("history", "train", "-n", "other", store, code=1).stderr
    assert "in namespace other; there is one in namespace default (-n)" in result
    assert "NAME and -A cannot be combined" in muster("history", "train", "-A", store, code=2).stderr


def test_usage_is_listed(muster: Any, store: str) -> None:
    """In hours, as a table, as data in seconds, and as CSV that no spreadsheet takes for formulas."""
    assert rows(muster("usage", "--by=namespace,queue", store).stdout) == [
        ["NAMESPACE", "QUEUE", "RESOURCE-HOURS", "ASKED", "HELD", "USED", "LOST"],
        ["default", "research", "nvidia.com/gpu", "24.00", "16.00", "16.00", "0.00"],
        ["other", "small", "nvidia.com/gpu", "1.00", "0.00", "0.00", "0.00"],
    ]
    assert muster("usage", "--by=user", "--queue=research", "-o", "csv", store).stdout.splitlines() == [
        "user,resource,asked_hours,held_hours,used_hours,lost_hours",
        "'=eve,nvidia.com/gpu,24.0000,16.0000,16.0000,0.0000",
    ]
    found = json.loads(muster("usage", "--by=user", "--namespace=default", "-o", "json", store).stdout)
    assert (found["by"], found["unit"], found["rows"][0]["key"]) == (["user"], "unit-seconds", ["=eve"])
    assert found["rows"][0]["resources"]["nvidia.com/gpu"]["held"] == 16 * 3600
    assert "Nothing was requested" in muster("usage", "--namespace=none", store).stderr
    assert "'team' is not a key; valid keys are queue, namespace" in muster("usage", "--by=team", store, code=2).stderr


@pytest.mark.parametrize(("command", "words"), [
    (["ps", "-w", "--start"], "--start and -w cannot be combined"),
    (["ps", "--ended", "-w"], "--ended cannot be combined with -w, --start or -o name"),
    (["ps", "--ended", "-o", "name"], "--ended cannot be combined with -w, --start or -o name"),
], ids=" ".join)  # fmt: skip
def test_what_does_not_go_together_is_refused(muster: Any, command: list[str], words: str) -> None:
    """With the reason."""
    assert words in muster(*command, code=2).stderr
