"""What somebody does to the objects of a gang that runs does not disturb the gang."""

import pytest
from extender_world import World, cluster_of, of

from extender.planner.framework import decisions
from extender.planner.reasons.verbs import Reason
from extender.verbs.filter import Filter
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.extender import ExtenderArgs
from muster.api.muster.placement import Placement

CPU = {"cpu": 1}


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
        self.world.state.on_placement(self.placement,
                                      Placement(metadata=self.placement.metadata, spec=self.placement.spec,
                                                status=type(self.placement.status)(phase="Bound",
                                                                                   started=True)))  # fmt: skip

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
    assert of(session, decisions.Evict) == []
    assert [place.epoch for place in of(session, decisions.Place)] == [2]


def test_a_copy_of_a_member_is_not_scheduled_and_is_deleted(gang: Running) -> None:
    """Its pin is of a placement that is over; the members stay."""
    gang.close()
    copy = gang.copy(0)
    verb = Filter(cluster_of(gang.world), active=lambda: True)
    answer = verb(ExtenderArgs(pod=copy, node_names=["node-0"]))
    assert answer.failed_and_unresolvable_nodes == {"node-0": Reason.WAITS_FOR_GANG}
    assert [evict.pod.uid for evict in of(gang.world.plan(), decisions.Evict)] == ["uid-copy"]


def test_a_copy_of_a_member_in_another_namespace_is_not_scheduled(gang: Running) -> None:
    """There is no such gang there."""
    copy = gang.copy(0)
    gang.world.state.on_pod(copy, None)
    copy.metadata.namespace = "other"
    verb = Filter(cluster_of(gang.world), active=lambda: True)
    assert verb(ExtenderArgs(pod=copy, node_names=["node-0"])).error == Reason.NOT_SEEN
