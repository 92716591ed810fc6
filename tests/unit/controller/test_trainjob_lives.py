"""TrainJobs from beginning to end, by the whole controller on an API server in memory."""

from typing import Any

import msgspec
import pytest
from builders import manifests
from frameworks_world import JSON, replicated_job, runtime
from settled_world import Settled

from muster.api import names
from muster.api.kubeflow.jobset import JOB_SETS, JobSet
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubeflow.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from muster.api.kubernetes.core import CONFIG_MAPS, EVENTS, INDEXED_JOBS, PODS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.errors import BadRequest, Forbidden, Refused

NOW = "2027-01-15T08:00:00Z"
FETCH = "t-dataset-initializer-0"
DATASET = {"initializer": {"dataset": {"storageUri": "hf://x"}}}


class World(Settled):
    """A cluster with the runtime of a TrainJob `t` of two nodes."""

    def __init__(self, *jobs: JSON, jobset: JSON | None = None, with_runtime: bool = True, **options: Any) -> None:
        super().__init__(**options)
        if with_runtime:
            self.api.add(CLUSTER_TRAINING_RUNTIMES, runtime({"torch": {}}, *jobs, jobset=jobset or {}))
        self.settle()

    def submit(self, metadata: JSON | None = None, **spec: Any) -> list[str]:
        """The writes that follow the new TrainJob."""
        spec = {"runtimeRef": {"name": "runtime"}, "trainer": {"numNodes": 2}, **spec}
        self.api.add(TRAIN_JOBS, {"metadata": {"name": "t", **(metadata or {})}, "spec": spec})
        return self.acts()

    def show_job_set(self, status: JSON) -> None:
        """The controller sees the JobSet with this status."""
        self.set(JOB_SETS, "t", status=status)
        shown = msgspec.convert(msgspec.to_builtins(self.one(JOB_SETS, "t")), JobSet)
        self.controller.train_jobs.watched._changed("jobsets.jobset.x-k8s.io", None, shown)

    @property
    def conditions(self) -> list[str]:
        """Type, status and reason of the TrainJob's conditions."""
        return [f"{each.type}={each.status} {each.reason}" for each in self.one(TRAIN_JOBS, "t").status.conditions]

    @property
    def message(self) -> str:
        """The message of the TrainJob's last condition."""
        return str(self.one(TRAIN_JOBS, "t").status.conditions[-1].message)

    @property
    def counts(self) -> dict[str, str]:
        """The counts of each pod set that are not 0."""
        fields = ("ready", "succeeded", "failed", "active", "suspended")
        listed = self.one(TRAIN_JOBS, "t").status.jobs_status
        return {
            each.name: " ".join(f"{getattr(each, name)} {name}" for name in fields if getattr(each, name))
            for each in listed
        }


STATUS = "merge_patch TrainJob t"
NEW = ["create ConfigMap t-runtime-snapshot", STATUS, "create Job t"]


def test_it_trains_and_completes() -> None:
    """Its Job is made, counted while it runs, and deleted some time after its end, when the runtime says so."""
    world = World(jobset={"ttlSecondsAfterFinished": 60})
    assert world.submit() == NEW
    assert (world.conditions, world.counts) == ([], {})
    world.pods("Running")
    assert world.acts() == [STATUS]
    assert (world.conditions, world.counts) == ([], {"node": "1 ready 1 active"})
    world.pods("Succeeded", 0)
    assert world.acts() == [STATUS]
    assert (world.conditions, world.counts) == (["Complete=True AllJobsCompleted"], {"node": "1 succeeded"})
    assert world.told() == ["Normal AllJobsCompleted: jobset completed successfully"]
    assert world.acts(59.0) == []
    assert world.acts(1.1) == ["delete Job t"]
    assert world.acts(400.0) == []
    assert world.one(JOBS, "t") is None


def test_it_is_ready_when_its_pods_are() -> None:
    """Its Job does not change by that."""
    world = World()
    world.submit()
    world.pods("Running")
    for ready, counts in (("False", "1 active"), ("True", "1 ready 1 active")):
        for pod in world.api.all(PODS):
            world.set(PODS, pod.metadata.name, status={"conditions": [{"type": "Ready", "status": ready}]})
        world.settle()
        world.settle(1.0)
        assert world.counts == {"node": counts}


def test_a_pod_that_fails_ends_it() -> None:
    """With the pod and its exit code; the Job stays, as the runtime does not say how long."""
    world = World()
    world.submit()
    world.pods("Running")
    world.settle()
    world.pods("Failed", 3)
    assert world.acts() == [STATUS]
    why = "jobset failed due to one or more job failures: pod t-node-0 on node-1 failed: container node: exit code 3"
    assert (world.conditions, world.message) == (["Failed=True FailedJobs"], f"{why} (and 1 more)")
    assert world.counts == {"node": "1 failed"}
    assert f"Warning FailedJobs: {why} (and 1 more)" in world.told()
    assert world.acts(10_000.0) == []
    assert world.one(JOBS, "t") is not None


def test_what_never_started_of_an_elastic_one_does_not_start_after_its_end() -> None:
    """Two of three nodes had a place and have succeeded: the TrainJob is complete, and the third pod goes."""
    world = World(with_runtime=False)
    elastic = {"torch": {"elasticPolicy": {"minNodes": 2, "maxNodes": 3}}}
    world.api.add(CLUSTER_TRAINING_RUNTIMES, runtime(elastic))
    world.submit(trainer={"numNodes": 3})
    world.plans = False
    world.set(PODS, "t-node-2", spec={"nodeName": None})
    assert world.one(JOBS, "t").metadata.annotations["muster.dev/elastic"] == "2:3"
    [group] = world.api.all(POD_GROUPS)
    assert group.metadata.annotations["muster.dev/elastic"] == "2:3"
    for phase in ("Running", "Succeeded"):
        for name in ("t-node-0", "t-node-1"):
            world.set(PODS, name, spec={"nodeName": "n"}, status={"phase": phase})
        world.acts(1.0)
    world.acts(1.0)
    assert world.conditions == ["Complete=True AllJobsCompleted"]
    assert [pod.metadata.name for pod in world.api.all(PODS)] == ["t-node-0", "t-node-1"]
    assert world.counts == {"node": "1 succeeded"}


def test_it_is_suspended_and_resumed() -> None:
    """Before its Job exists nothing is made; later the Job is aborted, and resumed without the pods that had ended."""
    world = World()
    assert world.submit(suspend=True) == NEW[:2]
    assert (world.conditions, world.counts) == (["Suspended=True Suspended"], {"node": "1 suspended"})
    assert world.told() == ["Normal Suspended: TrainJob is suspended"]
    world.set(TRAIN_JOBS, "t", spec={"suspend": False})
    assert world.acts(10.0) == [STATUS, "create Job t"]
    assert (world.conditions, world.counts) == (["Suspended=False Resumed"], {"node": ""})
    assert world.told() == ["Normal Resumed: TrainJob is resumed"]
    world.pods("Running")
    world.acts(1.0)
    assert world.conditions == []
    world.set(TRAIN_JOBS, "t", spec={"suspend": True})
    generation = world.one(TRAIN_JOBS, "t").metadata.generation
    command = f"Command t-abortjob-{generation}"
    assert world.acts() == [STATUS, f"create {command}", f"delete {command}", STATUS]
    assert world.one(JOBS, "t").status.state.phase == "Aborted"
    assert world.api.all(PODS) == []
    world.set(TRAIN_JOBS, "t", spec={"suspend": False})
    command = f"Command t-resumejob-{generation + 1}"
    assert world.acts() == [STATUS, "json_patch Job t", f"create {command}", f"delete {command}"]
    assert len(world.api.all(PODS)) == 2


@pytest.mark.parametrize("gone", [False, True])
def test_all_members_of_a_gang_are_resumed(*, gone: bool) -> None:
    """Pods that had ended before it was suspended go, if they are not gone before, and all are made again."""
    world = World()
    world.submit()
    world.pods("Running")
    world.acts(1.0)
    [ended, _] = world.api.all(PODS)
    status = {"phase": "Succeeded", "containerStatuses": [{"name": "node", "state": {"terminated": {"exitCode": 0}}}]}
    world.set(PODS, ended.metadata.name, status=status)
    if gone:
        world.acts(1.0)
        world.acts(1.0)  # counters and notes are written once they rest
        world.api.remove(PODS, world.one(PODS, ended.metadata.name), at_once=True)
        world.acts(1.0)
        assert len(world.api.all(PODS)) == 1
    world.set(TRAIN_JOBS, "t", spec={"suspend": True})
    world.acts(1.0)
    assert [pod.metadata.uid for pod in world.api.all(PODS)] == [ended.metadata.uid][gone:]
    world.set(TRAIN_JOBS, "t", spec={"suspend": False})
    world.acts(1.0)
    world.acts(1.0)
    assert len(world.api.all(PODS)) == 2
    assert ended.metadata.uid not in {pod.metadata.uid for pod in world.api.all(PODS)}


def test_its_deadline() -> None:
    """Counts from its creation; then it has failed, and its Job is deleted at once."""
    world = World()
    world.submit(activeDeadlineSeconds=100)
    world.pods("Running")
    assert world.acts(99.0) == [STATUS]
    assert world.acts(1.0) == [STATUS, "delete Job t"]
    assert world.conditions == ["Failed=True DeadlineExceeded"]
    assert world.api.all(PODS) == []
    over = "Warning DeadlineExceeded: TrainJob exceeded its deadline of 100 s, counted from its creation"
    assert over in world.told()
    assert not any(each.startswith("create") for each in world.acts(60.0))


def test_its_end_stays_although_its_job_may_not_be_deleted() -> None:
    """A policy refuses: one Event says so, it is tried again later each time, and deleted once that is allowed."""
    world = World()
    world.submit(activeDeadlineSeconds=100)
    world.pods("Running")
    world.acts(99.0)
    world.api.refuses = Forbidden("policy")
    assert world.acts(1.0) == [STATUS]
    refusal = "Warning TrainJobResourcesDeletionFailed: Job t cannot be deleted: policy"
    assert (world.conditions, world.told().count(refusal)) == (["Failed=True DeadlineExceeded"], 1)
    assert world.acts(3600.0) == []
    assert world.conditions == ["Failed=True DeadlineExceeded"]
    world.api.refuses = None
    assert world.acts(3600.0) == ["delete Job t"]


def fetching() -> World:
    """A cluster whose runtime fetches data before it trains."""
    pod = {"containers": [{"name": "dataset-initializer", "image": "fetch"}]}
    waits = [{"name": "dataset-initializer", "status": "Complete"}]
    return World(
        replicated_job("dataset-initializer", "dataset-initializer", pod),
        replicated_job("node", "trainer", dependsOn=waits),
    )


def test_an_initializer_comes_first() -> None:
    """The gang is made when it has succeeded, which stays so though its Job goes."""
    world = fetching()
    assert world.submit(**DATASET) == [*NEW[:2], f"create Job {FETCH}"]
    world.set(INDEXED_JOBS, FETCH, status={"active": 1})
    world.acts()
    assert world.counts == {"dataset-initializer": "1 active", "node": ""}
    world.set(INDEXED_JOBS, FETCH, status={"ready": 1})
    world.acts()
    assert world.counts == {"dataset-initializer": "1 ready 1 active", "node": ""}
    done = {"active": None, "ready": None, "succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}
    world.set(INDEXED_JOBS, FETCH, status=done)
    assert world.acts() == [STATUS, "create Job t"]
    world.api.remove(INDEXED_JOBS, world.one(INDEXED_JOBS, FETCH), at_once=True)
    world.pods("Running")
    world.acts()
    assert world.counts == {"dataset-initializer": "1 succeeded", "node": "1 ready 1 active"}


def test_an_initializer_is_suspended_with_it() -> None:
    """And goes on with it; when it fails, the TrainJob has, and nothing trains."""
    world = fetching()
    world.submit(**DATASET)
    world.set(INDEXED_JOBS, FETCH, status={"active": 1})
    for suspend, counts in ((True, "1 active 1 suspended"), (False, "1 active")):
        world.set(TRAIN_JOBS, "t", spec={"suspend": suspend})
        assert f"merge_patch Job {FETCH}" in world.settle()
        assert world.one(INDEXED_JOBS, FETCH).spec.suspend is suspend
        assert world.counts["dataset-initializer"] == counts
    world.set(INDEXED_JOBS, FETCH, status={"conditions": [{"type": "Failed", "status": "True", "message": "no data"}]})
    assert world.acts() == [STATUS]
    assert world.message == f"jobset failed due to one or more job failures: initializer {FETCH}: no data"
    assert world.counts == {"dataset-initializer": "1 failed", "node": ""}


def test_jobs_that_go_on_after_its_end_are_deleted() -> None:
    """An initializer that another one has made useless."""
    world = fetching()
    world.submit(**DATASET)
    ended = [{"type": "Failed", "status": "True", "reason": "x", "message": "", "lastTransitionTime": NOW}]
    world.set(TRAIN_JOBS, "t", status={"conditions": ended})
    assert world.acts() == [f"delete Job {FETCH}"]
    assert not world.controller.train_jobs._compiled


def test_nothing_can_be_made() -> None:
    """It says why, once, and is tried again; with the obstacle the condition goes."""
    world = World(with_runtime=False)
    assert world.submit() == [STATUS]
    why = "ClusterTrainingRuntime runtime, to which spec.runtimeRef refers, is gone; create it again, or delete this"
    assert world.conditions == ["Blocked=True TrainJobResourcesCreationFailed"]
    assert world.message == f"{why} TrainJob"
    assert world.told() == [f"Warning TrainJobResourcesCreationFailed: {why} TrainJob"]
    assert world.acts(10.1) == []
    assert world.told() == []
    world.api.add(CLUSTER_TRAINING_RUNTIMES, runtime({"torch": {}}))
    assert world.acts(9.0) == []
    assert world.acts(1.2) == [*NEW, STATUS]
    assert world.conditions == []


@pytest.mark.parametrize("refusal", [Forbidden("quota"), BadRequest("quota"), Refused("quota", status=413), None])
def test_something_is_in_the_way(refusal: Refused | None) -> None:
    """The API server or a webhook refuses its Job, or another Job has its name; neither is changed."""
    world = World()
    if refusal:
        world.api.refuses = refusal
    else:
        world.api.add(JOBS, {"metadata": {"name": "t"}, "spec": {"tasks": []}})
    assert "create Job t" not in world.submit()
    assert world.conditions == ["Blocked=True TrainJobResourcesCreationFailed"]
    assert world.message == (
        "the API server refuses an object that this TrainJob needs: quota"
        if refusal
        else "Job t exists already and has no owner, so it is not changed; delete it, or delete this TrainJob and give "
        "it another name"
    )
    world.api.refuses = None
    if not refusal:
        world.api.remove(JOBS, world.one(JOBS, "t"), at_once=True)
    assert world.acts(10.1)[-2:] == ["create Job t", STATUS]
    assert world.conditions == []


def test_a_pod_of_its_job_is_refused() -> None:
    """It says so in the words of the API server, once, until the pod can be created."""
    world = World()
    quota = "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"
    world.api.fails(Forbidden(quota), "create", only="t-node-1", times=999)
    world.submit()
    for pause_s in (5.0, 5.0, 5.0, 1.0, 1.0, 30.0):
        world.acts(pause_s)
        assert world.conditions == ["Blocked=True TrainJobResourcesCreationFailed"]
        assert world.message == f"Job t: pod t-node-1 cannot be created: {quota}"
    assert sum("TrainJobResourcesCreationFailed" in each for each in world.told()) == 1
    world.api.meddle = lambda _: None
    world.acts(30.0)
    world.acts(30.0)
    assert world.conditions == []


@pytest.mark.parametrize(
    ("of_a_job_set", "maker", "reason"),
    [(False, f"Job {FETCH}", "FailedCreate"), (True, "Job t-node-0", "FailedCreate"),
     (True, "JobSet t", "JobCreationFailed")],
)  # fmt: skip
def test_pods_of_its_batch_jobs_are_refused(*, of_a_job_set: bool, maker: str, reason: str) -> None:
    """Only an Event of the Job has the words of the API server; they count as long as there are no pods."""
    world = World(target="JobSet") if of_a_job_set else fetching()
    world.submit(**({} if of_a_job_set else DATASET))
    about: JSON = {"involvedObject": dict(zip(("kind", "name"), maker.split(), strict=True)), "reason": reason}
    for second, words in enumerate(("of an earlier Job", "is forbidden", "violates PodSecurity")):
        told = {**about, "message": f"Error creating: pod {words}", "lastTimestamp": f"2027-01-15T0{7 + second}:00:00Z"}
        world.api.add(EVENTS, {"metadata": {"name": f"e{second}"}, **told})
    if of_a_job_set:
        world.show_job_set({})
    world.acts(5.0)
    assert world.conditions == []
    world.acts(10.1)
    assert world.conditions == ["Blocked=True TrainJobResourcesCreationFailed"]
    assert world.message == f"{maker}: Error creating: pod violates PodSecurity"
    assert world.acts(10.0) == []
    if of_a_job_set:
        counts = {"name": "node", "active": 1, "ready": 0, "succeeded": 0, "failed": 0, "suspended": 0}
        world.show_job_set({"replicatedJobsStatus": [counts]})
    else:
        world.set(INDEXED_JOBS, FETCH, status={"active": 1})
    world.acts()
    assert world.conditions == []


@pytest.mark.parametrize(("refused", "created", "blocked"), [
    ("08:30:00", "", False), ("08:50:00", "", True), ("08:50:00", "08:50:00", True), ("08:50:00", "08:50:01", False),
])  # fmt: skip
def test_a_refusal_that_is_over_blocks_nothing(refused: str, created: str, *, blocked: bool) -> None:
    """Its Job has a pod since, or has not been refused another for long: it waits for the end of a back-off."""
    world = fetching()
    world.submit(**DATASET)
    job = {"kind": "Job", "name": FETCH}
    for time, reason in ((refused, "FailedCreate"), (created, "SuccessfulCreate")):
        event = {"involvedObject": job, "reason": reason, "message": "quota", "lastTimestamp": f"2027-01-15T{time}Z"}
        world.api.add(EVENTS, {"metadata": {"name": reason.lower()}, **event})
    world.acts(3600.0)
    assert bool(world.conditions) is blocked


def test_a_job_of_an_earlier_one_is_awaited() -> None:
    """It is about to go: no condition says so."""
    world = World()
    earlier = manifests.owner("t", "TrainJob", TRAIN_JOBS.api_version, "earlier")
    world.api.add(JOBS, {"metadata": {"name": "t", "ownerReferences": [earlier]}, "spec": {"tasks": []}})
    world.submit()
    assert (world.conditions, world.told()) == ([], [])
    assert world.acts(10.0)[-1:] == ["create Job t"] or world.one(JOBS, "t").metadata.uid != "earlier"


def test_another_number_of_nodes() -> None:
    """Changes the Job as it is; the minimum of its gang follows."""
    world = World()
    world.submit()
    world.acts(1.0)
    world.set(TRAIN_JOBS, "t", spec={"trainer": {"numNodes": 3}})
    assert world.acts() == ["json_patch Job t"]


def test_other_patches_of_the_runtime() -> None:
    """While it is suspended: its Job goes, whose pods were made for others, and comes again when it is resumed."""
    world = World()
    world.submit()
    world.set(TRAIN_JOBS, "t", spec={"suspend": True})
    world.acts()
    job = {"name": "node", "template": {"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}}
    spec = {"template": {"spec": {"replicatedJobs": [job]}}}
    world.set(TRAIN_JOBS, "t", spec={"runtimePatches": [{"manager": "a.io/b", "trainingRuntimeSpec": spec}]})
    assert "delete Job t" in world.acts()
    assert world.one(JOBS, "t") is None
    world.set(TRAIN_JOBS, "t", spec={"suspend": False})
    assert world.acts() == [STATUS, "create Job t"]


def test_its_gang_finds_no_place() -> None:
    """A condition says why, until it has one."""
    world = World()
    world.plans = False
    world.submit()
    [group] = world.api.all(POD_GROUPS)
    reason = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "0/3 nodes"}
    held = [reason | {"transitionID": "1", "lastTransitionTime": NOW}]
    world.set(POD_GROUPS, group.metadata.name, status={"phase": "Inqueue", "conditions": held})
    world.acts(1.0)
    assert STATUS in world.acts(1.0)
    assert (world.conditions, world.message) == (["Waiting=True Unschedulable"], "0/3 nodes")
    world.set(POD_GROUPS, group.metadata.name, status={"conditions": []})
    world.acts(1.0)
    assert STATUS in world.acts(1.0)
    assert world.conditions == []


def test_no_network_policy_unless_it_asks_for_one() -> None:
    """By a setting of the controller; annotations come before it."""
    for annotations, flags in (({}, ["--disable-network-policy"]), ({"muster.dev/network-policy": "true"}, [])):
        world = World(network_policies=False)
        world.submit({"annotations": annotations})
        assert world.one(JOBS, "t").spec.plugins["svc"][1:] == flags


def test_its_kept_runtime() -> None:
    """The runtime of its beginning is kept: a later one changes nothing, also for another controller."""
    world = World()
    world.submit(suspend=True)
    world.set(CLUSTER_TRAINING_RUNTIMES, "runtime", spec={"template": {"spec": {"replicatedJobs": []}}})
    world.restart()
    world.set(TRAIN_JOBS, "t", spec={"suspend": False})
    assert world.acts() == [STATUS, "create Job t"]
    assert world.one(JOBS, "t").spec.tasks[0].replicas == 2


@pytest.mark.parametrize("is_kept", [True, False])
def test_the_runtime_that_admission_saw(*, is_kept: bool) -> None:
    """Counts though it has changed; where the API server has it no more, the present one, and an event says so."""
    world = World()
    seen = world.api.find(CLUSTER_TRAINING_RUNTIMES, "runtime")
    later = runtime({"torch": {}}, replicated_job("node", "trainer", {"containers": [{"name": "node", "image": "b"}]}))
    world.api.change(CLUSTER_TRAINING_RUNTIMES, "runtime", {"spec": msgspec.to_builtins(later.spec)})
    world.api.earlier = [seen] if is_kept else []
    version = f"{seen.metadata.uid}/{seen.metadata.resource_version}"
    world.submit({"annotations": {names.RUNTIME_VERSION: version}})
    [task] = world.one(JOBS, "t").spec.tasks
    assert task.template["spec"]["containers"][0]["image"] == ("image" if is_kept else "b")
    assert [each.split(":")[0] for each in world.told()] == ([] if is_kept else ["Warning RuntimeChanged"])


def test_a_snapshot_that_somebody_changed() -> None:
    """Is not believed by a controller that has not made it."""
    world = World()
    world.submit(suspend=True)
    world.set(CONFIG_MAPS, "t-runtime-snapshot", data={"runtime": "{}"})
    world.restart()
    world.acts()
    assert world.conditions == ["Suspended=True Suspended", "Blocked=True TrainJobResourcesCreationFailed"]
    assert world.message.startswith("ConfigMap t-runtime-snapshot was changed: its digest differs")


@pytest.mark.parametrize(("ends", "condition", "events"), [
    ("Completed", "Complete=True AllJobsCompleted", ["Normal AllJobsCompleted: why"]),
    ("Failed", "Failed=True FailedJobs", ["Warning FailedJobs: why"]),
])  # fmt: skip
def test_a_job_set_in_place_of_a_job(ends: str, condition: str, events: list[str]) -> None:
    """Its counts and its end are the TrainJob's."""
    world = World(target="JobSet")
    assert world.submit()[-1] == "create JobSet t"
    count = {"name": "node", "ready": 1, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}
    reason = condition.rpartition(" ")[2]
    held = {"type": ends, "status": "True", "reason": reason, "message": "why", "lastTransitionTime": NOW}
    for status in ({"replicatedJobsStatus": [count]}, {"conditions": [held]}):
        world.show_job_set(status)
        assert STATUS in world.acts()
        assert world.counts == {"node": "1 ready 1 active"}
    assert (world.conditions, world.told()) == ([condition], events)


def test_the_gang_of_a_failed_job_set_has_failed() -> None:
    """Also if one of its pods has succeeded: lists, explanation and history read it from the PodGroup."""
    world = World(target="JobSet")
    world.submit()
    world.show_job_set({})
    [group] = world.api.all(POD_GROUPS)
    assert group.status.ending == ""
    held = {"type": "Failed", "status": "True", "reason": "FailedJobs", "message": "why", "lastTransitionTime": NOW}
    world.show_job_set({"conditions": [held]})
    world.acts()
    [group] = world.api.all(POD_GROUPS)
    assert group.status.ending == "why"


def test_one_of_another_controller_is_left_alone() -> None:
    """As is one that is being deleted."""
    assert World().submit(managedBy="kueue.x-k8s.io/multikueue") == []
    assert World().submit({"deletionTimestamp": NOW, "finalizers": ["x"]}) == []
