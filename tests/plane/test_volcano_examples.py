"""Every file in examples/volcano runs to the end that its first lines promise."""

import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jobs import Story

from muster.api.volcano.batch import JOBS
from muster.kube.errors import NotFound
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane
WaitFor = Callable[..., Any]

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "volcano"
FILES = sorted(FOLDER.glob("*.yaml"))
_JOB = re.compile(r"^# Job: (?P<name>\S+)", re.MULTILINE)
"""The Job, where it is not named as its file."""
_ENDS = re.compile(r"^# Ends: (?P<phase>\w+)(?: \((?P<succeeded>\d+) pods? succeeded\))?", re.MULTILINE)

RUNS = {
    "restart": {"worker-0": 2, "worker-1": 2},
    "policies": {"server-0": 1, "server-1": 1, "worker-0": 1},
    "depends-on": {"prepare-0": 1, "train-0": 1, "train-1": 1, "watch-0": 1},
    "plugin-mpi": {"master-0": 1, "worker-0": 1, "worker-1": 1},
}
"""How often the pods of some examples ran."""

RESTARTED_PARTITIONS = {f"partition-worker-{number}" for number in range(4)}
"""Pods of two partitions that fail at the same time: one restart, or one for each, as it happens."""


@pytest.fixture(scope="module")
def story(shared_plane: Plane) -> Iterator[Story]:
    """All examples, submitted at once into one namespace."""
    namespace = f"test-{uuid.uuid4().hex[:8]}"
    assert shared_plane.kubectl("create", "namespace", namespace).returncode == 0
    files = [f"--filename={file}" for file in FILES]
    with Story(shared_plane.client(), namespace) as one:
        made = shared_plane.kubectl("create", f"--namespace={namespace}", *files)
        try:
            assert made.returncode == 0, made.stderr
            yield one
        finally:
            for what in (
                "queue/example-vision",
                "queue/example-language",
                "queue/example-research",
                "pv/muster-example",
            ):
                shared_plane.kubectl("delete", what, "--wait=false")
            shared_plane.kubectl("delete", "namespace", namespace, "--wait=false")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_example(story: Story, wait_for: WaitFor, file: Path) -> None:
    """The phase, how many pods succeeded, and how often pods ran."""
    text = file.read_text(encoding="utf-8")
    promise, named = _ENDS.search(text), _JOB.search(text)
    assert promise, f"{file.name} does not say how it ends"
    name = named["name"] if named else file.stem
    if promise["phase"] == "deleted":
        wait_for(lambda: gone(story, name), what=f"{name} is deleted")
        assert story.phases(name)[-1] == "Completed"
        return
    wait_for(lambda: story.phases(name)[-1:] == [promise["phase"]], what=f"{name}: {promise[0]}")
    if promise["succeeded"]:
        assert story.job(name).status.succeeded == int(promise["succeeded"])
    for pod, runs in RUNS.get(name, {}).items():
        assert len(story.ran.get(f"{name}-{pod}", ())) == runs, pod
    if name == "partition":
        assert len(story.ran["partition-steady-0"]) == 1
        assert max(len(story.ran[pod]) for pod in RESTARTED_PARTITIONS) in {2, 3}


def gone(story: Story, name: str) -> bool:
    """Whether there is no such Job any more."""
    try:
        story.client.get(JOBS, name, story.namespace)
    except NotFound:
        return name in story.statuses
    return False
