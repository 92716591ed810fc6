"""A crash loop ends by its budget, whoever counts it, and what the infrastructure does is free."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from gang_jobs import job
from leases import start_at_once
from train_jobs import EXIT, TrainStory, train_job

from muster.api import names
from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.alone]
WaitFor = Callable[..., Any]


@pytest.fixture
def client(plane: Plane, namespace: str) -> Iterator[Client]:
    """A client; afterwards the namespace's Jobs are gone and everything runs."""
    with contextlib.closing(plane.client()) as client:
        yield client
        plane.mend()
        for one in client.list(JOBS, namespace):
            client.delete(JOBS, one.metadata.name, namespace)


def budgeted(name: str, namespace: str, budget: str, run_s: float | None, code: int = 0) -> dict[str, Any]:
    """A Job of one pod that is restarted whatever happens to it, with a budget."""
    manifest = job(name, namespace, replicas=1, gpus=0, run_s=run_s)
    manifest["metadata"]["annotations"] = {names.RESTART_BUDGET: budget}
    manifest["spec"] |= {
        "queue": "default",
        "maxRetry": 100,
        "policies": [{"event": event, "action": "RestartJob"} for event in ("PodFailed", "PodEvicted")],
    }
    if code:
        manifest["spec"]["tasks"][0]["template"]["metadata"]["annotations"][EXIT] = str(code)
    return manifest


def test_a_crash_loop_ends_by_its_budget(plane: Plane, client: Client, namespace: str, wait_for: WaitFor) -> None:
    """Two restarts, also with a controller that is killed between them; the reason names budget and exits."""
    client.create(JOBS, budgeted("loop", namespace, "2 in 1h", 1.0, 3), namespace)
    wait_for(lambda: client.get(JOBS, "loop", namespace).status.retry_count, 60, "the first restart")
    plane.part("controller").kill()
    start_at_once(plane, "controller", names.CONTROLLER_LEASE)
    wait_for(lambda: client.get(JOBS, "loop", namespace).status.state.phase == "Failed", 120, "the end")
    status = client.get(JOBS, "loop", namespace).status
    assert (status.state.reason, status.retry_count) == ("RestartBudgetSpent", 2)
    told = "the restart budget (2 in 1h) is spent, and the Job failed once more: exit code 3 (3 times)"
    assert status.state.message.startswith(told)


def test_a_train_job_has_the_budget_of_its_gang(client: Client, namespace: str, wait_for: WaitFor) -> None:
    """It fails as after too many restarts."""
    with TrainStory(client, namespace) as story:
        manifest = train_job("t", run_s=1, exit_code=3)
        manifest["metadata"]["annotations"] = {names.RESTART_BUDGET: "1 in 1h"}
        story.create(manifest)
        wait_for(lambda: story.held("t") == [("Failed", "True", "ReachedMaxRestarts")], 120, "its end")
        [ended] = [each for each in story.get("t").status.conditions if each.type == "Failed"]
        assert "the restart budget (1 in 1h) is spent" in ended.message
