"""JobSets of the real JobSet controller, placed by Muster: what is a gang, and what becomes of it."""

from collections.abc import Callable
from typing import Any

import pytest
from beside import jobset
from beside.jobset import ATTEMPT_LABEL, EXCLUSIVE, JOB_SETS, ended, job_set, replicated
from beside.neighbour import Neighbours
from beside.scene import Scene

from muster.api import names
from muster.api.kubernetes.core import INDEXED_JOBS, NAMESPACES
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.errors import APIError
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.neighbour
JSON = dict[str, Any]
FRAMEWORK = {names.FRAMEWORK: "torch"}
QUEUE = {names.QUEUE: "default"}
RACK = "muster.dev/rack"


@pytest.fixture(scope="module")
def plane(module_plane: Callable[..., Plane], neighbours: Neighbours) -> Plane:
    """Six nodes of eight GPUs, and JobSet as it is installed by default."""
    one = module_plane(nodes=6)
    jobset.start(neighbours, one)
    return one


@pytest.mark.parametrize("place", ["set", "template", "namespace"])
def test_a_replicated_job_waits_whole_and_starts_whole(scene: Scene, place: str) -> None:
    """All its Jobs are one gang, wherever the queue is named; its ranks follow Jobs and indexes."""
    if place == "namespace":
        scene.client.merge_patch(NAMESPACES, scene.namespace, {"metadata": {"labels": QUEUE}})
    own = {"set": (FRAMEWORK | QUEUE, {}), "template": ({}, FRAMEWORK | QUEUE), "namespace": (FRAMEWORK, {})}
    labels, template = own[place]
    with scene.cordoned(1):
        scene.create(JOB_SETS, job_set("train", replicated("node", 3, jobs=2, labels=template), labels=labels))
        assert not any(pod.spec.node_name for pod in scene.waiting(6))
        [group] = scene.groups().values()
        assert (group.metadata.name, group.spec.min_member) == ("podgroup-jobset-train.node", 6)
    pods = scene.running(6)
    env = [scene.env(pod) for pod in pods]
    assert [each["PET_NODE_RANK"] for each in env] == [str(rank) for rank in range(6)]
    assert {each["PET_NNODES"] for each in env} == {"6"}
    assert {each["PET_MASTER_ADDR"] for each in env} == {"train-node-0-0.train"}
    assert len({pod.spec.node_name for pod in pods}) == 6


def test_without_a_framework_each_job_is_a_gang(scene: Scene) -> None:
    """Its minimum is the JobSet's annotation; without one its pods are placed one by one."""
    least = {names.MIN_MEMBER: "3"}
    with scene.cordoned(4):
        scene.create(JOB_SETS, job_set("each", replicated("node", 3, jobs=2), labels=QUEUE, annotations=least))
        scene.waiting(6)
        assert [group.spec.min_member for group in scene.groups().values()] == [3, 3]
        scene.create(JOB_SETS, job_set("alone", replicated("node", 3), labels=QUEUE))
        scene.wait_for(lambda: sum(bool(pod.spec.node_name) for pod in scene.pods()) == 2, 60, "two pods on two nodes")
        scene.client.delete(JOB_SETS, "alone", scene.namespace)
    scene.running(6)


def test_a_restart_is_a_whole_gang_again(scene: Scene) -> None:
    """In a cluster that holds it once: the places of the first attempt are given back; the last failure ends it."""
    scene.create(JOB_SETS, job_set("train", replicated("node", 3, jobs=2), failurePolicy={"maxRestarts": 1}))
    first = scene.running(6)
    scene.ends(first[0])
    scene.wait_for(lambda: not {pod.metadata.uid for pod in first} & {pod.metadata.uid for pod in scene.pods()}, 60)
    again = scene.running(6)
    assert {pod.metadata.labels[ATTEMPT_LABEL] for pod in again} == {"1"}
    assert [scene.env(pod)["PET_NODE_RANK"] for pod in again] == [str(rank) for rank in range(6)]
    scene.ends(again[5])
    scene.wait_for(lambda: ended(scene.find(JOB_SETS, "train")) == "Failed: ReachedMaxRestarts", 60)
    scene.wait_for(lambda: not scene.pods(), 60, "no pods")
    scene.wait_for(lambda: scene.groups()["podgroup-jobset-train.node"].status.phase == "Completed", 30)


def test_a_driver_that_ends_ends_the_set(scene: Scene) -> None:
    """By the success policy: the workers' pods go, their gang is over, and its place is the next one's."""
    driver, workers = replicated("driver", 1, gpus=0, run_s=2), replicated("worker", 6)
    policy = {"operator": "All", "targetReplicatedJobs": ["driver"]}
    scene.create(JOB_SETS, job_set("rl", driver, workers, successPolicy=policy))
    scene.running(6, "rl-worker")
    scene.wait_for(lambda: ended(scene.find(JOB_SETS, "rl")) == "Completed: AllJobsCompleted", 60)
    scene.wait_for(lambda: {group.status.phase for group in scene.groups().values()} == {"Completed"}, 60)
    scene.create(JOB_SETS, job_set("next", replicated("node", 6)))
    scene.running(6, "next")


def test_suspended_and_resumed(scene: Scene) -> None:
    """A suspended JobSet has no pods and no gang, from its start or later; resumed it is a gang anew."""
    scene.create(JOB_SETS, job_set("train", replicated("node", 3, jobs=2), suspend=True))
    scene.wait_for(lambda: len(scene.client.list(INDEXED_JOBS, scene.namespace)) == 2, 30, "its Jobs")
    assert (scene.pods(), scene.groups()) == ([], {})
    scene.patch(JOB_SETS, "train", suspend=False)
    scene.running(6)
    scene.patch(JOB_SETS, "train", suspend=True)
    scene.wait_for(lambda: not scene.pods() and not scene.groups(), 60, "no pods and no gang")
    scene.create(JOB_SETS, job_set("other", replicated("node", 6)))
    scene.running(6, "other")
    scene.patch(JOB_SETS, "train", suspend=False)
    scene.waiting(6, "train")
    scene.client.delete(JOB_SETS, "other", scene.namespace)
    scene.running(6, "train")


def test_parts_that_start_in_order(scene: Scene) -> None:
    """Each ReplicatedJob is a gang of its own, so that the second may wait for the first, and both run."""
    in_order = {"startupPolicyOrder": "InOrder"}
    parts = replicated("driver", 1, gpus=0), replicated("worker", 3, jobs=2)
    with scene.cordoned(1):
        scene.create(JOB_SETS, job_set("rl", *parts, startupPolicy=in_order))
        scene.running(1, "rl-driver")
        scene.waiting(6, "rl-worker")
    scene.running(6, "rl-worker")
    assert sorted(scene.groups()) == ["podgroup-jobset-rl.driver", "podgroup-jobset-rl.worker"]


def test_parts_that_depend_on_others(scene: Scene) -> None:
    """A ReplicatedJob that comes after another is complete is a gang then; the first one's is over with the set."""
    after = [{"name": "fetch", "status": "Complete"}]
    parts = replicated("fetch", 2, run_s=1), replicated("node", 6, run_s=1, dependsOn=after)
    scene.create(JOB_SETS, job_set("steps", *parts))
    scene.wait_for(lambda: ended(scene.find(JOB_SETS, "steps")) == "Completed: AllJobsCompleted", 90)
    scene.wait_for(lambda: {group.status.phase for group in scene.groups().values()} == {"Completed"}, 60)


def test_members_of_one_gang_that_come_in_turn(scene: Scene) -> None:
    """A gang of the user's own over parts that start in order cannot start; it says how many members are missing."""
    scene.create(POD_GROUPS, {"metadata": {"name": "all"}, "spec": {"minMember": 4, "queue": "default"}})
    mine = {names.GANG: "all", names.QUEUE: "default"}
    parts = replicated("driver", 1, gpus=0, labels=mine), replicated("worker", 3, labels=mine)
    scene.create(JOB_SETS, job_set("rl", *parts, labels={}, startupPolicy={"startupPolicyOrder": "InOrder"}))
    scene.waiting(1)
    scene.wait_for(lambda: scene.reasons().get("all", "").startswith("1 of the 4 pods that start together exist"))


def test_a_gang_over_several_parts(scene: Scene) -> None:
    """Parts that start at once can be one gang of the user's own: their pods count each for itself."""
    scene.create(POD_GROUPS, {"metadata": {"name": "all"}, "spec": {"minMember": 6, "queue": "default"}})
    mine = {names.GANG: "all", names.QUEUE: "default"}
    parts = replicated("driver", 2, labels=mine), replicated("worker", 2, jobs=2, labels=mine)
    with scene.cordoned(1):
        scene.create(JOB_SETS, job_set("rl", *parts, labels={}))
        scene.waiting(6)
    scene.running(6)


@pytest.mark.parametrize("state", ["waiting", "running"])
def test_deleted_in_the_middle(scene: Scene, state: str) -> None:
    """Pods and PodGroup go with the JobSet, and one of the same name is a gang anew."""
    one = job_set("train", replicated("node", 3, jobs=2))
    with scene.cordoned(1 if state == "waiting" else 0):
        scene.create(JOB_SETS, one)
        (scene.waiting if state == "waiting" else scene.running)(6)
        scene.client.delete(JOB_SETS, "train", scene.namespace)
        scene.create(JOB_SETS, one)
    scene.wait_for(lambda: len({pod.metadata.uid for pod in scene.seen.values()}) == 12, 90, "six pods more")
    pods = scene.running(6)
    uid = scene.find(JOB_SETS, "train")["metadata"]["uid"]
    assert {pod.metadata.labels["jobset.sigs.k8s.io/jobset-uid"] for pod in pods} == {uid}
    [group] = scene.groups().values()
    assert group.metadata.owner_references[0].uid == uid


def test_a_coordinator(scene: Scene) -> None:
    """Its address is on all pods, beside what Muster writes."""
    parts = replicated("driver", 1, gpus=0), replicated("worker", 2)
    scene.create(JOB_SETS, job_set("rl", *parts, coordinator={"replicatedJob": "driver"}))
    pods = scene.running(3)
    assert {pod.metadata.labels["jobset.sigs.k8s.io/coordinator"] for pod in pods} == {"rl-driver-0-0.rl"}
    assert {scene.env(pod)["PET_MASTER_ADDR"] for pod in pods} == {"rl-driver-0-0.rl", "rl-worker-0-0.rl"}


def test_what_has_ended_goes(scene: Scene) -> None:
    """A JobSet with ttlSecondsAfterFinished goes after that time, and its PodGroup with it."""
    scene.create(JOB_SETS, job_set("short", replicated("node", 2, run_s=1), ttlSecondsAfterFinished=2))
    scene.running(2)
    scene.wait_for(lambda: scene.find(JOB_SETS, "short") is None and not scene.groups(), 60, "nothing is left")


def test_exclusive_topology_of_single_pods(scene: Scene) -> None:
    """Where pods are placed one by one, JobSet's own exclusive placement works: one Job per rack."""
    scene.create(JOB_SETS, job_set("ex", replicated("node", 2, jobs=2), labels=QUEUE, annotations={EXCLUSIVE: RACK}))
    racks = {pod.metadata.name[:9]: scene.label_of_node(pod, RACK) for pod in scene.running(4)}
    assert len(set(racks.values())) == 2


def test_exclusive_topology_of_a_gang(scene: Scene) -> None:
    """It is refused, with what to write instead, and that keeps each Job in one rack."""
    scene.expected_refusals = 1
    part = replicated("node", 2, jobs=2)
    with pytest.raises(APIError, match=r"exclusive-topology\]: .* must be left out for gangs \(muster.dev/framework\)"):
        scene.create(JOB_SETS, job_set("ex", part, annotations={EXCLUSIVE: RACK}))
    slices = {f"{names.DOMAIN}/topology-slice-required": RACK, f"{names.DOMAIN}/topology-slice-size": "2"}
    part["template"]["spec"]["template"]["metadata"]["annotations"] = slices
    scene.create(JOB_SETS, job_set("ex", part))
    racks = {(pod.metadata.name[:9], scene.label_of_node(pod, RACK)) for pod in scene.running(4)}
    assert len(racks) == 2


def test_evicted_and_back(scene: Scene) -> None:
    """An eviction is no failure for a JobSet without restarts; its gang comes back whole when there is room."""
    scene.create(JOB_SETS, job_set("train", replicated("node", 2, jobs=3), failurePolicy={"maxRestarts": 0}))
    first = {pod.metadata.uid for pod in scene.running(6, "train")}
    with scene.evicted(6):
        assert not first & {pod.metadata.uid for pod in scene.waiting(6, "train", timeout_s=120)}
    scene.running(6, "train")
    assert (ended(scene.find(JOB_SETS, "train")), scene.find(JOB_SETS, "train")["status"]["restarts"]) == ("", 0)


def test_processes_that_are_killed(scene: Scene, plane: Plane, neighbours: Neighbours) -> None:
    """All controllers, while it waits and while it restarts: it is whole each time, and has failed at last."""

    def kill() -> None:
        for part in ("extender", "controller"):
            plane.part(part).kill()
        neighbours.restart("jobset")
        plane.mend()

    with scene.cordoned(1):
        scene.create(JOB_SETS, job_set("train", replicated("node", 3, jobs=2), failurePolicy={"maxRestarts": 1}))
        scene.waiting(6)
        kill()
    first = scene.running(6, timeout_s=150)
    scene.ends(first[3])
    kill()
    uids = {pod.metadata.uid for pod in first}
    scene.wait_for(lambda: not uids & {pod.metadata.uid for pod in scene.pods()}, 90, "the first attempt goes")
    again = scene.running(6, timeout_s=150)
    assert [scene.env(pod)["PET_NODE_RANK"] for pod in again] == [str(rank) for rank in range(6)]
    scene.ends(again[0])
    scene.wait_for(lambda: ended(scene.find(JOB_SETS, "train")) == "Failed: ReachedMaxRestarts", 90)
    scene.wait_for(lambda: scene.groups()["podgroup-jobset-train.node"].status.phase == "Completed", 60)


def test_an_elastic_job_that_never_grew_to_its_size(scene: Scene) -> None:
    """Six of its eight pods fit. When they have succeeded, the Job is complete with six, and so is the JobSet."""
    part = replicated("node", 8, run_s=5)
    part["template"]["spec"]["template"]["metadata"]["annotations"][names.ELASTIC] = "6:8"
    scene.create(JOB_SETS, job_set("grow", part))
    scene.wait_for(lambda: ended(scene.find(JOB_SETS, "grow")) == "Completed: AllJobsCompleted", 60, "it completes")
    assert scene.find(INDEXED_JOBS, "grow-node-0").spec.completions == 6
