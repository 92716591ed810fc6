"""TrainJobs that become JobSets, by configuration. The test plays the JobSets' own controller; all else is real."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from job_sets import JOBSETS, NAME, install, make_jobs, tell
from train_jobs import TrainStory, patch, runtime, train_job

from muster.api import names
from muster.api.kubeflow.trainingruntime import TRAINING_RUNTIMES
from muster.api.kubernetes.core import PODS, Pod
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.errors import NotFound
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.long]
WaitFor = Callable[..., Any]
JSON = dict[str, Any]
RIGHTS = Path(__file__).resolve().parents[2] / "examples" / "trainjobs-as-jobsets.yaml"
SPACE = "default"


@pytest.fixture(scope="module")
def as_job_sets(module_plane: Callable[..., Plane]) -> Plane:
    """A plane with the kind, the rights to it, and both processes told to use it."""
    settings = dict[str, dict[str, str]]()
    plane = module_plane(settings=settings)
    assert plane.kubectl("apply", f"--filename={RIGHTS}").returncode == 0
    with contextlib.closing(plane.client()) as client:
        install(client, lambda _: plane.kubectl("wait", "--for=condition=Established", f"crd/{NAME}"))
    for part in ("webhook", "controller"):
        settings[part] = {"trainJobsAs": "JobSet"}
        plane.part(part).kill()
        plane.part(part).start()
    plane.mend()
    return plane


@pytest.fixture
def story(as_job_sets: Plane) -> Iterator[TrainStory]:
    """TrainJobs of the default namespace."""
    with contextlib.closing(as_job_sets.client()) as client, TrainStory(client, SPACE) as one:
        yield one


def job_set(story: TrainStory, name: str) -> JSON | None:
    """The JobSet of a TrainJob, if there is one."""
    try:
        return story.client.get(JOBSETS, name, SPACE)
    except NotFound:
        return None


def test_from_submission_to_its_end(story: TrainStory, wait_for: WaitFor) -> None:
    """A JobSet whose pods are gated, planned as one gang, and pinned; its status is the TrainJob's."""
    client = story.client
    story.create(train_job("t", nodes=3, run_s=3))
    made = wait_for(lambda: job_set(story, "t"))
    assert made["metadata"]["ownerReferences"][0]["kind"] == "TrainJob"
    [node] = made["spec"]["replicatedJobs"]
    assert (made["spec"]["suspend"], node["template"]["spec"]["completions"]) == (False, 3)
    assert [job.metadata.name for job in client.list(JOBS, SPACE)] == []
    assert client.get(POD_GROUPS, "t", SPACE).spec.min_member == 3
    make_jobs(client, made)

    def running() -> list[Pod]:
        pods = client.list(PODS, SPACE, label_selector="jobset.sigs.k8s.io/jobset-name=t")
        return [pod for pod in pods if pod.status.phase in {"Running", "Succeeded"}]

    pods = wait_for(lambda: len(found := running()) == 3 and found, 60, "the gang runs")
    assert {pod.spec.scheduler_name for pod in pods} == {names.SCHEDULER}
    assert client.get(PLACEMENTS, "t", SPACE).spec.epoch == 1
    tell(client, made, counts={"active": 1, "ready": 1})
    wait_for(lambda: story.counts("t", "node")[-1:] == [{"active": 1, "ready": 1}])
    assert story.conditions("t") == []
    end = {"type": "Completed", "reason": "AllJobsCompleted", "message": "jobset completed successfully"}
    tell(client, made, counts={"succeeded": 1}, condition=end)
    wait_for(lambda: story.held("t") == [("Complete", "True", "AllJobsCompleted")])
    assert story.counts("t", "node")[-1] == {"succeeded": 1}


def test_let_go_as_by_kueue(story: TrainStory, wait_for: WaitFor) -> None:
    """A suspended TrainJob has a suspended JobSet, which is let go with the patches that Kueue has added."""
    story.create(train_job("q", nodes=2, suspend=True))
    made = wait_for(lambda: job_set(story, "q"))
    assert made["spec"]["suspend"] is True
    kueue = patch("kueue.x-k8s.io/manager", annotations={"a": "b"}, nodeSelector={"pool": "fast"})
    story.change("q", suspend=False, runtimePatches=[kueue])
    let_go = wait_for(lambda: (one := job_set(story, "q")) and not one["spec"]["suspend"] and one)
    pods = let_go["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    assert (pods["spec"]["nodeSelector"], pods["metadata"]["annotations"]["a"]) == ({"pool": "fast"}, "b")
    assert let_go["metadata"]["uid"] == made["metadata"]["uid"]
    wait_for(lambda: story.held("q") == [("Suspended", "False", "Resumed")])


def test_deleted_comes_back_and_ends_with_its_deadline(story: TrainStory, wait_for: WaitFor) -> None:
    """A JobSet that somebody deletes is made anew; after the deadline it goes."""
    story.create(train_job("d", nodes=1, activeDeadlineSeconds=15))
    made = wait_for(lambda: job_set(story, "d"))
    story.client.delete(JOBSETS, "d", SPACE)
    wait_for(lambda: (one := job_set(story, "d")) and one["metadata"]["uid"] != made["metadata"]["uid"])
    wait_for(lambda: story.held("d") == [("Failed", "True", "DeadlineExceeded")], 60)
    wait_for(lambda: job_set(story, "d") is None)


def test_what_only_a_job_set_can_do_is_taken(story: TrainStory) -> None:
    """Its controller carries it out."""
    own = runtime("own", network={"subdomain": "here"}, failurePolicy={"restartStrategy": "InPlaceRestart"})
    story.client.create(TRAINING_RUNTIMES, own, SPACE)
    story.client.create(TRAINING_RUNTIMES, runtime("other", managedBy="example.com/me"), SPACE, dry_run=True)
