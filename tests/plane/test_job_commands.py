"""Commands to a Job, and what becomes of them and of a start when the controller is killed."""

from collections.abc import Callable
from typing import Any

import pytest
from jobs import Story, command, job, task
from leases import start_at_once

from muster.api import names
from muster.api.volcano.batch import COMMANDS
from muster.api.volcano.scheduling import POD_GROUPS
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane
WaitFor = Callable[..., Any]


def test_commands_suspend_and_resume(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """Suspended and resumed, ten times: the Job runs, no retry is used up, the Commands are gone."""
    made = story.create(job("j", namespace, task("w", 3)))
    for _ in range(10):
        wait_for(lambda: story.phase("j") == "Running")
        story.client.create(COMMANDS, command("AbortJob", made), namespace)
        wait_for(lambda: story.phase("j") == "Aborted")
        assert not story.alive()
        story.client.create(COMMANDS, command("ResumeJob", made), namespace)
    wait_for(lambda: story.phase("j") == "Running")
    once = ["Pending", "Running", "Aborting", "Aborted", "Restarting"]
    assert story.phases("j") == [*once * 10, "Pending", "Running"]
    assert story.most_terminating("j", "Aborting") == 3
    assert story.job("j").status.retry_count == 0
    wait_for(lambda: not story.client.list(COMMANDS, namespace))


@pytest.mark.parametrize(("action", "phases"), [
    ("TerminateJob", ["Terminating", "Terminated"]),
    ("CompleteJob", ["Completing", "Completed"]),
    ("RestartJob", ["Restarting", "Pending", "Running"]),
])  # fmt: skip
def test_commands(story: Story, namespace: str, wait_for: WaitFor, action: str, phases: list[str]) -> None:
    """Each action as a Command, seen in every phase; one to an earlier Job and one that nobody knows are dropped."""
    made = story.create(job("j", namespace, task("w", 2)))
    wait_for(lambda: story.phase("j") == "Running")
    story.client.create(COMMANDS, command("AbortJob", made, uid="another"), namespace)
    story.client.create(COMMANDS, command("Dance", made), namespace)
    story.client.create(COMMANDS, command(action, made), namespace)
    wait_for(lambda: story.phases("j") == ["Pending", "Running", *phases])
    assert story.most_terminating("j", phases[0]) == 2
    if phases[-1] != "Running":
        status = story.job("j").status
        assert status.pending == status.running == status.terminating == 0
    wait_for(lambda: not story.client.list(COMMANDS, namespace))
    words = wait_for(lambda: len(story.events("CommandIssued")) >= 3 and " ".join(story.events("CommandIssued")))
    assert "earlier Job" in words
    assert "unknown action 'Dance'" in words


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("moment", ["submitted", "pending", "group", "pod"])
def test_the_controller_is_killed(plane: Plane, story: Story, namespace: str, wait_for: WaitFor, moment: str) -> None:
    """Kill -9 before, between and after the writes of a start: the Job ends right, and no slot is taken twice."""
    made = story.create(job("j", namespace, task("w", 12, run_s=0.5)))
    moments: dict[str, Callable[[], bool]] = {
        "submitted": lambda: True,
        "pending": lambda: "Pending" in story.phases("j"),
        "group": lambda: not story.gone(POD_GROUPS, f"j-{made.metadata.uid}"),
        "pod": lambda: "j-w-0" in story.pods,
    }
    wait_for(moments[moment])
    kill_and_start(plane)
    wait_for(lambda: story.phase("j") == "Completed")
    assert [len(story.ran[f"j-w-{i}"]) for i in range(12)] == [1] * 12
    assert story.phases("j") == ["Pending", "Running", "Completed"]


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("action", ["AbortJob", "RestartJob"])
def test_the_controller_is_killed_in_it(
    plane: Plane, story: Story, namespace: str, wait_for: WaitFor, action: str
) -> None:
    """Kill -9 as soon as the action shows in the status: it is completed after the start, and counted once."""
    made = story.create(job("j", namespace, task("w", 12)))
    wait_for(lambda: story.phase("j") == "Running")
    story.client.create(COMMANDS, command(action, made), namespace)
    wait_for(lambda: len(story.phases("j")) > 2, what="the phase that the action enters")
    kill_and_start(plane)
    end = "Aborted" if action == "AbortJob" else "Running"
    wait_for(lambda: story.phases("j")[-1] == end and story.phase("j") == end)
    wait_for(lambda: not story.client.list(COMMANDS, namespace))
    status = story.job("j").status
    assert (status.version, status.retry_count) == (1, 0 if action == "AbortJob" else 1)
    assert len(story.alive()) == (0 if action == "AbortJob" else 12)


def kill_and_start(plane: Plane) -> None:
    """Kills the controller and starts another, whose dead predecessor's lease is up at once."""
    plane.part("controller").kill()
    start_at_once(plane, "controller", names.CONTROLLER_LEASE)
