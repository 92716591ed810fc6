"""`muster explain`, `snapshot` and `simulate` on a real control plane."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner
from gang_jobs import job
from planes import Muster
from tenants import bind, user

from muster.api.kubernetes.core import PODS
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from muster.kube.errors import Forbidden
from musterctl.app import main
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.alone]


@pytest.fixture
def two_gangs(client: Client, namespace: str, wait_for: Callable[..., Any]) -> Iterator[str]:
    """`first` runs on all eight nodes, `second` waits for three, with its pods behind their gates."""

    def running() -> bool:
        return client.get(JOBS, "first", namespace).status.running == 8

    def waiting() -> bool:
        groups = [group for group in client.list(POD_GROUPS, namespace) if group.metadata.name.startswith("second-")]
        pods = [pod for pod in client.list(PODS, namespace) if pod.metadata.name.startswith("second-")]
        return len(pods) == 3 and bool(groups) and bool(groups[0].status.conditions)

    wait_for(lambda: _idle(client), 60, "the nodes to be free")
    client.create(JOBS, job("first", namespace, replicas=8), namespace)
    wait_for(running, 30, "the first gang to run")
    client.create(JOBS, job("second", namespace, replicas=3), namespace)
    wait_for(waiting, 30, "the second gang to wait")
    yield namespace
    for name in ("first", "second"):
        client.delete(JOBS, name, namespace)


def _idle(client: Client) -> bool:
    return not any(pod.spec.node_name and not pod.finished for pod in client.list(PODS))


def test_a_waiting_gang_is_explained_by_its_condition(two_gangs: str, client: Client, muster: Muster) -> None:
    """Cause, numbers, and the gang that is in the way; found by the Job's name."""
    report = json.loads(muster("explain", "job", "second", "-n", two_gangs, "-o", "json"))
    assert (report["cause"], report["jobPhase"]) == ("no-room", "Pending")
    group = client.get(POD_GROUPS, report["gang"].partition("/")[2], two_gangs)
    [condition] = [each for each in group.status.conditions if each.type == "Unschedulable"]
    assert report["summary"] == f"it waits: {condition.message}"
    assert report["shortage"]["miss"] == {
        "pods": 3,
        "resource": "nvidia.com/gpu",
        "amount": 8000,
        "wholeNodes": True,
        "levels": [],
    }
    assert report["podSets"][0]["gated"] == 3
    first = next(each for each in client.list(POD_GROUPS, two_gangs) if each.metadata.name.startswith("first-"))
    assert [each["names"] for each in report["relief"] if each["kind"] == "ends"] == [[first.metadata.key]]


def test_a_gated_pod_and_a_running_gang_are_explained(two_gangs: str, muster: Muster) -> None:
    """In lines, without colour, as nobody looks at a terminal."""
    pod = muster("explain", "pod", "second-worker-0", "-n", two_gangs)
    assert "the pod waits behind the gate muster.dev/gang until its gang has a placement" in pod
    assert "slot           worker 0" in pod
    gang = muster("explain", "job", "first", "-n", two_gangs)
    assert "it runs: 8 members have their node, 8 of them run" in gang
    assert "on             worker: node-0000, node-0001" in gang


def test_names_that_do_not_exist_are_answered_with_near_ones(two_gangs: str, muster: Muster) -> None:
    """With exit code 1."""
    assert "near names: second" in muster("explain", "job", "secnod", "-n", two_gangs, code=1)


def test_a_snapshot_explains_as_the_cluster_does(two_gangs: str, muster: Muster, tmp_path: Path) -> None:
    """The same report, to the last word, for the gang that waits and the one that runs."""
    file = tmp_path / "snapshot.json.gz"
    muster("snapshot", "-o", str(file))
    for name in ("first", "second"):
        arguments = ("explain", "job", name, "-n", two_gangs, "-o", "json")
        live = json.loads(muster(*arguments))
        offline = json.loads(CliRunner().invoke(main, [*arguments, "--snapshot", str(file)]).output)
        for report in (live, offline):
            report["placement"] = report["placement"] and report["placement"] | {"leftS": 0}
        assert offline == live


def test_simulating_changes_nothing(two_gangs: str, plane: Plane, client: Client, tmp_path: Path) -> None:
    """It has the rights of somebody who may read only: one write would be refused, and end it."""
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(job("third", two_gangs, replicas=2)))
    subject, reader = user(plane, two_gangs, tmp_path, "reader")
    bind(plane, "muster-view-cluster", subject, everywhere=True)
    with pytest.raises(Forbidden):
        Client.load(reader).delete(JOBS, "second", two_gangs)
    arguments = ("simulate", "-f", str(file), "-n", two_gangs)
    muster = Muster(reader)
    assert "would wait" in muster(*arguments)
    changed = muster(
        *arguments, "--without", "first", "--cordon", "node-0007", "--add-nodes", "2", "--like", "node-0000"
    )
    lines = changed.splitlines()
    assert "on             worker: node-0000, node-0000-new-1, node-0000-new-2" in lines
    assert "on             worker: node-0001, node-0002" in lines
    muster("explain", "job", "second", "-n", two_gangs)
    assert {one.metadata.name for one in client.list(JOBS, two_gangs)} == {"first", "second"}


def test_what_is_simulated_is_what_happens(
    client: Client, namespace: str, muster: Muster, tmp_path: Path, wait_for: Callable[..., Any]
) -> None:
    """The placement is the one that was foretold."""
    wait_for(lambda: _idle(client), 60, "the nodes to be free")
    content = job("told", namespace, replicas=10, gpus=3)
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(content))
    [outcome] = json.loads(muster("simulate", "-f", str(file), "-n", namespace, "-o", "json"))["gangs"]
    assert outcome["placed"]
    client.create(JOBS, content, namespace)
    placement = wait_for(lambda: next(iter(client.list(PLACEMENTS, namespace)), None), 30, "the placement")
    assert msgspec.to_builtins(placement.spec.pod_sets) == outcome["podSets"]
    client.delete(JOBS, "told", namespace)
