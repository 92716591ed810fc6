"""PodGroups, Services and keys of workloads that are no Volcano Jobs: who gets them, for whose pods, and until when."""

from hashlib import sha256
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest
from builders import manifests
from gangs_world import JSON, World
from msgspec import structs

from controller.worker import Retry
from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.apps import STATEFUL_SETS
from muster.api.kubernetes.core import CONFIG_MAPS, CRON_JOBS, INDEXED_JOBS, PODS, SECRETS, SERVICES, Pod, PodStatus
from muster.api.kubernetes.meta import OwnerReference, ReportedCondition
from muster.api.muster.gang import workload_above
from muster.api.volcano.scheduling import POD_GROUPS, WORLD_ENDED, PodGroup, PodGroupStatus
from muster.kube.errors import Conflict, Forbidden, Invalid
from muster.workloads.jobset import JOB_SET, JOBSET_NAME
from muster.workloads.leader_worker_set import LEADER_WORKER_SET, LWS_NAME
from muster.workloads.table import gang_of

KEYS = [{"name": "mpi-ssh-auth", "secret": {"secretName": "train-mpi-ssh-auth"}}]


@pytest.fixture
def world() -> World:
    """A new one."""
    return World()


@pytest.mark.parametrize(("subdomain", "made"), [("train", [("train", "Job")]), ("mine", [])])
def test_a_job_in_no_queue_gets_its_service(world: World, subdomain: str, made: list[Any]) -> None:
    """Where its pods are found under its name; a template that names another subdomain has a Service of its own."""
    world.meet(world.owner(INDEXED_JOBS), subdomain=subdomain)
    assert world.made(SERVICES) == made
    assert not world.api.all(SECRETS)


def test_a_pod_that_only_claims_an_owner(world: World) -> None:
    """It has a workload's UID under another name, and does not end what is done for that workload."""
    owner = world.owner(INDEXED_JOBS)
    world.meet(msgspec.structs.replace(owner, name="other"), subdomain="other")
    world.api.remove(PODS, world.api.find(PODS, "x", "n"), at_once=True)
    world.meet(owner, subdomain="train")
    assert world.made(SERVICES) == [("train", "Job")]


def an_mpi_job(size: int) -> JSON:
    """The spec of a labelled Indexed Job of so many pods."""
    template = {"metadata": {"labels": {"muster.dev/framework": "mpi"}}, "spec": {"containers": [{"name": "node"}]}}
    return {"completionMode": "Indexed", "completions": size, "parallelism": size, "template": template}


def test_a_long_list_of_hosts_is_made_once(world: World) -> None:
    """By the formula by which the pod was shaped; not where the user has a ConfigMap of his own."""
    owner = world.owner(INDEXED_JOBS, spec=an_mpi_job(1000))
    lines = [f"train-{rank}{'.train' * (rank > 0)} slots=1\n" for rank in range(1000)]
    name = f"train-mpi-hostfile-{sha256(''.join(lines).encode()).hexdigest()[:10]}"
    for mounted in ("mine", name):
        volume = {"name": "mpi-hostfile", "configMap": {"name": mounted}}
        world.meet(owner, volumes=[volume], subdomain="train", containers=[{"name": "node"}])
        world.api.remove(PODS, world.api.find(PODS, "x", "n"), at_once=True)
    assert world.made(CONFIG_MAPS) == [(name, "Job")]
    assert "ConfigMapError" not in world.events.said


def test_a_list_of_hosts_that_has_changed(world: World) -> None:
    """A pod that mounts what nobody will make is told of."""
    volume = {"name": "mpi-hostfile", "configMap": {"name": "train-mpi-hostfile-0123456789"}}
    owner = world.owner(INDEXED_JOBS, spec=an_mpi_job(1000))
    world.meet(owner, volumes=[volume], subdomain="train", containers=[{"name": "node"}])
    assert not world.api.all(CONFIG_MAPS)
    assert "Job train has an outdated list of hosts; delete the pod" in world.events.said["ConfigMapError"]


def test_a_gang_that_may_not_move_stays_and_its_owner_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What else has changed is written all the same: the pods that came are members."""
    owner = world.owner(INDEXED_JOBS, spec={"completionMode": "Indexed", "completions": 4, "parallelism": 4})
    world.pod(owner, "muster", {"muster.dev/queue": "a"})
    assert world.group(owner)
    patch = world.api.merge_patch

    def merge_patch(res: Any, name: str, content: Any, *args: Any, **kwargs: Any) -> Any:
        if "queue" in content.get("spec", {}):
            raise Invalid("queue `b` status is `Closed`")
        return patch(res, name, content, *args, **kwargs)

    monkeypatch.setattr(world.api, "merge_patch", merge_patch)
    world.api.remove(PODS, world.api.find(PODS, "x", "n"), at_once=True)
    world.pod(owner, "muster", {"muster.dev/queue": "b"}, priorityClassName="high")
    group = world.group(owner)
    assert group
    assert (group.spec.queue, group.spec.priority_class_name) == ("a", "high")
    assert "queue `b` status is `Closed`. The PodGroup stays in queue a until" in world.events.said["PodGroupError"]


def test_others_have_their_services(world: World) -> None:
    """A JobSet's controller makes that of its Jobs, a user that of a StatefulSet; Muster that of a CronJob's Jobs."""
    world.meet(world.owner(INDEXED_JOBS, world.owner(JOB_SET.resource)), subdomain="train")
    assert not world.made(SERVICES)
    world = World()
    world.meet(world.owner(INDEXED_JOBS, world.owner(CRON_JOBS)), subdomain="train")
    assert world.made(SERVICES) == [("train", "Job")]
    world = World()
    world.meet(world.owner(STATEFUL_SETS), subdomain="train")
    assert not world.made(SERVICES)


@pytest.mark.parametrize(("owner", "label", "of"), [
    (INDEXED_JOBS, "", INDEXED_JOBS),
    (STATEFUL_SETS, "", STATEFUL_SETS),
    (INDEXED_JOBS, JOBSET_NAME, JOB_SET.resource),
    (STATEFUL_SETS, LWS_NAME, LEADER_WORKER_SET.resource),
])  # fmt: skip
def test_keys_belong_to_the_workload(world: World, owner: Resource[Any], label: str, of: Resource[Any]) -> None:
    """To the highest owner that the pod names: all pods of a world have the same keys."""
    if label:
        world.owner(of)
    world.meet(world.owner(owner), {label: "train"} if label else {}, volumes=KEYS)
    assert world.made(SECRETS) == [("train-mpi-ssh-auth", of.kind)]


def test_a_gang_of_a_framework(world: World) -> None:
    """Its PodGroup counts all pods that the Job has at a time, and the Job gets its Service."""
    owner = world.owner(INDEXED_JOBS, spec={"parallelism": 3, "completions": 3})
    pod = world.pod(owner, "muster", subdomain="train")
    group = world.group(owner)
    assert group
    assert group.spec.min_member == 3
    world.rendezvous.process(pod.metadata.key)
    assert world.made(SERVICES) == [("train", "Job")]


@pytest.mark.parametrize(("phases", "members"), [((), 1), (("Succeeded",), 2), (("Succeeded", "Failed"), 2)])
def test_a_gang_waits_for_no_members_that_are_done(world: World, phases: tuple[str, ...], members: int) -> None:
    """Two of three indexes have succeeded; those whose pods still exist count as members."""
    owner = world.owner(INDEXED_JOBS, spec={"parallelism": 3, "completions": 3}, status={"succeeded": 2})
    pod = world.pod(owner, "muster")
    for number, phase in enumerate(phases):
        metadata = structs.replace(pod.metadata, name=f"done-{number}", uid=f"done-{number}")
        world.pods.add_object(Pod(metadata=metadata, spec=pod.spec, status=PodStatus(phase=phase)))
    group = world.group(owner)
    assert group
    assert group.spec.min_member == members


@pytest.mark.parametrize(("phases", "end"), [
    (("", ""), []),
    (("Succeeded", ""), []),
    (("Succeeded", "Succeeded"), [""]),
    (("Succeeded", "Failed"), ["1 pod failed"]),
])  # fmt: skip
def test_plain_pods_of_a_group_of_kueue(world: World, phases: tuple[str, str], end: list[str]) -> None:
    """They start together, and their PodGroup is deleted after the last of them; its phase shows how they ended."""
    labels = {names.QUEUE: "default", names.KUEUE_GROUP: "sample"}
    for number in range(2):
        metadata = {"name": f"p{number}", "labels": labels, "annotations": {names.KUEUE_TOTAL: "2"}}
        world.pods.add_object(world.api.add(PODS, {"metadata": metadata, "spec": {"schedulerName": "muster"}}))
    world.pod_groups.process("n/podgroup-kueue-sample")
    [group] = world.api.all(POD_GROUPS)
    assert (group.metadata.name, group.spec.min_member) == ("podgroup-kueue-sample", 2)
    assert not group.metadata.owner_references
    assert names.INDEPENDENT not in group.metadata.annotations
    world.groups.add_object(group)
    for number, left in ((0, 1), (1, 0)):
        pod = world.pods.get(f"n/p{number}")
        world.pods.discard(f"n/p{number}")
        if phases[number] and pod:
            world.pods.add_object(structs.replace(pod, status=PodStatus(phase=phases[number])))
        world.pod_groups.process("n/podgroup-kueue-sample")
        assert len(world.api.all(POD_GROUPS)) == left
    written = [group.status for kind, group in world.api.changes(POD_GROUPS) if kind == "MODIFIED"]
    assert [status.ending for status in written if status.phase == "Completed"] == end


ELASTIC_JOB: JSON = {
    "completionMode": "Indexed",
    "parallelism": 2,
    "completions": 2,
    "template": {"metadata": {"annotations": {names.ELASTIC: "1:2"}}},
}


def elastic_pods(world: World, owner: OwnerReference, labels: JSON) -> None:
    """The pods of an elastic Job in the cache: index 0 has succeeded, index 1 has not started."""
    metadata, gates = {"name": f"second-of-{owner.name}"}, [{"name": names.GATE}]
    pod = world.pod(owner, "muster", {**labels, names.COMPLETION_INDEX: "1"}, metadata=metadata, schedulingGates=gates)
    labels = {**pod.metadata.labels, names.COMPLETION_INDEX: "0"}
    first = structs.replace(pod.metadata, name=f"first-of-{owner.name}", uid=f"first-of-{owner.name}", labels=labels)
    spec = structs.replace(pod.spec, node_name="a", scheduling_gates=[])
    world.pods.add_object(Pod(metadata=first, spec=spec, status=PodStatus(phase="Succeeded")))


def end_world(world: World, group: PodGroup) -> None:
    """The planner's note that no further member of the gang is started, and the controller's pass after it."""
    waits = {"type": "Unschedulable", "status": "True", "reason": WORLD_ENDED}
    world.groups.add_object(structs.replace(group, status=msgspec.convert({"conditions": [waits]}, PodGroupStatus)))
    world.pod_groups.process(group.metadata.key)


def test_a_condition_that_a_user_wrote_ends_no_job(world: World) -> None:
    """Whoever may write PodGroups, but no Jobs, cannot complete a Job of which no pod has run."""
    owner = world.owner(INDEXED_JOBS, spec=ELASTIC_JOB)
    labels = {names.FRAMEWORK: "torch", names.COMPLETION_INDEX: "0"}
    world.pod(owner, "muster", labels, schedulingGates=[{"name": names.GATE}])
    group = world.group(owner)
    assert group
    end_world(world, group)
    assert world.api.find(INDEXED_JOBS, "train", "n").spec.completions == 2


def test_an_elastic_job_whose_world_has_ended_gets_fewer_completions(world: World) -> None:
    """Only after the planner has found that the world has ended, and once: its owner may set them back."""
    owner = world.owner(INDEXED_JOBS, spec=ELASTIC_JOB)
    elastic_pods(world, owner, {names.FRAMEWORK: "torch"})
    group = world.group(owner)
    assert group
    assert world.api.find(INDEXED_JOBS, "train", "n").spec.completions == 2
    end_world(world, group)
    job = world.api.find(INDEXED_JOBS, "train", "n")
    assert (job.spec.completions, job.spec.parallelism) == (1, 1)
    assert "completions and parallelism lowered to 1" in world.events.said[WORLD_ENDED]
    world.api.merge_patch(INDEXED_JOBS, "train", {"spec": {"completions": 2, "parallelism": 2}}, "n")
    world.pod_groups.process(f"n/podgroup-{owner.uid}")
    assert world.api.find(INDEXED_JOBS, "train", "n").spec.completions == 2


def test_a_job_that_has_changed_since_it_was_read_keeps_its_completions(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its owner may have resized it for another run; the controller reads it again."""
    owner = world.owner(INDEXED_JOBS, spec=ELASTIC_JOB)
    elastic_pods(world, owner, {names.FRAMEWORK: "torch"})
    group, get = world.group(owner), world.api.get
    assert group

    def get_before_a_change(resource: Resource[Any], name: str, *where: Any, **more: Any) -> Any:
        found = get(resource, name, *where, **more)
        if resource is INDEXED_JOBS:
            world.api.change(resource, name, {"metadata": {"labels": {"run": "2"}}}, "n")
        return found

    monkeypatch.setattr(world.api, "get", get_before_a_change)
    with pytest.raises(Conflict):
        end_world(world, group)
    assert world.api.find(INDEXED_JOBS, "train", "n").spec.completions == 2


def test_each_job_of_an_elastic_jobset_gets_fewer_completions(world: World) -> None:
    """Each by its own pods, those that have ended included; a Job of which no pod has started gets none."""
    resource, part, _, labels, _ = PARTS["JobSet"]
    above = world.owner(resource)
    for number in "01":
        labels = {**labels, "jobset.sigs.k8s.io/job-index": number}
        metadata = {"name": f"train-node-{number}", "labels": labels}
        elastic_pods(world, world.owner(part, above, metadata=metadata, spec=ELASTIC_JOB), labels)
    waiting = world.owner(part, above, metadata={"name": "train-node-2", "labels": labels}, spec=ELASTIC_JOB)
    labels, gates = {**labels, names.COMPLETION_INDEX: "0"}, [{"name": names.GATE}]
    world.pod(waiting, "muster", labels, metadata={"name": "waiting"}, schedulingGates=gates)
    world.pod_groups.process("n/podgroup-jobset-train.node")
    [group] = world.api.all(POD_GROUPS)
    end_world(world, group)
    assert [job.spec.completions for job in world.api.all(INDEXED_JOBS)] == [1, 1, 0]


PARTS = {
    "JobSet": (
        JOB_SET.resource,
        INDEXED_JOBS,
        {"completionMode": "Indexed", "parallelism": 2, "completions": 2},
        {
            JOBSET_NAME: "train",
            "jobset.sigs.k8s.io/replicatedjob-name": "node",
            "jobset.sigs.k8s.io/replicatedjob-replicas": "2",
            "jobset.sigs.k8s.io/job-index": "0",
        },
        "podgroup-jobset-train.node",
    ),
    "LeaderWorkerSet": (
        LEADER_WORKER_SET.resource,
        STATEFUL_SETS,
        {},
        {LWS_NAME: "train", "leaderworkerset.sigs.k8s.io/group-index": "1"},
        "podgroup-lws-train.1",
    ),
}


@pytest.mark.parametrize("kind", PARTS)
def test_one_gang_over_the_parts_of_a_world(world: World, kind: str) -> None:
    """It belongs to the workload, counts the pods of all parts, and is over with it; not that of an earlier one."""
    resource, part, spec, labels, name = PARTS[kind]
    above = world.owner(resource)
    owner = world.owner(part, above, metadata={"labels": labels}, spec=spec)
    pod = world.pod(owner, "muster", labels, metadata={"annotations": {"leaderworkerset.sigs.k8s.io/size": "4"}})
    world.pod_groups.process(f"n/{name}")
    [group] = world.api.all(POD_GROUPS)
    world.groups.add_object(group)
    assert (group.metadata.name, group.metadata.controller.uid, group.spec.min_member) == (name, above.uid, 4)
    world.pods.discard(pod.metadata.key)
    status = {"status": {"conditions": [{"type": "Completed", "status": "True"}]}}
    world.api.merge_patch(resource, "train", status, "n")
    world.pod_groups.process(f"n/{name}")
    assert [each.status.phase for each in world.api.all(POD_GROUPS)] == (["Completed"] if kind == "JobSet" else [])


def test_workers_of_a_leader_have_the_queue_of_their_set(world: World) -> None:
    """Without a framework their StatefulSet is a gang of its own; its controller is the leader's pod."""
    moved = {"annotations": {"muster.dev/moved-to": "other"}}
    above = world.owner(LEADER_WORKER_SET.resource, metadata=moved)
    leader = world.owner(PODS, world.owner(STATEFUL_SETS, above), metadata={"name": "train-0"}, spec={})
    workers = world.owner(STATEFUL_SETS, leader, metadata={"name": "train-0"}, spec={})
    world.pod(workers, "muster")
    world.pod_groups.process(f"n/podgroup-{workers.uid}")
    [group] = world.api.all(POD_GROUPS)
    noted = workload_above(group.metadata)
    assert noted is not None
    assert (noted.kind, noted.uid, group.spec.queue) == ("LeaderWorkerSet", above.uid, "other")


def test_a_gang_of_an_earlier_jobset(world: World) -> None:
    """A JobSet of the same name waits until that is gone."""
    resource, part, spec, labels, name = PARTS["JobSet"]
    gone = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "train", "uid": "gone"}
    metadata = {"name": name, "ownerReferences": [{**gone, "controller": True}]}
    world.groups.add_object(world.api.add(POD_GROUPS, {"metadata": metadata, "spec": {"minMember": 9}}))
    owner = world.owner(part, world.owner(resource), metadata={"labels": labels}, spec=spec)
    pod = world.pod(owner, "muster", labels)
    world.pod_groups.process(f"n/{name}")
    [group] = world.api.all(POD_GROUPS)
    assert group.spec.min_member == 9
    assert not world.api.get(PODS, pod.metadata.name, "n").metadata.annotations
    world.groups.discard(f"n/{name}")
    world.api.delete(POD_GROUPS, name, "n")
    world.pod_groups.process(f"n/{name}")
    [group] = world.api.all(POD_GROUPS)
    assert group.spec.min_member == 4


def test_a_refused_service_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """By an event of the workload whose pods wait for it; it is tried again."""
    monkeypatch.setattr(world.api, "create", Mock(side_effect=Forbidden("exceeded quota: services")))
    with pytest.raises(Retry):
        world.meet(world.owner(INDEXED_JOBS), subdomain="train")
    told = "Job train: Service train is refused: exceeded quota: services; the pods wait for it"
    assert world.events.said == {"ServiceError": told}


def test_somebody_elses_service_is_told(world: World) -> None:
    """The user reads at the Job why its pods cannot find each other."""
    world.api.add(SERVICES, {"metadata": {"name": "train"}})
    world.meet(world.owner(INDEXED_JOBS), subdomain="train")
    assert world.events.said["ServiceError"] == (
        "Job train: Service train exists already and does not belong to this Job; the pods cannot find each other by "
        "name. Give the Job another name"
    )


@pytest.mark.parametrize(("resource", "change", "phase"), [
    (INDEXED_JOBS, {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}, "Completed"),
    (INDEXED_JOBS, {"spec": {"suspend": True}}, None),
    (STATEFUL_SETS, {"spec": {"replicas": 0}}, None),
    (STATEFUL_SETS, {}, "Pending"),
])  # fmt: skip
def test_the_end_of_a_gang(world: World, resource: Resource[Any], change: JSON, phase: str | None) -> None:
    """Without pods a gang is complete with its Job, and gone while its owner wants none; else it waits for pods.

    A gang that is gone for that reason had it as its last condition, for the history.
    """
    owner = world.owner(resource)
    pod = world.pod(owner, "muster")
    assert world.group(owner)
    world.pods.discard(pod.metadata.key)
    world.api.merge_patch(resource, "train", change, "n")
    group = world.group(owner)
    assert (group.status.phase if group else None) == phase
    groups: list[Any] = [seen for _, seen in world.api.changes(POD_GROUPS)]
    reasons = {each.reason for seen in groups for each in seen.status.conditions}
    assert ("Suspended" in reasons) is (group is None)


@pytest.mark.parametrize(("reason", "message", "ending"), [
    ("BackoffLimitExceeded", "Job has reached the specified backoff limit",
        "more of its pods failed than its backoffLimit 6 allows"),
    ("DeadlineExceeded", "Job was active too long", "Job was active too long"),
    ("", "", "the Job has no message"),
])  # fmt: skip
def test_the_group_of_a_failed_job_says_why(world: World, reason: str, message: str, ending: str) -> None:
    """Its pods are gone, and the PodGroup has what is left to read."""
    owner = world.owner(INDEXED_JOBS)
    pod = world.pod(owner, "muster")
    assert world.group(owner)
    world.pods.discard(pod.metadata.key)
    failed = {"type": "Failed", "status": "True", "reason": reason, "message": message}
    world.api.merge_patch(INDEXED_JOBS, "train", {"spec": {"backoffLimit": 6}, "status": {"conditions": [failed]}}, "n")
    group = world.group(owner)
    assert group is not None
    assert (group.status.phase, group.status.ending) == ("Completed", ending)


@pytest.mark.parametrize("evicted", [True, False])
def test_the_group_of_a_failed_job_names_the_deleted_pod(world: World, *, evicted: bool) -> None:
    """The first one, which is gone by the end; the Job itself deletes others, and evicted ones do not count."""
    owner = world.owner(INDEXED_JOBS)
    pod = world.pod(owner, "muster")
    assert world.group(owner)
    disrupted = [ReportedCondition(type="DisruptionTarget", status="True")] if evicted else []
    going = structs.replace(
        pod,
        metadata=structs.replace(pod.metadata, deletion_timestamp="2027-01-15T08:00:30Z"),
        status=structs.replace(pod.status, conditions=disrupted),
    )
    [pod_seen, *_] = [handler for _, handler in world.pod_groups.handlers]
    pod_seen(None, pod)
    pod_seen(pod, going)
    world.pods.discard(pod.metadata.key)
    pod_seen(going, None)
    failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
    world.api.merge_patch(INDEXED_JOBS, "train", {"spec": {"backoffLimit": 0}, "status": {"conditions": [failed]}}, "n")
    group = world.group(owner)
    why = "more of its pods failed than its backoffLimit 0 allows"
    assert group is not None
    assert group.status.ending == (why if evicted else f"{why}: pod {pod.metadata.name} was deleted")


def in_group(world: World, job: OwnerReference, name: str, labels: JSON | None = None, **spec: Any) -> str:
    """Makes a pod of a Job that has `spec.scheduling`: admission has marked its template. Returns its gang, if any."""
    metadata = manifests.manifest("v1", "Pod", name, labels=labels, annotations={"muster.dev/native-group": "true"})
    metadata["metadata"]["ownerReferences"] = [msgspec.to_builtins(job)]
    world.api.add(PODS, {**metadata, "spec": {"schedulerName": "muster", **spec}})
    return seen(world, job, name)


def seen(world: World, job: OwnerReference, name: str) -> str:
    """The gang of a pod after a look at those of its Job."""
    for pod in world.api.all(PODS):
        world.pods.add_object(pod)
    world.group(job)
    found = world.api.find(PODS, name, "n")
    world.pods.add_object(found)
    return gang_of(found) or ""


def test_a_pod_that_lost_its_native_group_stays_in_the_gang_of_the_others(world: World) -> None:
    """While the gate is off, the API server drops the group of new pods; in another gang they would wait for ever."""
    job = world.owner(INDEXED_JOBS)
    assert in_group(world, job, "old", schedulingGroup={"podGroupName": "train-g"}) == "native.train-g"
    own = {"muster.dev/gang": f"podgroup-{job.uid}"}
    assert in_group(world, job, "lost", own) == "native.train-g"
    world.api.remove(PODS, world.api.find(PODS, "old", "n"), at_once=True)
    world.pods.discard("n/old")
    assert in_group(world, job, "next", own) == "native.train-g"
    assert not world.api.all(POD_GROUPS)


def test_pods_of_a_job_none_of_whose_pods_has_a_native_group_have_their_own(world: World) -> None:
    """Nor does a pod leave that which is on a node."""
    job = world.owner(INDEXED_JOBS)
    assert in_group(world, job, "one", nodeName="n0") == f"podgroup-{job.uid}"
    in_group(world, job, "other", schedulingGroup={"podGroupName": "train-g"})
    assert seen(world, job, "one") == f"podgroup-{job.uid}"
