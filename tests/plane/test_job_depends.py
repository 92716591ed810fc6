"""Tasks that wait for others, as members of one gang."""

from collections.abc import Callable
from typing import Any

import pytest
from jobs import Story, job, policy, task

from muster.api.muster.gang import later_tasks
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup

pytestmark = pytest.mark.plane
WaitFor = Callable[..., Any]


def group_of(story: Story, name: str) -> PodGroup:
    """The PodGroup of a Job as it is."""
    made = story.job(name)
    return story.client.get(POD_GROUPS, f"{name}-{made.metadata.uid}", story.namespace)


def test_a_gang_counts_what_can_exist(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """With the usual minimums: the first task starts as a gang of its own, the second one is a member once it runs."""
    second = task("second", 2, dependsOn={"name": ["first"]})
    story.create(job("j", namespace, task("first", 2), second, policies=[policy("AbortJob", "Unknown")]))
    wait_for(lambda: story.job("j").status.running == 4)
    assert list(story.pods)[:2] in (["j-first-0", "j-first-1"], ["j-first-1", "j-first-0"])
    wait_for(lambda: group_of(story, "j").spec.min_member == 4)
    group = group_of(story, "j")
    assert group.spec.min_task_member == {"first": 2, "second": 2}
    assert not later_tasks(group.metadata)
    assert story.phases("j") == ["Pending", "Running"]


def test_a_task_that_waits_for_room_is_not_missed(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """The second task fits nowhere: the first one runs on, nothing is taken for a failure, and the Job says why."""
    second = task("second", 1, dependsOn={"name": ["first"]})
    second["template"]["spec"]["nodeSelector"] = {"no": "where"}
    story.create(job("j", namespace, task("first", 2), second, policies=[policy("AbortJob", "*")]))
    wait_for(lambda: "j-second-0" in story.pods)
    wait_for(lambda: group_of(story, "j").status.running == 2)
    group = group_of(story, "j")
    assert (group.spec.min_member, later_tasks(group.metadata)) == (2, {"second"})
    assert group.status.phase == "Running"
    wait_for(lambda: story.job("j").status.state.reason == "Unschedulable")
    assert story.phases("j") == ["Pending"]


def test_scaled_while_waiting(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """A task that does not exist yet may grow; all its pods come."""
    story.create(job("j", namespace, task("first", 1), task("second", 1, dependsOn={"name": ["first"]})))
    story.client.json_patch(
        JOBS,
        "j",
        [
            {"op": "replace", "path": "/spec/tasks/1/replicas", "value": 3},
            {"op": "replace", "path": "/spec/tasks/1/minAvailable", "value": 3},
            {"op": "replace", "path": "/spec/minAvailable", "value": 4},
        ],
        namespace,
    )
    wait_for(lambda: {f"j-second-{index}" for index in range(3)} <= set(story.ran))
