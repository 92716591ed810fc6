"""Gangs that want room in a queue which is not for their namespace, or in a namespace that ends."""

from extender_world import CPU, World

from extender.planner.framework.snapshot import take_snapshot
from muster.api.kubernetes.core import Namespace
from muster.api.kubernetes.meta import ObjectMeta
from muster.volcano.access import NamespaceObstacle

NOT_OURS = NamespaceObstacle("private", "team=red")


def test_only_gangs_that_want_something_are_barred() -> None:
    """Not those that were let in before, whatever stands before them; a started one if members are to come again."""
    world = World().nodes(1).queue("private")
    placed, runs, lacks = (world.gang(name, {"worker": (2, CPU)}, queue="private", min_member=1, min_task_member={})
                           for name in ("placed", "runs", "lacks"))  # fmt: skip
    world.plan()
    for key, ranks in ((runs, 2), (lacks, 1)):
        world.members(key, ranks, CPU, node="node-0", phase="Running")
        world.notify(world.state.placements[key], None)
    for rank in range(2):
        world.pod(lacks, "worker", rank, CPU, node="node-0" * (not rank), phase="Pending" if rank else "Running")
    assert take_snapshot(world.state).barred == {}
    world.queue("private", **{"namespace-selector": "team=red"})
    first, waits = world.gang("first", {"worker": (1, CPU)}), world.gang("waits", {"worker": (1, CPU)}, queue="private")
    later = world.gang("later", {"worker": (1, CPU)}, queue="private")
    assert take_snapshot(world.state).barred == dict.fromkeys((lacks, waits, later), NOT_OURS)
    ends = ObjectMeta(name="ns", deletion_timestamp="2026-01-01T00:00:00Z", labels={"team": "red"})
    world.state.on_namespace(None, Namespace(metadata=ends))
    assert take_snapshot(world.state).barred == dict.fromkeys((placed, runs, lacks, first, waits, later))
