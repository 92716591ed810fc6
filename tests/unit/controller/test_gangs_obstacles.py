"""What is in the way of gangs' PodGroups and of the objects by which pods find each other, and what leads to a pass."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from builders import manifests
from gangs_world import World

from controller.gangs import rendezvous
from controller.worker import Retry
from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.apps import REPLICA_SETS
from muster.api.kubernetes.core import CONFIG_MAPS, INDEXED_JOBS, NAMESPACES, PODS, SECRETS, SERVICES
from muster.api.kubernetes.meta import OwnerReference
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.errors import Forbidden, Invalid

KEYS = [{"name": "mpi-ssh-auth", "secret": {"secretName": "train-mpi-ssh-auth"}}]
REASON = 'admission webhook "podgroups.muster.dev" denied the request: queue `a` is closed'


@pytest.fixture
def world() -> World:
    """A new one."""
    return World()


def refuse(world: World, monkeypatch: pytest.MonkeyPatch, error: Exception, verb: str, kind: Resource[Any]) -> None:
    """This verb is refused for a kind."""
    call = getattr(world.api, verb)

    def refused(res: Any, *args: Any, **more: Any) -> Any:
        if res is kind:
            raise error
        return call(res, *args, **more)

    monkeypatch.setattr(world.api, verb, refused)


def due(world: World, after_s: float) -> list[str]:
    """The keys of PodGroups that are due after a time, and not before it."""
    queue = world.pod_groups.worker.queue
    assert queue.get(0) is None
    world.now_s += after_s - 0.01
    assert queue.get(0) is None
    world.now_s += 0.02
    key = queue.get(0)
    if key is None:
        return []
    queue.done(key)
    return [key]


def test_a_podgroup_that_is_refused_is_told_of_and_tried_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the webhook's reason alone, and what becomes of the pods meanwhile."""
    owner = world.owner(INDEXED_JOBS)
    world.pod(owner, "muster")
    refuse(world, monkeypatch, Forbidden(REASON), "create", POD_GROUPS)
    assert world.group(owner) is None
    told = world.events.said["PodGroupError"]
    assert told.startswith("Job train: its PodGroup is refused: queue `a` is closed. The pods have no gang")
    assert told.endswith("names another queue, or the reason for the refusal is gone")
    assert due(world, 5.0) == [f"n/podgroup-{owner.uid}"]


def test_a_podgroup_that_is_deleted_under_its_pods_is_made_again(world: World) -> None:
    """One without pods is not."""
    owner = world.owner(INDEXED_JOBS)
    pod = world.pod(owner, "muster")
    group = world.group(owner)
    queue = world.pod_groups.worker.queue
    world.api.remove(POD_GROUPS, group)
    world.groups.discard(f"n/podgroup-{owner.uid}")
    world.pod_groups._group_seen(group, None)
    assert queue.get(0) == f"n/podgroup-{owner.uid}"
    assert world.group(owner)
    world.pods.discard(pod.metadata.key)
    world.pod_groups._group_seen(group, None)
    queue.done(f"n/podgroup-{owner.uid}")
    assert queue.get(0) is None
    assert world.pod_groups._fits == {}


def test_a_podgroup_whose_owner_is_gone_is_not_made_again(world: World) -> None:
    """The pods stay for a moment; a new PodGroup would have no creator, and the history would forget the user."""
    owner = world.owner(INDEXED_JOBS)
    world.pod(owner, "muster")
    group = world.group(owner)
    world.api.remove(POD_GROUPS, group)
    world.groups.discard(f"n/podgroup-{owner.uid}")
    [job] = world.api.all(INDEXED_JOBS)
    world.api.remove(INDEXED_JOBS, job)
    world.pod_groups._group_seen(group, None)
    assert world.group(owner) is None


@pytest.mark.parametrize(("phase", "queued"), [("Running", True), ("Completed", False), ("Pending", False)])
def test_a_podgroup_in_another_phase_is_looked_after(world: World, phase: str, *, queued: bool) -> None:
    """But for the one that this worker writes."""
    owner = world.owner(INDEXED_JOBS)
    world.pod(owner, "muster")
    before = world.group(owner)
    after = world.api.change(POD_GROUPS, f"podgroup-{owner.uid}", {"status": {"phase": phase}}, "n")
    world.pod_groups._group_seen(before, after)
    assert due(world, 0.5) == ([f"n/podgroup-{owner.uid}"] if queued else [])


def test_which_pods_lead_to_a_pass(world: World) -> None:
    """One that is new to its gang at once, one that has ended soon, and those of Volcano Jobs and others never."""
    owner, job = world.owner(INDEXED_JOBS), msgspec.convert(manifests.job_owner("j"), OwnerReference)
    queue, key = world.pod_groups.worker.queue, f"n/podgroup-{owner.uid}"
    new = world.pod(owner, "muster")
    world.pod_groups._pod_seen(None, new)
    assert queue.get(0) == key
    world.group(owner)
    queue.done(key)
    [known] = world.api.all(PODS)
    world.pod_groups._pod_seen(new, known)
    ended = world.api.change(PODS, "x", {"status": {"phase": "Succeeded"}}, "n", subresource="status")
    world.pod_groups._pod_seen(known, ended)
    assert due(world, 0.5) == [key]
    queue.done(key)
    slot = {"volcano.sh/task-spec": "w", "volcano.sh/task-index": "0"}
    world.pod_groups._pod_seen(None, msgspec.convert(manifests.pod("y", "n", scheduler="default-scheduler"), type(new)))
    of_job = msgspec.structs.replace(new.metadata, owner_references=[job], annotations=slot, name="j-w-0")
    world.pod_groups._pod_seen(None, msgspec.structs.replace(new, metadata=of_job))
    assert due(world, 0.5) == []


@pytest.mark.parametrize("ended", [True, False])
def test_a_gang_whose_pods_have_gone_is_looked_after_until_its_job_ends(world: World, *, ended: bool) -> None:
    """Its owner is not watched; the first checks follow soon, and later ones in five seconds."""
    owner = world.owner(INDEXED_JOBS)
    pod = world.pod(owner, "muster")
    assert world.group(owner)
    world.pods.discard(pod.metadata.key)
    status = {"conditions": [{"type": "Complete", "status": "True"}]} if ended else {}
    world.api.merge_patch(INDEXED_JOBS, "train", {"status": status}, "n")
    for delay_s in (0.5, 1.0, 2.0, 4.0, 5.0, 5.0):
        world.group(owner)
        assert due(world, delay_s) == ([] if ended else [f"n/podgroup-{owner.uid}"])


def test_a_move_outlasts_a_pass_that_did_not_know_of_it(world: World) -> None:
    """A pod has come meanwhile; Kubernetes copies the note of the move from the Deployment only later."""
    labels = {"muster.dev/queue": "a"}
    owner = world.owner(REPLICA_SETS, spec={"replicas": 2})
    world.pod(owner, "muster", labels)
    group = world.group(owner)
    assert group
    moved = world.api.change(POD_GROUPS, group.metadata.name, {"spec": {"queue": "b"}}, "n")
    world.groups.add_object(moved)
    world.pod_groups._group_seen(group, moved)
    world.pod(owner, "muster", labels, metadata={"name": "y"})
    moved_back = world.group(owner)
    assert moved_back
    assert moved_back.spec.queue == "a"
    world.pod_groups._group_seen(moved, moved_back)
    world.api.change(REPLICA_SETS, "train", {"metadata": {"annotations": {names.MOVED_TO: "b"}}}, "n")
    assert due(world, 5.0) == [group.metadata.key]
    last = world.group(owner)
    assert last
    assert last.spec.queue == "b"


@pytest.mark.parametrize("named", [True, False])
def test_a_gang_stays_in_the_queue_of_its_namespace(world: World, *, named: bool) -> None:
    """Admission has moved it there from the default one, which pods name, or their lack of a queue."""
    labels = {"muster.dev/queue": "default"} if named else {}
    namespace = {"metadata": {"name": "n", "annotations": {"scheduling.volcano.sh/queue-name": "team"}}}
    world.api.add(NAMESPACES, namespace)
    owner = world.owner(INDEXED_JOBS, spec={"parallelism": 2})
    world.pod(owner, "muster", labels)
    group = world.group(owner)
    assert group
    world.api.change(POD_GROUPS, group.metadata.name, {"spec": {"queue": "team"}}, "n")
    world.group(owner)
    world.api.remove(PODS, world.api.find(PODS, "x", "n"), at_once=True)
    world.pod(owner, "muster", labels)
    group = world.group(owner)
    assert group
    assert group.spec.queue == "team"
    if named:
        world.api.change(NAMESPACES, "n", {"metadata": {"annotations": {"scheduling.volcano.sh/queue-name": None}}})
        world.api.remove(PODS, world.api.find(PODS, "x", "n"), at_once=True)
        world.pod(owner, "muster", labels)
        group = world.group(owner)
        assert group
        assert group.spec.queue == "default"


def test_a_service_that_is_refused_is_told_of(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name may be none for a Service; the pass is over."""
    refuse(world, monkeypatch, Invalid("metadata.name: no DNS label"), "create", SERVICES)
    world.meet(world.owner(INDEXED_JOBS), subdomain="train")
    assert world.events.said["ServiceError"] == (
        "Job train: Service train is refused: metadata.name: no DNS label; the pods cannot find each other by name. "
        "Give the Job another name"
    )


@pytest.mark.parametrize("of", ["another Job", "a user"])
def test_keys_that_are_there_already(world: World, of: str) -> None:
    """Those of an earlier Job are about to go; a user may have made them."""
    owners = [manifests.owner("train", "Job", "batch/v1", "earlier")] if of == "another Job" else []
    world.api.add(SECRETS, {"metadata": {"name": "train-mpi-ssh-auth", "ownerReferences": owners}})
    owner = world.owner(INDEXED_JOBS)
    if owners:
        with pytest.raises(Retry, match="Secret train-mpi-ssh-auth belongs to Job train"):
            world.meet(owner, volumes=KEYS)
        why = "Secret train-mpi-ssh-auth belongs to Job train; waiting until it is gone"
        assert world.events.said == {"SecretError": f"Job train: {why}"}
    else:
        world.meet(owner, volumes=KEYS)
        assert world.events.said == {}
    assert len(world.api.all(SECRETS)) == 1


WITHOUT: dict[str, Callable[[World, OwnerReference], object]] = {
    "keys that the user names": lambda world, owner: world.meet(owner,
        volumes=[{"name": "mpi-ssh-auth", "secret": {"secretName": "mine"}}]),
    "an owner that is gone": lambda world, owner: world.meet(msgspec.structs.replace(owner, uid="gone"), volumes=KEYS,
        subdomain="train"),
}  # fmt: skip


@pytest.mark.parametrize("act", WITHOUT.values(), ids=WITHOUT)
def test_pods_for_which_nothing_is_made(world: World, act: Callable[[World, OwnerReference], object]) -> None:
    """And nobody is told of it."""
    act(world, world.owner(INDEXED_JOBS))
    assert (world.api.all(SECRETS), world.api.all(SERVICES), world.api.all(CONFIG_MAPS)) == ([], [], [])
    assert world.events.said == {}


def test_hosts_of_a_pod_that_is_gone_are_the_next_ones_matter(world: World) -> None:
    """The pass is not remembered: the next pod of the workload leads to the ConfigMap."""
    owner = world.owner(INDEXED_JOBS)
    volume = {"name": "mpi-hostfile", "configMap": {"name": "train-mpi-hostfile-0"}}
    pod = world.pod(owner, "default-scheduler", volumes=[volume])
    world.api.remove(PODS, pod, at_once=True)
    world.rendezvous.process(pod.metadata.key)
    assert world.rendezvous._done == {}
    world.rendezvous._pod_seen(None, pod)
    assert world.rendezvous.worker.queue.get(0) == pod.metadata.key


def test_one_pod_of_a_workload_leads_to_a_pass(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """When it comes, and needs something that is not made yet; so many workloads are remembered."""
    owner, queue = world.owner(INDEXED_JOBS), world.rendezvous.worker.queue
    pod = world.pod(owner, "default-scheduler", volumes=KEYS)
    world.rendezvous._pod_seen(pod, pod)
    assert queue.get(0) is None
    world.rendezvous._pod_seen(None, pod)
    assert queue.get(0) == pod.metadata.key
    world.rendezvous.process(pod.metadata.key)
    queue.done(pod.metadata.key)
    world.rendezvous._pod_seen(None, pod)
    assert queue.get(0) is None
    monkeypatch.setattr(rendezvous, "_MAX_KNOWN", 1)
    world.api.remove(PODS, pod, at_once=True)
    other = world.pod(msgspec.structs.replace(owner, uid="other"), "default-scheduler", volumes=KEYS)
    world.rendezvous.process(other.metadata.key)
    assert len(world.rendezvous._done) == 1


def test_a_pod_that_names_a_podgroup_that_does_not_exist_is_told_so(world: World) -> None:
    """After a moment, in which the PodGroup may come; neither with one, nor with a node."""
    for label in ("muster.dev/gang", "scheduling.x-k8s.io/pod-group"):
        meta = {"name": f"p-{label[:3]}", "labels": {label: "mine"}}
        pod = world.api.add(PODS, {"metadata": meta, "spec": {"schedulerName": "muster"}})
        world.pods.add_object(pod)
        world.pod_groups._pod_seen(None, pod)
    queue = world.pod_groups.worker.queue
    for after_s, found in ((9.9, False), (0.2, True)):
        world.now_s += after_s
        assert ("n/mine" in iter(lambda: queue.get(0), None)) is found
    world.pod_groups.process("n/mine")
    why = "the pod waits for PodGroup mine, which does not exist; create the PodGroup, or correct its name"
    assert world.events.said.pop("PodGroupMissing") == f"Pod p-sch: {why}"
    world.api.add(POD_GROUPS, {"metadata": {"name": "mine"}, "spec": {"minMember": 2}})
    world.pod_groups.process("n/mine")
    assert not world.events.said
