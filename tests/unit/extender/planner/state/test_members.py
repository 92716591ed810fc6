"""Which pods are members of a gang, and the slots of those that do not say which one is theirs."""

from itertools import permutations
from typing import Any

import pytest
from extender_world import World

from muster.api import names
from muster.api.kubeflow.jobset import JOB_SETS
from muster.api.kubernetes.core import Pod, PodSpec, PodStatus
from muster.api.kubernetes.meta import OwnerReference
from muster.api.muster.gang import DEFAULT_POD_SET, Slot

KEY = "ns/g"


def owner(kind: str, name: str, uid: str) -> list[OwnerReference]:
    """The reference to a controller."""
    api_version = JOB_SETS.api_version if kind == JOB_SETS.kind else "batch/v1"
    return [OwnerReference(api_version=api_version, kind=kind, name=name, uid=uid, controller=True)]


def join(world: World, name: str, *, node: str = "", annotations: Any = (), phase: str = "", **meta: Any) -> Pod:
    """A pod of the gang that does not say which slot is its own, unless its annotations do."""
    said = {names.GROUP_NAME: "g", **dict(annotations)}
    status = PodStatus(phase=phase or ("Running" if node else "Pending"))
    spec = PodSpec(scheduler_name="volcano", node_name=node)
    pod = Pod(metadata=world.meta(name, uid=name, annotations=said, **meta), spec=spec, status=status)
    world.state.on_pod(None, pod)
    return pod


def indexed(job: str, index: int) -> dict[str, Any]:
    """The metadata of a pod that an Indexed Job makes."""
    return {"owner_references": owner("Job", job, f"uid-{job}"), "annotations": {names.COMPLETION_INDEX: str(index)}}


def by_uid(uid: str) -> dict[str, Any]:
    """A pod that the owner makes itself."""
    return {"owner_references": owner("MPIJob", "train", uid)}


def by_label(uid: str) -> dict[str, Any]:
    """A pod that a Job of the owner makes; JobSet writes its UID into a label."""
    labels = {"jobset.sigs.k8s.io/jobset-uid": uid}
    return {"owner_references": owner("Job", "train-node-0", f"job-{uid}"), "labels": labels}


def slots(world: World) -> dict[str, int]:
    """Name of each pod that waits → its rank in the only pod set."""
    (pods,) = world.view(KEY).pod_sets
    return {pod.name: rank for rank, pod in pods.waiting.items()}


@pytest.mark.parametrize("order", [*permutations("abc")], ids="".join)
def test_members_that_join_one_by_one(order: tuple[str, ...]) -> None:
    """The gang is looked at in between, as in a cluster; nobody takes the slot of one who was there before."""
    world = World()
    world.pod_group("g", 2)
    before: dict[str, int] = {}
    for number, name in enumerate(order, start=1):
        join(world, name)
        assert sorted(slots(world).values()) == list(range(number))
        assert before.items() <= slots(world).items()
        before = slots(world)


def test_indexes_of_several_jobs() -> None:
    """The index counts in each Job: in a gang of both, those of the second follow, and nobody with a node moves."""
    world = World()
    world.pod_group("g", 2)
    join(world, "node-0", node="node-1", **indexed("node", 0))
    join(world, "launcher-0", **indexed("launcher", 0))
    join(world, "node-1", **indexed("node", 1))
    assert slots(world) == {"node-1": 1, "launcher-0": 2}
    assert world.view(KEY).pod_sets[0].taken == {0: "node-1"}


def test_a_successor_waits_for_the_slot_of_its_predecessor() -> None:
    """A Job of the same name takes over the indexes: a pod of the old one that is still there is in the way."""
    world = World()
    world.pod_group("g", 2)
    join(world, "old", node="node-1", **indexed("node", 0))
    join(world, "new", **indexed("node", 0))
    assert (world.view(KEY).pod_sets[0].taken, slots(world)) == ({0: "node-1"}, {"new": 0})


@pytest.mark.parametrize("pinned", [False, True])
def test_of_two_waiting_pods_with_one_index_the_pinned_one_keeps_it_else_the_oldest(*, pinned: bool) -> None:
    """A pin cannot be changed any more."""
    world = World()
    world.pod_group("g", 2)
    join(world, "first", creation_timestamp="2026-01-01T00:00:00Z", **indexed("one", 0))
    later = indexed("two", 0)
    later["annotations"] |= {names.EPOCH: "1", names.NODE: "node-1"} if pinned else {}
    join(world, "second", creation_timestamp="2026-01-02T00:00:00Z", **later)
    assert slots(world) == ({"second": 0, "first": 1} if pinned else {"first": 0, "second": 1})


@pytest.mark.parametrize(
    ("gone", "rank"),
    [({"phase": "Failed"}, 0), ({"phase": "Succeeded", "node": "n"}, 1), ({"deletion_timestamp": "2026"}, 0)],
    ids=["failed", "succeeded", "deleted"],
)
def test_the_slot_of_a_member_that_is_over_is_the_next_ones(gone: dict[str, Any], rank: int) -> None:
    """Unless it has succeeded: nobody does that part again."""
    world = World()
    world.pod_group("g", 2)
    join(world, "a")
    world.view(KEY)
    join(world, "a", **gone)
    join(world, "b")
    assert slots(world) == {"b": rank}


def test_slots_are_given_by_a_refresh_and_not_by_looking() -> None:
    """Whoever looks sees the gang as it was refreshed last."""
    world = World()
    world.pod_group("g", 2)
    world.state.refresh()
    join(world, "a")
    assert world.state.gang(KEY).pods == []
    assert world.state.pods["a"].slot is None
    world.state.refresh()
    assert world.state.pods["a"].slot == Slot(DEFAULT_POD_SET, 0)


def test_gangs_are_in_the_order_in_which_they_were_seen() -> None:
    """Their names, whose hashes differ from process to process, decide nothing."""
    world = World()
    keys = [world.gang(f"gang-{number * 7 % 32}", {"worker": (1, {"cpu": 1})}) for number in range(32)]
    world.state.refresh()
    assert [gang.key for gang in world.state.gangs()] == keys


@pytest.mark.parametrize(("kind", "made"), [("MPIJob", by_uid), ("JobSet", by_label)])
def test_pods_of_a_successor_wait_for_their_own_gang(kind: str, made: Any) -> None:
    """They are no members of the gang of an owner that is gone, nor are the old ones members of theirs."""
    world = World()
    world.pod_group("g", 2, owner_references=owner(kind, "train", "first"))
    for name, node in zip("abcd", ("node-1", "node-2", "", ""), strict=True):
        join(world, name, node=node, **made("first" if node else "second"))
    assert [pod.name for pod in world.view(KEY).pods] == ["a", "b"]
    assert world.view(KEY).started
    world.state.on_pod_group(world.state.groups[KEY], None)
    world.pod_group("g", 2, owner_references=owner(kind, "train", "second"))
    assert [pod.name for pod in world.view(KEY).pods] == ["c", "d"]
    assert not world.state.started(KEY)


def test_pods_that_do_not_say_whose_they_are_are_members() -> None:
    """Such as those without a controller, and those of a controller of another name."""
    world = World()
    world.pod_group("g", 2, owner_references=owner("JobSet", "train", "first"))
    join(world, "a")
    join(world, "b", owner_references=owner("Job", "other", "second"))
    assert [pod.name for pod in world.view(KEY).pods] == ["a", "b"]
