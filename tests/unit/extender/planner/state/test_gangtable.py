"""PodGroups and Placements as the planner takes them in: what is news, which placement counts, and what is too much."""

import pytest
from extender_world import World
from msgspec import structs

from extender.planner.state.devicetable import DeviceTable
from extender.planner.state.gangtable import GangTable
from extender.planner.state.podclass import ClassTable
from extender.planner.state.templates import Templates
from muster.api import names
from muster.api.kubernetes.meta import ObjectMeta, OwnerReference
from muster.api.limits import EPOCH, PODS, TASKS
from muster.api.muster.placement import Placement, PlacementSpec
from muster.api.muster.placementnotes import PlacementContent
from muster.api.volcano.batch import Job, JobSpec, TaskSpec
from muster.api.volcano.scheduling import PodGroup, PodGroupSpec


def table() -> GangTable:
    """A table without anything."""
    return GangTable(Templates(ClassTable(), DeviceTable()))


def group(version: int = 1, uid: str = "u", least: int = 1, note: int = 0) -> PodGroup:
    """A PodGroup, perhaps with a placement of this epoch noted in it."""
    content = PlacementContent(spec=PlacementSpec(epoch=note, pod_group_uid=uid))
    notes = {names.PLACEMENT: content.as_note()} if note else {}
    owner = OwnerReference(api_version="batch/v1", kind="Job", name="g", uid=f"job-{uid}", controller=True)
    meta = ObjectMeta(name="g", namespace="ns", uid=uid, resource_version=str(version), annotations=notes)
    return PodGroup(metadata=structs.replace(meta, owner_references=[owner]), spec=PodGroupSpec(min_member=least))


def placement(epoch: int = 1, group_uid: str = "u", version: int = 1, uid: str = "p") -> Placement:
    """A Placement that is an object of its own."""
    meta = ObjectMeta(name="g", namespace="ns", uid=uid, resource_version=str(version))
    return Placement(metadata=meta, spec=PlacementSpec(epoch=epoch, pod_group_uid=group_uid))


@pytest.mark.parametrize(
    ("new", "news"),
    [(group(5, least=3), False), (group(4), False), (group(6, least=3), True), (group(4, uid="another"), True)],
    ids=["the same", "an older one", "a newer one", "another of its name"],
)
def test_what_is_known_already_is_no_news(new: PodGroup, *, news: bool) -> None:
    """Muster's own writes come twice, and late; another UID makes another object."""
    gangs, known = table(), group(5, least=3)
    assert gangs.on_group(None, known) == "ns/g"
    assert gangs.on_group(known, new) == ("ns/g" if news else None)
    assert gangs.groups["ns/g"] is (new if news else known)
    other = group(uid="third")
    assert gangs.on_group(other, None) is None
    assert gangs.on_group(gangs.groups["ns/g"], None) == "ns/g"
    assert gangs.on_group(known, None) is None
    assert gangs.on_group(None, None) is None
    assert gangs.groups == {}


@pytest.mark.parametrize(("note", "objects", "counts"), [
    (0, [placement(3)], 3),
    (2, [], 2),
    (2, [placement(3)], 3),
    (3, [placement(3)], 3),
    (4, [placement(3)], 4),
    (4, [placement(9, group_uid="before")], 4),
    (0, [placement(9, group_uid="before")], None),
    (4, [placement(9), None], 4),
    (0, [placement(9), None], None),
    (0, [placement(9, version=2), placement(8)], 9),
])  # fmt: skip
def test_the_later_of_object_and_note_counts(note: int, objects: list[Placement | None], counts: int | None) -> None:
    """Of this PodGroup; of equal ones the object, which was made of the note."""
    gangs, known = table(), objects[0] if objects else None
    gangs.on_group(None, group(note=note))
    for each in objects:
        gangs.on_placement(known, each)
    found = gangs.placement_of("ns/g")
    assert (found.spec.epoch if found else None) == counts
    assert found is None or (found is known) is (known is not None and known.spec.epoch == counts)
    gangs.on_group(None, group(version=2))
    assert ("ns/g" in gangs.placements) is (known is not None and objects[-1] is not None)
    assert gangs.of_job(Job(metadata=ObjectMeta(namespace="ns", uid="job-u"))) == "ns/g"
    assert gangs.of_job(Job(metadata=ObjectMeta(namespace="other", uid="job-u"))) is None
    gangs.on_group(group(version=2), None)
    assert gangs.of_job(Job(metadata=ObjectMeta(namespace="ns", uid="job-u"))) is None


@pytest.mark.parametrize("over", [0, 1])
@pytest.mark.parametrize("what", ["minimum", "pods of a Job", "tasks", "epoch", "epoch of a pod"])
def test_numbers_over_their_limit_set_a_gang_aside(what: str, over: int) -> None:
    """Where admission was bypassed; the reason names the number."""
    world = World(checked=False).nodes(1)
    key = world.gang("a", {"worker": (1, {"cpu": 1})}, min_task_member={})
    job, value = world.job_of(key), 0
    if what == "minimum":
        value = PODS.value + over
        world.change(world.state.groups[key], spec={"min_member": value})
    elif what == "pods of a Job":
        value = PODS.value + over
        world.scale(key, "worker", value)
        world.change(world.state.groups[key], spec={"min_member": 1, "min_task_member": {}})
    elif what == "tasks":
        value = TASKS.value + over
        tasks = [TaskSpec(name=f"t{number}", replicas=0) for number in range(value)]
        world.change(job, spec={"tasks": tasks})
    elif what == "epoch":
        value = EPOCH.value + over
        placed = placement(value - 1, world.state.groups[key].metadata.uid)
        placed.metadata.name = "a"
        world.state.on_placement(None, placed)
    else:
        value = EPOCH.value + over
        world.pod(key, "worker", 0, {"cpu": 1}, pin="node-0", epoch=value - 1)
    found = world.view(key).excluded
    assert (str(value) in found) is bool(over), found
    assert bool(found) is bool(over)


def test_a_gang_of_a_job_elsewhere_has_none() -> None:
    """A PodGroup of another namespace may name a Job as its owner, and plans nothing by it."""
    world = World(checked=False)
    key = world.gang("a", {"worker": (2, {"cpu": 1})}, min_task_member={})
    job = world.job_of(key)
    world.state.on_job(job, structs.replace(job, metadata=structs.replace(job.metadata, namespace="other")))
    assert world.view(key).pod_sets == []
    tasks = [structs.replace(task, replicas=3) for task in job.spec.tasks]
    world.state.on_job(job, Job(metadata=job.metadata, spec=JobSpec(tasks=tasks)))
    assert [pod_set.replicas for pod_set in world.view(key).pod_sets] == [3]
