"""Metrics by queue and of all nodes, as a scrape would see them."""

from extender_world import GPU8, World
from prometheus_client import REGISTRY
from repair_world import RepairWorld, placed

from extender.planner.actions.allocate import Allocate
from extender.planner.actions.enqueue import Enqueue
from extender.queuemetrics import RENEWED_S, QueueMetrics
from muster.api.muster.placement import BorrowedSpares


def sample(name: str, **labels: str) -> float | None:
    """A sample; None if there is none."""
    return REGISTRY.get_sample_value(name, labels)


def told(world: World, metrics: QueueMetrics) -> None:
    """One cycle, after the last metrics are old."""
    world.now += RENEWED_S
    metrics.update(world.session(world.progress, Enqueue(), Allocate()))


def test_who_waits_how_long_and_what_is_idle_meanwhile() -> None:
    """A gang that runs and lacks growth does not wait; queues and resources that go are told no more."""
    world, metrics = World().queue("speech"), QueueMetrics()
    nodes = [world.node(name) for name in ("node-0", "node-1")]
    running = world.gang("r", {"worker": (1, GPU8)}, phase="Running")
    world.pod(running, "worker", 0, GPU8, node="node-0", phase="Running")
    world.gang("grows", {"worker": (2, GPU8)}, queue="speech", min_member=1, min_task_member={"worker": 1})
    world.pod("ns/grows", "worker", 0, {}, node="node-1", phase="Running")
    world.pod("ns/grows", "worker", 1, {"nvidia.com/gpu": 80}, gated=True)
    world.now += 1
    for name in ("large", "later"):
        world.gang(name, {"worker": (2, GPU8)}, queue="speech")
        world.now += 10
    world.now += 80
    told(world, metrics)
    assert sample("muster_queue_gangs_waiting", queue="speech") == 2
    assert sample("muster_queue_longest_wait_seconds", queue="speech") == 100 + RENEWED_S
    assert sample("muster_queue_gangs_waiting", queue="default") == 0
    assert sample("muster_cluster_resources", resource="nvidia.com/gpu", what="offered") == 16
    assert sample("muster_cluster_resources", resource="nvidia.com/gpu", what="free") == 8
    assert sample("muster_cluster_resources", resource="cpu", what="free") == 60
    world.state.on_queue(world.state.queues["speech"], None)
    told(world, metrics)
    assert sample("muster_queue_gangs_waiting", queue="speech") is None
    for node in nodes:
        world.state.on_node(node, None)
    told(world, metrics)
    assert sample("muster_cluster_resources", resource="nvidia.com/gpu", what="free") is None


def test_seats_that_are_kept_for_lost_members_are_told_and_how_many_are_lent() -> None:
    """By the queue of the gang that keeps them."""
    world, metrics = RepairWorld().nodes(3), QueueMetrics()
    keeper = placed(world, "keeper", 1, keeps=("node-1", "node-2"))
    uid = world.state.groups[keeper].metadata.uid
    placed(world, "borrower", 1, 1, loans=(BorrowedSpares(lender=uid, pod_set="worker", node="node-1"),))
    world.now += RENEWED_S
    metrics.update(world.session())
    assert [sample("muster_queue_spare_seats", queue="default", what=what) for what in ("kept", "lent")] == [2, 1]
    world.state.on_placement(world.state.placements[keeper], None)
    metrics.update(world.session())
    assert sample("muster_queue_spare_seats", queue="default", what="kept") == 2, "not in each cycle"
    world.now -= 2 * RENEWED_S  # the clock was set back
    metrics.update(world.session())
    assert sample("muster_queue_spare_seats", queue="default", what="kept") == 0
