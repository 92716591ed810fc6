"""`muster job` and `muster queue` on a real plane, with kubectl's habits."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from jobs import Story, job, task
from planes import Muster, drop_queue

from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import QUEUES
from muster.kube.client import Client
from musterctl.app import main
from musterctl.cluster import JSON
from musterctl.options import documents
from musterctl.output.listing import Column, Listing
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane
WaitFor = Callable[..., Any]


def test_a_job_from_run_to_delete(plane: Plane, namespace: str, muster: Muster, wait_for: WaitFor) -> None:
    """Submitted, listed, viewed, suspended, resumed and deleted."""
    space = f"--namespace={namespace}"
    limits = ("--requests=cpu=100m", "--queue=default")
    assert "job.batch.volcano.sh/train created" in muster(
        "job", "run", "train", space, "--image=none", "--replicas=2", *limits, "--", "python", "train.py"
    )
    with Story(plane.client(), namespace) as story:
        wait_for(lambda: story.phase("train") == "Running")
        wait_for(lambda: story.job("train").status.running == 2)
        lines = muster("job", "list", space).splitlines()
        assert lines[0].split() == [
            "NAME",
            "STATUS",
            "MINAVAILABLE",
            "PENDING",
            "RUNNING",
            "SUCCEEDED",
            "FAILED",
            "AGE",
        ]
        assert lines[1].split()[:5] == ["train", "Running", "2", "0", "2"]
        assert "QUEUE" in muster("job", "list", space, "-o", "wide")
        assert f"{namespace} " in muster("job", "list", "-A")
        shown = muster("job", "view", "train", space)
        for words in (
            "Phase:      Running",
            "worker: 2 wanted, 2 Running",
            "train-worker-0: Running on",
            "Gang:       Running",
        ):
            assert words in shown
        assert "is held: it leaves its queue" in muster("job", "suspend", "train", space)
        wait_for(lambda: story.phase("train") == "Aborted")
        muster("job", "resume", "train", space)
        wait_for(lambda: story.phase("train") == "Running")
        assert "job.batch.volcano.sh/train is deleted with its pods" in muster("job", "delete", "train", space)
        wait_for(lambda: not story.client.list(JOBS, namespace))
    assert "No resources found" in muster("job", "list", space)


def test_objects_come_whole(plane: Plane, namespace: str, muster: Muster) -> None:
    """JSON and YAML are what the API server has; a manifest is submitted as it is."""
    muster("job", "run", "-f", "-", stdin=yaml.safe_dump(job("j", namespace, task("w", 1))))
    found = json.loads(muster("job", "list", f"--namespace={namespace}", "-o", "json"))["items"]
    assert [one["metadata"]["name"] for one in found] == ["j"]
    assert {"uid", "resourceVersion"} <= set(found[0]["metadata"])
    assert "managedFields" not in found[0]["metadata"]
    viewed = yaml.safe_load(muster("job", "view", "j", f"--namespace={namespace}", "-o", "yaml"))
    assert viewed["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["name"] == "main"
    assert muster("job", "list", f"--namespace={namespace}", "-o", "name") == "job.batch.volcano.sh/j\n"
    plane.client().delete(JOBS, "j", namespace)


def test_the_namespace_is_that_of_the_context(plane: Plane, namespace: str, muster: Muster, tmp_path: Path) -> None:
    """Without -n, as with kubectl."""
    content = yaml.safe_load(plane.kubeconfig.read_text())
    content["contexts"][0]["context"]["namespace"] = namespace
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(content))
    made = CliRunner().invoke(main, ["job", "run", "here", "--image=none", f"--kubeconfig={file}"])
    assert made.exit_code == 0, made.output
    assert "job.batch.volcano.sh/here" in muster("job", "list", f"--namespace={namespace}", "-o", "name")
    assert "no job.batch.volcano.sh/here in namespace default" in muster("job", "view", "here", code=1)


def test_what_is_missing_is_said(namespace: str, muster: Muster) -> None:
    """A Job or queue that is not there, and a Job without an image."""
    assert f"there is no job.batch.volcano.sh/x in namespace {namespace}" in muster(
        "job", "suspend", "x", f"--namespace={namespace}", code=1
    )
    assert "there is no queue.scheduling.volcano.sh/x" in muster("queue", "close", "x", code=1)
    assert "give a NAME and --image" in muster("job", "run", "x", code=2)
    assert "is not of the form resource=amount" in muster("queue", "create", "x", "--capability=cpu", code=2)


ODD = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: odd}
spec:
  {no: a, y: b, 1: c, 1.5: d, 1e30: e, 2001-01-01: f, "on": g, base: &base {a: 1}, merged: {<<: *base, c: 2},
   values: [y, n, NO, on, Off, nO, True, 010, 0o10, 0x1f, 0b11, 08, 1_000, 1:30, 10:30:15, 1e3, .5, 1., +1, -0, 1_0.5,
            =, ~, 2001-01-01, 2001-01-01 10:00:00, "no", 123456789012345678901234567890, 1e400, 0x,
            _1, ., !!binary aGk=]}
---
---
apiVersion: v1
kind: List
items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: listed}}]
---
"""
EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples" / "volcano").glob("*.yaml"))


def test_manifests_are_read_as_kubectl_reads_them(plane: Plane, tmp_path: Path) -> None:
    """Its own client-side dry run says how: for every example, and for all that YAML leaves open."""
    odd = tmp_path / "odd.yaml"
    odd.write_text(ODD)
    for file in (*EXAMPLES, odd):
        run = plane.kubectl("create", "--dry-run=client", "--validate=false", "--output=json", f"--filename={file}")
        assert run.returncode == 0, run.stderr
        ours = [json.dumps(each, sort_keys=True) for each in documents(str(file))]
        theirs = [json.dumps(_without_namespace(each), sort_keys=True) for each in _objects(run.stdout)]
        assert ours == theirs, file.name


def _objects(text: str) -> list[Any]:
    """JSON objects, one after the other."""
    decoder, objects, rest = json.JSONDecoder(), list[Any](), text.strip()
    while rest:
        found, end = decoder.raw_decode(rest)
        objects += found["items"] if found["kind"] == "List" else [found]
        rest = rest[end:].strip()
    return objects


def _without_namespace(content: Any) -> Any:
    """Kubectl fills in the namespace of the context."""
    metadata = {name: value for name, value in content["metadata"].items() if name != "namespace"}
    return {**content, "metadata": metadata}


def test_a_file_of_several_objects(plane: Plane, namespace: str, muster: Muster) -> None:
    """All are created in their order, whatever they are, and the Job is renamed; what exists is an error."""
    name, client = f"{namespace}-q", plane.client()
    queue = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": {"parent": "root"}}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "b"}}
    text = yaml.safe_dump_all([queue, config, job("j", namespace, task("w", 1), queue=name)]) + "---\n"
    try:
        created = muster("job", "run", "renamed", "-f", "-", f"--namespace={namespace}", stdin=text).splitlines()
        assert created == [f"queue.scheduling.volcano.sh/{name} created", "configmap/settings created",
                           "job.batch.volcano.sh/renamed created"]  # fmt: skip
        again = muster("job", "run", "-f", "-", f"--namespace={namespace}", stdin=text, code=1)
        assert f'cannot create queue.scheduling.volcano.sh/{name}: queues.scheduling.volcano.sh "{name}"' in again
        assert "job.batch.volcano.sh/j created" in again
        assert "is in namespace" in muster("job", "run", "-f", "-", "--namespace=other", stdin=text, code=2)
        muster("job", "delete", "j", "renamed", f"--namespace={namespace}")
    finally:
        drop_queue(client, name)


def test_creations_are_strict_and_warn(namespace: str, muster: Muster) -> None:
    """As with kubectl: unknown fields are refused, and what admission warns of is shown."""
    manifest = job("j", namespace, task("w", 1), plugins={"ssh": ["--no-root"]})
    shown = muster("job", "run", "-f", "-", stdin=yaml.safe_dump(manifest))
    assert re.match(r"Warning: .*unknown flag no-root is ignored.*\njob.batch.volcano.sh/j created\n$", shown)
    manifest["spec"]["minAvailabel"] = 1
    assert 'unknown field "spec.minAvailabel"' in muster(
        "job", "run", "-f", "-", stdin=yaml.safe_dump(manifest), code=1
    )
    missing = muster("job", "delete", "no", "j", "never", f"--namespace={namespace}", code=1)
    for words in (
        "/j is deleted with its pods",
        "there is no job.batch.volcano.sh/no ",
        "there is no job.batch.volcano.sh/never ",
    ):
        assert words in missing


class _EndOfWatchError(Exception):
    """The last line that the test waits for was shown."""


class _Phases:
    """Notes the phase of each Job that is printed, as a column, and ends with the Job."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def of(self, obj: JSON) -> str:
        phase = str(obj.get("status", {}).get("state", {}).get("phase", ""))
        if phase not in self.seen:
            self.seen.append(phase)
        if phase == "Completed":
            raise _EndOfWatchError
        return phase


def test_a_watch_shows_changes(client: Client, namespace: str) -> None:
    """After the list come the changes."""
    client.create(JOBS, job("j", namespace, task("w", 1, run_s=1)), namespace)
    phases = _Phases()
    listing = Listing(JOBS, [Column("STATUS", phases.of)], "table")
    with pytest.raises(_EndOfWatchError):
        listing.show(client, namespace, "", watch=True)
    assert phases.seen[-2:] == ["Running", "Completed"]


def test_a_queue_from_create_to_close(client: Client, namespace: str, muster: Muster, wait_for: WaitFor) -> None:
    """Created with amounts, listed, viewed, closed and opened."""
    name = f"{namespace}-q"
    limits = ("--capability=cpu=8", "--capability=nvidia.com/gpu=4")
    muster("queue", "create", name, "--weight=3", *limits, "--namespace-selector=team=vision")
    try:
        assert client.get(QUEUES, name).spec.capability == {"cpu": "8", "nvidia.com/gpu": "4"}
        wait_for(lambda: client.get(QUEUES, name).status.state == "Open")
        row = next(line.split() for line in muster("queue", "list").splitlines() if line.startswith(name))
        assert row[1:4] == ["Open", "root", "3"]
        assert "Capability:  cpu=8,nvidia.com/gpu=4" in muster("queue", "view", f"queue.scheduling.volcano.sh/{name}")
        assert "Namespaces:  team=vision" in muster("queue", "view", name)
        assert "team=vision" in muster("queue", "list")
        assert "not a condition on a label" in muster("queue", "create", "x", "--namespace-selector=a b", code=2)
        assert "the root queue cannot be closed" in muster("queue", "close", "root", code=1)
        assert "CloseQueue asked for" in muster("queue", "close", name)
        wait_for(lambda: client.get(QUEUES, name).status.state == "Closed")
        wait_for(lambda: "Normal CloseQueue: Command" in muster("queue", "view", name))
        muster("queue", "open", name)
        wait_for(lambda: client.get(QUEUES, name).status.state == "Open")
    finally:
        drop_queue(client, name)
