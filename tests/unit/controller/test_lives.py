"""CronJobs, JobFlows and Jobs from beginning to end, by the whole controller on an API server in memory."""

import time
from concurrent.futures import CancelledError
from typing import Any

import pytest
from builders import manifests
from settled_world import Settled

from controller.flow.controller import FIRST_S
from muster.api.kubeflow.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from muster.api.kubernetes.core import PODS
from muster.api.volcano.batch import COMMANDS, JOBS
from muster.api.volcano.cron import CRON_JOBS
from muster.api.volcano.flow import JOB_FLOWS, JOB_TEMPLATES
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.errors import Forbidden

FINALIZER = "trainer.kubeflow.org/resource-in-use"
TASKS: dict[str, Any] = {"tasks": [manifests.task("w", 1)], "minAvailable": 1}
CRON = "merge_patch CronJob c"
FIRST, SECOND = "c-30000010", "c-30000020"


def cron(**spec: Any) -> Settled:
    """A CronJob `c` that makes a Job each ten minutes; the clock stands at such a time."""
    world = Settled()
    spec = {"schedule": "*/10 * * * *", "timeZone": "Etc/UTC", "jobTemplate": {"spec": TASKS}, **spec}
    world.api.add(CRON_JOBS, {"metadata": {"name": "c"}, "spec": spec})
    world.settle()
    return world


def active(world: Settled) -> list[str]:
    """The Jobs that the CronJob's status lists."""
    return [each.name for each in world.one(CRON_JOBS, "c").status.active]


def end(world: Settled, phase: str = "Succeeded", exit_code: int = 0) -> None:
    """All pods run, and end."""
    world.pods("Running")
    world.settle(1.0)
    world.pods(phase, exit_code)
    world.settle(1.0)


def test_jobs_of_a_schedule() -> None:
    """One at each time, never before; the status has the times."""
    world = cron()
    assert world.acts(599.0) == []
    assert world.acts(1.1) == [f"create Job {FIRST}", CRON]
    assert world.told() == [f"Normal SuccessfulCreate: made Job {FIRST}"]
    assert active(world) == [FIRST]
    end(world)
    status = world.one(CRON_JOBS, "c").status
    assert (status.active, status.last_schedule_time) == ([], "2027-01-15T08:10:00Z")
    assert status.last_successful_time == "2027-01-15T08:10:02Z"
    assert world.acts(600.0) == [f"create Job {SECOND}", CRON]


@pytest.mark.parametrize(("policy", "acts", "listed", "event"), [
    ("Forbid", [], [FIRST], f"Normal JobAlreadyActive: the next Job waits, as {FIRST} has not ended"),
    ("Replace", [f"delete Job {FIRST}", f"create Job {SECOND}", CRON], [SECOND],
        f"Normal Replaced: deleted Job {FIRST}, because the next Job is due"),
    ("Allow", [f"create Job {SECOND}", CRON], [FIRST, SECOND], f"Normal SuccessfulCreate: made Job {SECOND}"),
])  # fmt: skip
def test_the_last_one_has_not_ended(policy: str, acts: list[str], listed: list[str], event: str) -> None:
    """The policy says what becomes of both."""
    world = cron(concurrencyPolicy=policy)
    world.settle(600.1)
    world.told()
    assert world.acts(600.0) == acts
    assert active(world) == listed
    assert world.told()[0] == event
    if policy == "Forbid":
        end(world)
        assert active(world) == [SECOND]


def test_jobs_of_the_past_go() -> None:
    """The oldest beyond the limit, of those that succeeded and of those that failed."""
    world = cron(successfulJobsHistoryLimit=2, failedJobsHistoryLimit=1)
    for phase, code in (("Failed", 1), ("Succeeded", 0), ("Succeeded", 0), ("Failed", 1), ("Succeeded", 0)):
        world.settle(600.0)
        end(world, phase, code)
    world.settle(1.0)
    assert sorted(job.metadata.name for job in world.api.all(JOBS)) == [f"c-300000{n}0" for n in (3, 4, 5)]


@pytest.mark.parametrize(
    ("spec", "event"), [({"suspend": True}, ""), ({"schedule": "no"}, "Warning InvalidSchedule: no Jobs are made: ")]
)
def test_no_jobs_are_made(spec: dict[str, Any], event: str) -> None:
    """While it is suspended, or its schedule cannot be read."""
    world = cron(**spec)
    assert world.acts(3600.0) == []
    assert [each.startswith(event) for each in world.told()] == ([True] if event else [])


def test_a_job_that_is_refused() -> None:
    """Is tried again; an event and the status say why."""
    world = cron()
    world.api.fails(Forbidden("quota"), "create", only=FIRST, times=99)
    assert world.acts(600.1) == [CRON]
    assert world.told() == [f"Warning FailedCreate: Job {FIRST}: quota"]
    assert world.one(CRON_JOBS, "c").status.message == f"Job {FIRST}: quota"
    world.api.meddle = lambda _: None
    assert world.acts(29.0) == []
    assert world.acts(1.1) == [f"create Job {FIRST}", CRON]
    assert world.one(CRON_JOBS, "c").status.message == ""


def test_a_foreign_job_has_the_name() -> None:
    """It stays, and there is none of this time."""
    world = cron()
    world.api.add(JOBS, {"metadata": {"name": FIRST}, "spec": TASKS})
    world.settle()
    world.told()
    assert world.acts(600.1) == [CRON]
    assert active(world) == []
    assert world.told() == [
        f"Warning ForeignJob: Job {FIRST} exists already and has no owner; no Job is created for this time"
    ]
    assert world.acts(600.0) == [f"create Job {SECOND}", CRON]


FLOW = "merge_patch JobFlow f"


def flow(**spec: Any) -> Settled:
    """A JobFlow `f` whose step b comes after a."""
    world = Settled()
    for name in "ab":
        world.api.add(JOB_TEMPLATES, {"metadata": {"name": name}, "spec": TASKS})
    steps = [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]
    world.api.add(JOB_FLOWS, {"metadata": {"name": "f"}, "spec": {"flows": steps, **spec}})
    return world


def test_a_flow() -> None:
    """Its Jobs are made in order, and counted by its status; at the end they go, if it says so."""
    world = flow(jobRetainPolicy="delete")
    assert [*world.acts(), *world.acts(0.5)] == ["create Job f-a", FLOW]
    assert world.told() == ["Normal Created: made Job f-a of JobTemplate a"]
    assert world.one(JOB_FLOWS, "f").status.pending_jobs == ["f-a"]
    world.pods("Running")
    assert [*world.acts(1.0), *world.acts(1.0)] == ["merge_patch JobTemplate a", FLOW]
    assert world.one(JOB_FLOWS, "f").status.running_jobs == ["f-a"]
    assert world.one(JOB_TEMPLATES, "a").status.job_depends_on_list == ["f-a"]
    world.pods("Succeeded", 0)
    assert [each for each in (*world.acts(1.0), *world.acts(1.0)) if "create" in each] == ["create Job f-b"]
    world.settle(1.0)
    status = world.one(JOB_FLOWS, "f").status
    assert (status.completed_jobs, status.pending_jobs, status.state.phase) == (["f-a"], ["f-b"], "Running")
    world.pods("Succeeded", 0)
    assert {"delete Job f-a", "delete Job f-b"} <= {*world.acts(1.0), *world.acts(1.0)}
    assert world.one(JOB_FLOWS, "f").status.state.phase == "Succeed"
    assert world.told()[-1] == "Normal Succeed: all Jobs are completed"
    assert (world.acts(1.0), world.api.all(JOBS)) == (["merge_patch JobTemplate a", "merge_patch JobTemplate b"], [])


def test_a_step_of_a_flow_fails() -> None:
    """No further Job is made, and those that are there stay."""
    world = flow(jobRetainPolicy="delete")
    world.settle()
    world.pods("Failed", 1)
    world.acts(1.0)
    world.acts(1.0)
    status = world.one(JOB_FLOWS, "f").status
    assert (status.state.phase, [*status.failed_jobs, *status.terminated_jobs]) == ("Failed", ["f-a"])
    assert world.told()[-1] == "Warning Failed: no further Job is created, because of f-a"
    assert world.one(JOBS, "f-a") is not None
    assert world.one(JOBS, "f-b") is None


def test_a_template_that_is_missing() -> None:
    """Its step waits for it."""
    world = flow()
    world.api.remove(JOB_TEMPLATES, world.one(JOB_TEMPLATES, "a"))
    assert "create Job f-a" not in world.acts()
    assert "there is no JobTemplate a" in world.told()[0]
    world.acts(FIRST_S)
    assert world.one(JOB_FLOWS, "f").status.state.phase == "Pending"
    world.api.add(JOB_TEMPLATES, {"metadata": {"name": "a"}, "spec": TASKS})
    assert "create Job f-a" in world.acts(1.0)


def test_commands_to_a_job() -> None:
    """Its pods go; it goes on, with new ones, when it is resumed."""
    world = Settled()
    job = world.api.add(JOBS, {"metadata": {"name": "j"}, "spec": {**TASKS, "queue": "default"}})
    world.settle()
    end(world, "Running")
    target = {"apiVersion": JOBS.api_version, "kind": "Job", "name": "j", "uid": job.metadata.uid}
    for action, phase, pods in (
        ("AbortJob", "Aborted", 0),
        ("ResumeJob", "Pending", 1),
        ("TerminateJob", "Terminated", 0),
    ):
        world.api.add(COMMANDS, {"metadata": {"name": action.lower()}, "action": action, "target": target}, "n")
        assert world.acts(1.0) == [f"delete Command {action.lower()}"]
        assert (world.one(JOBS, "j").status.state.phase, len(world.api.all(PODS))) == (phase, pods)


def test_queues_count_their_gangs() -> None:
    """By phase, and their parent counts with them."""
    world = Settled()
    world.api.add(QUEUES, {"metadata": {"name": "team"}, "spec": {"parent": "root", "weight": 1}})
    world.api.add(JOBS, {"metadata": {"name": "j"}, "spec": {**TASKS, "queue": "team"}})
    world.settle()
    for phase, field in (("", "inqueue"), ("Running", "running")):
        if phase:
            world.pods(phase)
        world.settle(1.0)
        world.settle(1.0)
        assert getattr(world.api.find(QUEUES, "team").status, field) == 1
    assert world.api.find(QUEUES, "team").status.state == "Open"


def test_runtimes_lose_the_finalizer_of_an_earlier_trainer() -> None:
    """And keep those of others."""
    world = Settled()
    for res in (TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES):
        world.api.add(res, {"metadata": {"name": "r", "finalizers": [FINALIZER, "other"]}, "spec": {}})
        world.api.add(res, {"metadata": {"name": "clean", "finalizers": ["other"]}, "spec": {}})
    assert sorted(each for each in world.settle() if "Runtime" in each) == [
        "merge_patch ClusterTrainingRuntime r",
        "merge_patch TrainingRuntime r",
    ]
    for res in (TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES):
        assert world.api.find(res, "r", "n").metadata.finalizers == ["other"]


def test_a_leader_works_until_it_is_stopped() -> None:
    """In threads of its own, and no longer; its sizes tell of caches and queues."""
    world = Settled()
    world.controller.lead(lambda: True)
    end_s = time.monotonic() + 20
    while not world.api.all(QUEUES) and time.monotonic() < end_s:
        time.sleep(0.01)
    world.api.add(JOBS, {"metadata": {"name": "j"}, "spec": TASKS})
    world.controller.stop()
    with pytest.raises(CancelledError):
        world.controller.jobs._context.effects._pool.each(["a call about a pod"], str)
    world.deliver(everything=True)
    assert sorted(queue.metadata.name for queue in world.api.all(QUEUES)) == ["default", "root"]
    assert not world.api.all(POD_GROUPS)
    sizes = world.controller.sizes()
    assert (sizes["jobs"], sizes["pods"], sizes["job queue"], sizes["trainjob queue"]) == (1, 0, 0, 0)
