"""Gangs get all their nodes or none."""

from extender_world import World, of, slots
from hypothesis import given, settings
from hypothesis import strategies as st
from state_oracle import recomputed_use

from extender.planner.framework import decisions
from muster.api.kubernetes.core import PriorityClass, Taint

GPU8 = {"cpu": 4, "nvidia.com/gpu": 8}
GPU1 = {"cpu": 1, "nvidia.com/gpu": 1}


def test_a_gang_that_fits_is_placed_whole_with_neighbouring_ranks_on_neighbouring_nodes() -> None:
    """Ranks follow the natural order of the nodes' names."""
    world = World().nodes(12)
    world.gang("a", {"worker": (20, {"nvidia.com/gpu": 4})})
    [place] = of(world.plan(), decisions.Place)
    assert slots(place) == {"worker": [f"node-{rank // 2}" for rank in range(20)]}
    assert place.epoch == 1


def test_of_two_gangs_that_need_all_nodes_only_the_older_is_placed_and_the_other_says_why() -> None:
    """The second waits with one sentence and holds nothing."""
    world = World().nodes(4)
    world.gang("a", {"worker": (4, GPU8)})
    world.now += 1
    world.gang("b", {"worker": (4, GPU8)})
    session = world.plan()
    assert [place.gang.key for place in of(session, decisions.Place)] == ["ns/a"]
    [waits] = of(session, decisions.Unschedulable)
    assert waits.gang.key == "ns/b"
    assert waits.message == (
        "worker: room is missing for 4 pods of 8 nvidia.com/gpu each: none fits now; of 4 nodes: "
        "4 too little nvidia.com/gpu; 4 more nodes with 8 free nvidia.com/gpu are needed"
    )


def test_a_placement_holds_its_room_until_its_pods_are_bound_and_the_pods_hold_it_afterwards() -> None:
    """Neither counted twice nor free in between."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (2, GPU8)})
    world.plan()
    free = world.session().snapshot.free
    gpu = world.state.nodes.axis["nvidia.com/gpu"]
    assert free[gpu, :2].tolist() == [0, 0]
    for rank in range(2):
        world.pod(key, "worker", rank, GPU8, node=f"node-{rank}", phase="Running")
        assert world.session().snapshot.free[gpu, :2].tolist() == [0, 0]
    assert (recomputed_use(world.state.ledger) == world.state.nodes.used).all()


def test_minimum_per_task_is_placed_first_and_what_else_fits_comes_on_top() -> None:
    """MinMember 3 of 6: one master and two workers start; a fourth place is used by a worker."""
    world = World().nodes(4)
    world.gang(
        "a", {"master": (1, GPU8), "worker": (5, GPU8)}, min_member=3, min_task_member={"master": 1, "worker": 2}
    )
    [place] = of(world.plan(), decisions.Place)
    assert slots(place) == {"master": ["node-0"], "worker": ["node-1", "node-2", "node-3"]}


def test_minimums_per_task_do_not_count_when_min_member_is_below_their_sum() -> None:
    """Volcano's gang rule: minMember 1 of master 1 + worker 4 starts with what fits."""
    world = World().nodes(1)
    world.gang("a", {"master": (1, GPU8), "worker": (4, GPU8)}, min_member=1)
    [place] = of(world.plan(), decisions.Place)
    assert slots(place) == {"master": ["node-0"]}


def test_large_pods_are_placed_before_small_ones_so_that_both_fit() -> None:
    """In the written order the small pods would break up the only node that holds the large one."""
    world = World().nodes(1, gpus=8)
    world.node("node-1", gpus=2)
    world.gang("a", {"small": (2, GPU1), "large": (1, GPU8)})
    [place] = of(world.plan(), decisions.Place)
    assert slots(place) == {"small": ["node-1", "node-1"], "large": ["node-0"]}


def test_pod_sets_are_compared_by_what_nodes_have() -> None:
    """The same without any GPU: 8 CPUs of 10 are a larger part than 2 of 10."""
    world = World()
    for name, cpu in (("node-0", 8), ("node-1", 2)):
        world.node(name, gpus=0, cpu=cpu)
    world.gang("a", {"small": (2, {"cpu": 1}), "large": (1, {"cpu": 8})})
    [place] = of(world.plan(), decisions.Place)
    assert slots(place) == {"small": ["node-1", "node-1"], "large": ["node-0"]}


def test_cordoned_tainted_and_unselected_nodes_are_not_used_and_are_named_as_causes() -> None:
    """Each cause says how many nodes it costs."""
    world = World().nodes(1, unschedulable=True)
    world.node("node-1", taints=[Taint(key="dedicated", value="x", effect="NoSchedule")])
    world.node("node-2", labels={"pool": "other"})
    world.gang("a", {"worker": (1, GPU1)}, spec={"nodeSelector": {"pool": "mine"}})
    [waits] = of(world.plan(), decisions.Unschedulable)
    assert "of 3 nodes: 2 do not match the node selector, 1 cordoned" in waits.message


def test_a_gang_in_a_closed_or_missing_queue_is_not_let_in() -> None:
    """Enqueue says which queue and why."""
    world = World().nodes(1).queue("shut", "Closed")
    world.gang("a", {"worker": (1, GPU1)}, phase="Pending", queue="shut")
    world.gang("b", {"worker": (1, GPU1)}, phase="Pending", queue="nowhere")
    world.gang("c", {"worker": (1, GPU1)}, phase="Pending", queue="root")
    world.queue("root")
    session = world.plan()
    assert {waits.gang.key: waits.message for waits in of(session, decisions.Unschedulable)} == {
        "ns/a": "queue 'shut' is Closed",
        "ns/b": "queue 'nowhere' does not exist",
        "ns/c": "queue 'root' holds other queues and takes no gangs",
    }
    assert not of(session, decisions.AdmitGang)


def test_a_gang_is_let_in_and_placed_in_one_cycle() -> None:
    """Pending → Inqueue with a placement, so that its pods are born on their nodes."""
    world = World().nodes(1)
    world.gang("a", {"worker": (1, GPU1)}, phase="Pending")
    session = world.plan()
    assert [decisions.AdmitGang, decisions.Place] == [type(decision) for decision in session.decisions]


def test_pods_that_exist_win_over_the_template() -> None:
    """Another webhook added a sidecar: the gang is planned with the larger shape."""
    world = World().nodes(2)
    world.members(world.gang("a", {"worker": (2, {"cpu": 16})}), 2, {"cpu": 17}, gated=True)
    [place] = of(world.plan(), decisions.Place)
    assert slots(place) == {"worker": ["node-0", "node-1"]}


def test_a_higher_priority_class_goes_first() -> None:
    """Although it is younger."""
    world = World().nodes(1)
    world.state.on_priority_class(None, PriorityClass(metadata=world.meta("high", namespace=""), value=1000))
    world.gang("a", {"worker": (1, GPU8)})
    world.now += 1
    world.gang("b", {"worker": (1, GPU8)}, priority_class="high")
    assert [place.gang.key for place in of(world.plan(), decisions.Place)] == ["ns/b"]


@settings(max_examples=settings().max_examples * 3 // 2)
@given(
    capacities=st.lists(st.integers(0, 9), min_size=1, max_size=8),
    gangs=st.lists(st.tuples(st.integers(1, 6), st.integers(1, 4)), min_size=1, max_size=5),
)
def test_no_node_is_ever_over_committed_and_no_gang_is_placed_in_part(
    capacities: list[int], gangs: list[tuple[int, int]]
) -> None:
    """For homogeneous gangs, a gang is placed exactly when greedy room is enough."""
    world = World()
    for index, gpus in enumerate(capacities):
        world.node(f"node-{index}", gpus=gpus)
    for index, (members, gpus) in enumerate(gangs):
        world.now += 1
        world.gang(f"g{index}", {"worker": (members, {"nvidia.com/gpu": gpus})})
    session = world.plan()
    left = list(capacities)
    placed = {place.gang.key: slots(place)["worker"] for place in of(session, decisions.Place)}
    for index, (members, gpus) in enumerate(gangs):
        fits = sum(room // gpus for room in left) >= members
        nodes = placed.get(f"ns/g{index}", [])
        assert len(nodes) == (members if fits else 0)
        for node in nodes:
            left[int(node.removeprefix("node-"))] -= gpus
    assert min(left) >= 0
