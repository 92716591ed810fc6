"""Whatever happens between plan and binding, or to the objects of a gang that runs: it runs whole."""

from collections.abc import Callable
from itertools import count

import pytest
from extender_world import CPU, GPU8, World, cluster_of, of, slots

from extender.planner.framework import decisions
from extender.planner.reasons.verbs import VerbReason
from extender.verbs.filter import Filter
from muster.api.kubernetes.core import Pod, Taint
from muster.api.kubernetes.extender import ExtenderArgs
from muster.api.muster.placement import NodeRun, Placement, PodSetPlacement

MEMBERS = 3
LONGEST = 10
"""Cycles in which everything is over."""


class Gang:
    """A gang whose pods are pinned and not yet bound, with its controller and kube-scheduler as simple as can be.

    The controller makes a pod again that is gone, gated. kube-scheduler binds the members once all are pinned by one
    placement, one to a node, and refuses a node that it does not take for a reason of its own.
    """

    def __init__(self) -> None:
        self.world = World()
        self.world.nodes(2 * MEMBERS)
        self.key = self.world.gang("a", {"worker": (MEMBERS, GPU8)})
        self.world.plan()
        self.refuses = ""
        self.pods: dict[int, Pod] = {}
        self._numbers = count()
        for rank, node in enumerate(slots(self.placement)["worker"]):
            self.put(rank, pin=node, epoch=1)

    @property
    def placement(self) -> Placement:
        """As it is."""
        return self.world.state.placements[self.key]

    def put(self, rank: int, **more: object) -> None:
        """The pod of a rank, or a newer version of it."""
        uid = self.pods[rank].metadata.uid if rank in self.pods else f"uid-{next(self._numbers)}"
        self.pods[rank] = self.world.pod(self.key, "worker", rank, GPU8, uid=uid, **more)  # type: ignore[arg-type]  # a test's shorthand

    def make_again(self, rank: int) -> None:
        """A pod is gone, and its controller makes another."""
        self.world.state.on_pod(self.pods.pop(rank), None)
        self.put(rank, gated=True)

    def cycle(self) -> None:
        """The planner decides, everybody does what follows, and some seconds pass."""
        session = self.world.plan()
        self.world.close(session)
        self.world.avoid(session)
        ranks = {pod.metadata.uid: rank for rank, pod in self.pods.items()}
        for release in of(session, decisions.Release):
            self.put(ranks[release.pod.uid], pin=release.node, epoch=release.epoch)
        for evict in of(session, decisions.Evict):
            self.make_again(ranks[evict.pod.uid])
        pins = {rank: pod.metadata.annotations.get("muster.dev/node", "") for rank, pod in sorted(self.pods.items())}
        epochs = {pod.metadata.annotations.get("muster.dev/epoch") for pod in self.pods.values()}
        epoch = int(min(epochs, key=str) or 0)
        full = {rank for rank, node in pins.items() if node == self.refuses or [*pins.values()].index(node) < rank}
        if len(epochs) == 1 and all(pins.values()):
            for rank, node in pins.items():
                bound = {} if full else {"node": node, "phase": "Running"}
                self.put(rank, pin=node, epoch=epoch, refused=rank in full, **bound)
        self.world.now += 2

    @property
    def nodes(self) -> list[str]:
        """Where members are bound."""
        return [pod.spec.node_name for pod in self.pods.values() if pod.spec.node_name]


Happens = Callable[[Gang, str], None]


def cordon(gang: Gang, node: str) -> None:
    """Somebody is about to take the machine away."""
    gang.world.node(node, unschedulable=True)


def taint(gang: Gang, node: str) -> None:
    """Somebody keeps it for others."""
    gang.world.node(node, taints=[Taint(key="kept", value="yes", effect="NoSchedule")])


def lose(gang: Gang, node: str) -> None:
    """The machine is gone."""
    gang.world.state.on_node(gang.world.node(node), None)


def refuse(gang: Gang, node: str) -> None:
    """Kube-scheduler does not take the node for a reason that Muster does not model."""
    gang.refuses = node


def steal(gang: Gang, node: str) -> None:
    """A pod that was bound by another hand holds a GPU there."""
    gang.world.pod("ns/thief", "x", 0, {"nvidia.com/gpu": 1}, node=node, phase="Running")
    gang.refuses = node


def edit(gang: Gang, node: str) -> None:
    """All members on one node, says somebody in the placement; the pods are pinned elsewhere."""
    gang.world.change(gang.placement, spec={"pod_sets": [PodSetPlacement("worker", [NodeRun(node, MEMBERS)])]})


def delete_placement(gang: Gang, _: str) -> None:
    """Somebody deletes the placement."""
    gang.world.state.on_placement(gang.placement, None)


def delete_member(gang: Gang, _: str) -> None:
    """Somebody deletes a pod, whose slot is still held."""
    gang.make_again(0)


@pytest.mark.parametrize("place", range(MEMBERS))
@pytest.mark.parametrize("happens", [cordon, taint, lose, refuse, steal])
def test_a_node_that_cannot_be_used_any_more_at_the_binding_is_not_used(happens: Happens, place: int) -> None:
    """Whichever member it is for: pinned pods are made again, and the next epoch is elsewhere."""
    gang = Gang()
    node = slots(gang.placement)["worker"][place]
    happens(gang, node)
    for _ in range(LONGEST):
        assert len(gang.nodes) in {0, MEMBERS}
        gang.cycle()
    assert (len({*gang.nodes} - {node}), gang.placement.spec.epoch) == (MEMBERS, 2)


@pytest.mark.parametrize("happens", [edit, delete_placement, delete_member])
def test_what_somebody_does_to_a_gang_on_its_way_does_no_harm(happens: Happens) -> None:
    """It runs whole, with each member on a node of its own."""
    gang = Gang()
    happens(gang, slots(gang.placement)["worker"][0])
    for _ in range(LONGEST):
        gang.cycle()
    assert len({*gang.nodes}) == MEMBERS


def test_a_gang_of_which_nothing_happens_runs_where_it_was_planned() -> None:
    """By its first placement."""
    gang = Gang()
    wanted = slots(gang.placement)["worker"]
    gang.cycle()
    assert (gang.nodes, gang.placement.spec.epoch) == (wanted, 1)


class Running:
    """A gang of three that runs, with room for more on its nodes."""

    def __init__(self) -> None:
        self.world = World()
        self.world.nodes(2)
        self.key = self.world.gang("a", {"worker": (3, CPU)})
        self.world.plan()
        self.pods = [self.member(rank) for rank in range(3)]
        assert self.world.view(self.key).started

    @property
    def placement(self) -> Placement:
        """Its placement."""
        return self.world.state.placements[self.key]

    def member(self, rank: int) -> Pod:
        """A member that runs."""
        return self.world.pod(self.key, "worker", rank, CPU, pin="node-0", epoch=1, node="node-0", phase="Running")

    def close(self) -> None:
        """Everybody is bound, so the placement is done."""
        self.world.change(self.placement, status={"phase": "Bound", "started": True})

    def copy(self, rank: int) -> Pod:
        """A pod made from the YAML of a member, as `kubectl get -o yaml` shows it, without node and status."""
        return self.world.pod(
            self.key, "worker", rank, CPU, pin="node-0", epoch=1,
            uid="uid-copy", name="copy", creation_timestamp="2020-01-01T00:00:00Z",
        )  # fmt: skip


@pytest.fixture
def gang() -> Running:
    """A gang that runs."""
    return Running()


def test_a_placement_that_is_deleted_costs_nobody_anything(gang: Running) -> None:
    """Enough members have a node, which is what counts; a member that comes again is placed with a later epoch."""
    gang.close()
    gang.world.state.on_placement(gang.placement, None)
    assert of(gang.world.plan(), decisions.Evict) == []
    assert gang.world.view(gang.key).started
    gang.world.state.on_pod(gang.pods[2], None)
    gang.world.pod(gang.key, "worker", 2, CPU, gated=True, uid="uid-again")
    session = gang.world.plan()
    assert (of(session, decisions.Evict), [each.epoch for each in of(session, decisions.Place)]) == ([], [2])


def test_a_copy_of_a_member_is_not_scheduled_and_is_deleted(gang: Running) -> None:
    """Its pin is of a placement that is over; the members stay."""
    gang.close()
    copy = gang.copy(0)
    answer = Filter(cluster_of(gang.world), active=lambda: True)(ExtenderArgs(pod=copy, node_names=["node-0"]))
    assert answer.failed_and_unresolvable_nodes == {"node-0": VerbReason.WAITS_FOR_GANG}
    assert [evict.pod.uid for evict in of(gang.world.plan(), decisions.Evict)] == ["uid-copy"]


def test_a_copy_of_a_member_in_another_namespace_is_not_scheduled(gang: Running) -> None:
    """There is no such gang there."""
    copy = gang.copy(0)
    gang.world.state.on_pod(copy, None)
    copy.metadata.namespace = "other"
    verb = Filter(cluster_of(gang.world), active=lambda: True)
    assert verb(ExtenderArgs(pod=copy, node_names=["node-0"])).error == VerbReason.NOT_SEEN
