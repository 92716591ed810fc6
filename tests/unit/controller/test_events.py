"""What changes of pods and PodGroups mean."""

from typing import Any

import pytest
from builders import job, job_owner
from builders import pod as a_pod

from controller.job.rules.events import SYNC, group_changed, pod_changed, task_outcome
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.scheduling import PodGroup, PodGroupStatus


def pod(phase: str = "Running", *, node: str = "node-1", **more: Any) -> Pod:
    """A pod of task `w` of Job `n/j`."""
    annotations = {"volcano.sh/task-spec": "w", "volcano.sh/job-version": "2", **more.get("annotations", {})}
    ended = {"finishedAt": more["ended"]} if "ended" in more else {}
    statuses = [
        {"name": f"c{i}", "restartCount": more.get("restarts", 0), "state": {"terminated": {"exitCode": code} | ended}}
        for i, code in enumerate(more.get("exit_codes", [0]))
    ]
    told = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": more.get("told")}
    return a_pod(
        more.get("name", "j-w-0"),
        "n",
        uid=more.get("name", "p"),
        node=node,
        phase=phase,
        annotations=annotations,
        created="1970-01-01T00:01:40Z",
        deleted="1970-01-01T00:02:00Z" if more.get("deleting") else "",
        owner=job_owner("j", "u"),
        status={"containerStatuses": statuses, "conditions": [told] * ("told" in more)},
    )


EARLY, LATE = "1970-01-01T00:01:50Z", "1970-01-01T00:01:51Z"


@pytest.mark.parametrize(
    ("old", "new", "event"),
    [
        (None, pod("Pending", node=""), "PodPending"),
        (None, pod("Running"), "PodRunning"),
        (None, pod("Failed"), "PodFailed"),
        (pod("Running"), pod("Failed"), "PodFailed"),
        (pod("Pending"), pod("Running"), "PodRunning"),
        (pod("Running"), pod("Succeeded"), "TaskCompleted"),
        (pod("Running"), pod("Running", restarts=1), "TaskFailed"),
        (pod("Running"), None, "PodEvicted"),
        (pod("Failed", deleting=True), None, "PodEvicted"),
        (pod("Succeeded", deleting=True, told=LATE, ended=LATE), None, "PodEvicted"),  # within its grace
        (pod("Succeeded", deleting=True, told=EARLY, ended=LATE), None, "PodEvicted"),
        (pod("Succeeded", deleting=True, told=EARLY), None, "PodEvicted"),
    ],
)
def test_events(old: Pod | None, new: Pod | None, event: str) -> None:
    """What happened, by what the pod was and is."""
    assert pod_changed(old, new).event == event


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (pod("Running"), pod("Running")),
        (pod("Running", deleting=True), pod("Failed", deleting=True)),  # it fails because it is evicted
        (pod("Succeeded"), None),
        (pod("Succeeded", deleting=True, told=LATE, ended=EARLY), None),  # a drain takes those that are done, too
        (pod("Pending", node=""), None),
        (pod("Running", annotations={"volcano.sh/controller-out-of-sync": "true"}), None),
        (pod("Failed", annotations={"volcano.sh/controller-out-of-sync": "true"}), None),
    ],
)
def test_what_raises_no_policy(old: Pod, new: Pod | None) -> None:
    """Our own deletions, deletions that cost nothing, and the end of an evicted pod are mere syncs."""
    assert pod_changed(old, new) == SYNC


def test_request_tells_all() -> None:
    """Exit codes of all containers, version, task and pod are in the request; a pending pod tells since when."""
    request = pod_changed(pod("Running"), pod("Failed", exit_codes=[0, 3, 137]))
    assert (request.exit_codes, request.job_version, request.task, request.pod) == ((3, 137), 2, "w", "j-w-0")
    assert pod_changed(None, pod("Pending")).since_s == 101.0, "some time in second 100"


def test_task_is_completed_when_all_its_pods_succeeded() -> None:
    """One pod's success is not yet its task's; too many restarts are its failure."""
    of, done = job("j", {"w": 2}), [pod("Succeeded", name="a"), pod("Succeeded", name="b")]
    assert task_outcome(of, "w", done) == "TaskCompleted"
    assert task_outcome(of, "w", done[:1]) is None
    assert task_outcome(of, "w", [pod(restarts=1, name="a"), pod(restarts=2, name="b")]) == "TaskFailed"
    assert task_outcome(of, "w", [pod(restarts=2, name="a")]) is None
    assert task_outcome(of, "x", done) is None


def group(phase: str) -> PodGroup:
    """A PodGroup in this phase."""
    return PodGroup(metadata=ObjectMeta(uid="g"), status=PodGroupStatus(phase=phase))  # type: ignore[arg-type]  # phases as text


def test_group_events() -> None:
    """Only to become Unknown is an event; any other change of status is a sync, and the rest is nothing."""
    unknown = group_changed(group("Running"), group("Unknown"))
    assert unknown is not None
    assert (unknown.event, unknown.group_uid) == ("Unknown", "g")
    assert group_changed(group("Unknown"), group("Unknown")) is None
    assert group_changed(group("Pending"), group("Inqueue")) == SYNC
