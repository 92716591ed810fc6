"""Native PodGroups become gangs of the state when a pod of Muster's names them, and are placed like others."""

from typing import Any

import msgspec
import pytest
from extender_world import World, of, only, slots
from msgspec import structs

from extender.planner.framework import decisions
from extender.planner.plugins.topology import TopologyPlugin
from extender.planner.state.state import PlannerState
from muster.api import names
from muster.api.kubernetes.core import Namespace, Pod
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.kubernetes.scheduling import CompositePodGroup, NativePodGroup, NativePodGroupStatus, Workload
from muster.api.muster.native import conditions_of
from muster.api.volcano.scheduling import PodGroup, PodGroupStatus

KEY = "ns/native.train"
CPU = {"cpu": "4"}


class Natives(World):
    """A world with native PodGroups."""

    def native(self, name: str = "train", *, uid: str = "", meta: dict[str, Any] | None = None, **spec: Any) -> Any:
        """A native PodGroup of a gang of two, or a newer version of it."""
        given = {"schedulingPolicy": {"gang": {"minCount": 2}}, **spec}
        metadata = self.meta(name, uid=uid or f"uid-{name}", **(meta or {}))
        group = msgspec.convert({"metadata": msgspec.to_builtins(metadata), "spec": given}, NativePodGroup)
        self.state.native.on_group(None, group)
        return group

    def member(
        self, index: int, *, group: str = "train", scheduler: str = "muster", node: str = "", named: bool = True,
        **meta: Any,
    ) -> Pod:  # fmt: skip
        """A pod of a native PodGroup, which runs if it has a node; its spec says so unless it is in it by name only."""
        name = f"{group}-{index}"
        metadata = msgspec.to_builtins(self.meta(name, uid=f"uid-{name}", **meta))
        spec = self.pod_spec(CPU, schedulerName=scheduler)
        if named:
            spec["schedulingGroup"] = {"podGroupName": group}
        status = {"phase": "Running" if node else "Pending"}
        pod = msgspec.convert({"metadata": metadata, "spec": {**spec, "nodeName": node}, "status": status}, Pod)
        self.state.on_pod(None, pod)
        return pod

    def queue_of(self, key: str = KEY) -> str:
        """The queue of a gang."""
        return self.view(key).queue


@pytest.fixture
def world() -> Natives:
    """Two nodes and another queue."""
    world = Natives()
    world.nodes(2)
    world.queue("research")
    return world


def test_a_group_is_a_gang_once_a_pod_of_musters_names_it(world: Natives) -> None:
    """In any order; until then it is another scheduler's, or nobody's."""
    world.native()
    assert KEY not in world.state.groups
    world.member(0, scheduler="default-scheduler")
    assert KEY not in world.state.groups
    world.member(1)
    assert KEY in world.state.groups
    world.member(0, group="later")
    assert "ns/native.later" not in world.state.groups
    world.native("later")
    assert "ns/native.later" in world.state.groups


def test_it_is_placed_whole(world: Natives) -> None:
    """Not before it has its minimum, and by the name that its Placement has."""
    world.native()
    world.member(0)
    assert of(world.plan(), decisions.Place) == []
    world.member(1)
    [place] = of(world.plan(), decisions.Place)
    assert place.gang.key == KEY
    assert sum(map(len, slots(place).values())) == 2
    assert world.state.placement_of(KEY) is not None


def test_another_minimum_counts_at_once(world: Natives) -> None:
    """It is the one field that may change."""
    world.native(schedulingPolicy={"gang": {"minCount": 3}})
    world.member(0)
    world.member(1)
    assert of(world.plan(), decisions.Place) == []
    world.native(schedulingPolicy={"gang": {"minCount": 2}})
    assert len(of(world.plan(), decisions.Place)) == 1


def test_pods_of_a_basic_group_start_one_by_one(world: Natives) -> None:
    """Also when there is room for some of them only."""
    world.native(schedulingPolicy={"basic": {}})
    for index in range(20):
        world.member(index)
    assert sum(map(len, slots(only(world.plan(), decisions.Place)).values())) == 16


def test_an_older_version_is_ignored_and_another_group_of_the_name_is_another_gang(world: Natives) -> None:
    """The watch may show an earlier version after a write; a UID makes another object."""
    old = world.native(schedulingPolicy={"gang": {"minCount": 5}})
    world.member(0)
    world.native()
    world.state.native.on_group(None, old)
    assert world.view(KEY).min_member == 2
    world.native(uid="another")
    assert world.view(KEY).uid == "another"
    world.state.native.on_group(old, None)
    assert world.view(KEY).uid == "another"


def test_a_deleted_group_is_no_gang(world: Natives) -> None:
    """Its pods stay with none."""
    group = world.native()
    world.member(0)
    world.state.native.on_group(group, None)
    world.state.refresh()
    assert KEY not in world.state.groups
    assert world.state.gang(KEY) is None


@pytest.mark.parametrize("first", ["pod", "group"])
def test_a_later_group_of_the_name_is_nobodys_again(world: Natives, first: str) -> None:
    """Whatever went first; until its pods are gone, it stays Muster's without any."""
    group, pod = world.native(), world.member(0)
    if first == "pod":
        world.state.on_pod(pod, None)
        assert KEY in world.state.groups
        world.state.native.on_group(group, None)
    else:
        world.state.native.on_group(group, None)
        world.state.on_pod(pod, None)
    world.native(uid="another")
    assert KEY not in world.state.groups


def test_the_queue_is_of_the_group_its_workload_its_pods_or_its_namespace(world: Natives) -> None:
    """In this order, each as it is now."""
    for queue in ("a", "b", "c", "d", "e"):
        world.queue(queue)
    world.state.on_namespace(None, Namespace(metadata=ObjectMeta(name="ns", labels={names.QUEUE: "e"})))
    reference = {"workloadRef": {"workloadName": "load", "templateName": "t"}}
    world.native(**reference)
    world.member(1)
    assert world.queue_of() == "e"
    world.member(0, labels={names.QUEUE: "d"})
    assert world.queue_of() == "d"
    world.state.native.on_workload(None, Workload(metadata=world.meta("load", labels={names.QUEUE: "c"})))
    assert world.queue_of() == "c"
    world.native(meta={"annotations": {names.QUEUE: "b"}}, **reference)
    assert world.queue_of() == "b"
    world.native(meta={"labels": {names.QUEUE: "a"}}, **reference)
    assert world.queue_of() == "a"


@pytest.mark.parametrize(("phase", "queue"), [("Running", "research"), ("Unknown", "research"), ("Pending", "default")])
def test_a_gang_with_nodes_stays_in_its_queue(world: Natives, phase: Any, queue: str) -> None:
    """Labels of native groups pass no admission: a move would pass by the limits of the other queue."""
    group = world.native(meta={"labels": {names.QUEUE: "research"}})
    world.member(0)
    said = conditions_of(PodGroupStatus(phase=phase), [], world.now, queue="research")
    metadata = structs.replace(group.metadata, resource_version="999", labels={names.QUEUE: "default"})
    world.state.native.on_group(
        group, structs.replace(group, metadata=metadata, status=NativePodGroupStatus(conditions=said))
    )
    assert world.queue_of() == queue


def test_without_any_the_queue_is_the_default_one_until_the_namespace_has_one(world: Natives) -> None:
    """As for other gangs."""
    world.native()
    world.member(0)
    assert world.queue_of() == "default"
    old = Namespace(metadata=ObjectMeta(name="ns"))
    world.state.on_namespace(old, Namespace(metadata=ObjectMeta(name="ns", labels={names.QUEUE: "research"})))
    assert world.queue_of() == "research"


def test_two_groups_of_one_name_are_set_aside_until_one_is_gone(world: Natives) -> None:
    """Whichever came first; members of both would be in one gang."""
    native = world.native()
    world.member(0)
    twin = PodGroup(metadata=world.meta("native.train"))
    world.state.on_pod_group(None, twin)
    assert "belong to the same gang by their names" in world.view(KEY).excluded
    world.state.on_pod_group(twin, None)
    assert (world.view(KEY).excluded, world.view(KEY).uid) == ("", "uid-train")
    world.state.on_pod_group(None, twin)
    world.state.native.on_group(native, None)
    assert (world.view(KEY).excluded, world.view(KEY).uid) == ("", twin.metadata.uid)
    world.native()
    assert "belong to the same gang by their names" in world.view(KEY).excluded


BASIC: dict[str, Any] = {"schedulingPolicy": {"basic": {}}}
NEAR = {"schedulingConstraints": {"topology": [{"key": "rack"}]}}


def composite(world: Natives, name: str, **spec: Any) -> CompositePodGroup:
    """A group of groups, or a newer version of it."""
    metadata = msgspec.to_builtins(world.meta(name, uid=f"uid-{name}"))
    made = msgspec.convert({"metadata": metadata, "spec": {**BASIC, **spec}}, CompositePodGroup)
    world.state.native.on_composite(None, made)
    return made


@pytest.mark.parametrize(
    "spec", [{"schedulingPolicy": {"gang": {"minGroupCount": 2}}}, NEAR, {"disruptionMode": {"all": {}}}]
)
def test_a_part_of_groups_that_belong_together_is_set_aside(world: Natives, spec: dict[str, Any]) -> None:
    """It would start without the other parts; also below others that only group."""
    composite(world, "all", **spec)
    composite(world, "some", parentCompositePodGroupName="all")
    world.native(parentCompositePodGroupName="some")
    world.member(0)
    world.member(1)
    assert "CompositePodGroup all" in world.view(KEY).excluded
    assert of(world.plan(), decisions.Place) == []
    assert "sub-groups" in world.view(KEY).excluded
    composite(world, "all", schedulingPolicy={"gang": {"minGroupCount": 1}})
    assert len(of(world.plan(), decisions.Place)) == 1


def test_a_part_of_groups_that_are_not_there_waits_for_them(world: Natives) -> None:
    """They may say anything; those in a circle say nothing that could be followed."""
    world.native(parentCompositePodGroupName="all")
    world.member(0)
    assert "CompositePodGroup all, which does not exist" in world.view(KEY).excluded
    above = composite(world, "all")
    assert world.view(KEY).excluded == ""
    world.state.native.on_composite(above, None)
    assert "which does not exist" in world.view(KEY).excluded
    composite(world, "all", parentCompositePodGroupName="all")
    assert "CompositePodGroup all" in world.view(KEY).excluded


def test_a_minimum_over_the_limit_sets_the_gang_aside(world: Natives) -> None:
    """The API has none."""
    world.native(schedulingPolicy={"gang": {"minCount": 20_001}})
    world.member(0)
    assert "20001" in world.view(KEY).excluded


def test_a_topology_key_keeps_the_gang_in_one_domain() -> None:
    """A rack with room for it is chosen; without one it waits."""
    world = Natives()
    world.plugins.append(TopologyPlugin({}))
    for index, rack in enumerate(("a", "b", "b")):
        world.node(f"node-{index}", cpu=4, labels={"example.com/rack": rack})
    world.native(schedulingConstraints={"topology": [{"key": "example.com/rack"}]})
    world.member(0)
    world.member(1)
    assert sorted(slots(only(world.plan(), decisions.Place))["pods"]) == ["node-1", "node-2"]


def test_what_muster_said_of_a_group_keeps_it_musters_without_pods(world: Natives) -> None:
    """A planner that starts finds it as the last one left it."""
    group = world.native("left")
    status = NativePodGroupStatus(conditions=conditions_of(PodGroupStatus(phase="Running"), [], world.now))
    metadata = structs.replace(group.metadata, resource_version="999")
    world.state.native.on_group(None, structs.replace(group, metadata=metadata, status=status))
    assert world.view("ns/native.left").group.status.phase == "Running"


def test_a_group_of_another_node_pool_is_not_this_ones(world: Natives) -> None:
    """The pair whose pods it has said so with the phase; another one leaves it alone, pods or none."""
    group = world.native("left")
    world.member(0, group="left", scheduler="muster-b")
    assert "ns/native.left" not in world.state.groups
    status = NativePodGroupStatus(conditions=conditions_of(PodGroupStatus(phase="Running"), [], world.now, pool="b"))
    told = structs.replace(group, metadata=structs.replace(group.metadata, resource_version="999"), status=status)
    world.state.native.on_group(None, told)
    assert "ns/native.left" not in world.state.groups
    other = PlannerState(pool="b")
    other.native.on_group(None, told)
    assert other.groups["ns/native.left"].status.phase == "Running"


def test_a_gang_that_nobody_sees_for_a_while_goes_on_where_it_was(world: Natives) -> None:
    """While the gate is off there are no native groups; a pod that was made anew meanwhile is in it by its name."""
    group = world.native()
    world.member(0)
    world.member(1)
    nodes = [node for found in slots(only(world.plan(), decisions.Place)).values() for node in found]
    lost, _ = (world.member(index, node=node) for index, node in enumerate(nodes))
    world.state.native.on_group(group, None)
    world.state.on_pod(lost, None)
    world.member(0, named=False, annotations={names.GROUP_NAME: "native.train"})
    assert world.plan().decisions == []
    world.state.native.on_group(None, group)
    session = world.plan()
    [release] = of(session, decisions.Release)
    assert (release.gang.key, release.gang.taken) == (KEY, 1)
    assert not of(session, decisions.Evict)
