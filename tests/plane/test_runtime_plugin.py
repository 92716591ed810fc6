"""A runtime plugin of another package, installed by pip: refusals, variables, an object of its own kind, an end."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from train_jobs import TrainStory, train_job

from muster.api.base import Resource
from muster.api.volcano.batch import JOBS
from muster.kube.errors import Forbidden, NotFound
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.long]
WaitFor = Callable[..., Any]
JSON = dict[str, Any]
EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "runtime-plugin-example"
BUDGETS: Resource[JSON] = Resource("example.com", "v1", "budgets", "Budget", JSON)
HOURS = "example.com/budget-hours"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's package, in a folder of its own."""
    folder = tmp_path_factory.mktemp("site")
    source = folder / "source"
    source.mkdir()
    for file in ("pyproject.toml", "budget_plugin.py"):  # pip builds beside the source
        (source / file).write_text((EXAMPLE / file).read_text())
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, f"--target={folder / 'lib'}", source], check=True)
    return folder / "lib"


@pytest.fixture(scope="module")
def extended(module_plane: Callable[..., Plane], installed: Path) -> Iterator[Plane]:
    """A plane whose webhook and controller find the plugin, with the rights that it brings."""
    plane = module_plane()
    assert plane.kubectl("apply", f"--filename={EXAMPLE / 'cluster.yaml'}").returncode == 0
    with pytest.MonkeyPatch.context() as patched:
        path = os.environ.get("PYTHONPATH")
        patched.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(installed), path))))
        for part in ("webhook", "controller"):
            plane.part(part).kill()
            plane.part(part).start()
        plane.mend()
        yield plane


@pytest.fixture
def story(extended: Plane) -> Iterator[TrainStory]:
    """TrainJobs of the default namespace."""
    with contextlib.closing(extended.client()) as client, TrainStory(client, "default") as one:
        yield one


def budgeted(name: str, hours: str) -> JSON:
    """A TrainJob with a budget that runs until it is stopped."""
    made = train_job(name, nodes=2)
    made["metadata"]["annotations"] = {HOURS: hours}
    return made


def test_its_refusals(story: TrainStory) -> None:
    """With the field, as Muster's own."""
    with pytest.raises(Forbidden) as refused:
        story.create(budgeted("t", "plenty"))
    assert f'metadata.annotations[{HOURS}]: Invalid value: "plenty": must be a number of hours' in str(refused.value)


def test_from_its_object_to_its_end(story: TrainStory, wait_for: WaitFor) -> None:
    """The pods know the budget; the object is kept as it should be; its status ends the TrainJob."""
    client = story.client
    story.create(budgeted("t", "40"))
    made = wait_for(lambda: next(iter(client.list(BUDGETS, "default")), None), 60)
    assert (made["metadata"]["name"], made["spec"]) == ("t", {"hours": 40})
    assert made["metadata"]["ownerReferences"][0]["kind"] == "TrainJob"
    wait_for(lambda: story.counts("t", "node")[-1:] == [{"active": 1, "ready": 1}], 60)
    [container] = client.get(JOBS, "t", "default").spec.tasks[0].template["spec"]["containers"]
    assert {"name": "BUDGET_HOURS", "value": "40"} in container["env"]

    client.merge_patch(BUDGETS, "t", {"spec": {"hours": 4000}}, "default")
    wait_for(lambda: client.get(BUDGETS, "t", "default")["spec"]["hours"] == 40, what="the change to be undone")
    client.delete(BUDGETS, "t", "default")
    again = wait_for(lambda: next(iter(client.list(BUDGETS, "default")), None), what="it to come back")
    assert again["metadata"]["uid"] != made["metadata"]["uid"]

    client.merge_patch(BUDGETS, "t", {"status": {"spent": True}}, "default", subresource="status")
    wait_for(lambda: story.held("t") == [("Failed", "True", "BudgetSpent")], what="its end")
    assert story.conditions("t")[0].message == "its budget of 40 hours is spent"
    wait_for(lambda: story.events("BudgetSpent"), what="its event, which is written beside")
    wait_for(lambda: gone(story), what="its pods to go")


def gone(story: TrainStory) -> bool:
    """Whether the Job of the TrainJob is deleted."""
    try:
        story.client.get(JOBS, "t", "default")
    except NotFound:
        return True
    return False


def test_without_a_budget(story: TrainStory, wait_for: WaitFor) -> None:
    """Other TrainJobs go on as ever."""
    story.create(train_job("plain", run_s=1))
    wait_for(lambda: story.held("plain") == [("Complete", "True", "AllJobsCompleted")], 60)
