"""Equal shares and the order of domains, as small cases that can be looked through whole, and in the planner."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from topology_world import Racks, racks_of

from extender.planner.topology.fit import Profile, WantedPods, best_first, equal_shares, thresholds
from extender.planner.topology.tree import Geometry, Tree

ROOMS = st.lists(st.integers(0, 9), min_size=1, max_size=6)


def best(rooms: list[int], pods: int) -> tuple[int, int]:
    """The largest number that each of the fewest domains can have, and their number; 0, 0 if they hold too few."""
    for few in range(1, len(rooms) + 1):
        fitting = [chosen for chosen in combinations(rooms, few) if sum(chosen) >= pods and min(chosen)]
        if fitting:
            return max(min(pods // few, *chosen) for chosen in fitting), few
    return 0, 0


@settings(max_examples=settings().max_examples * 3)
@given(rooms=ROOMS, pods=st.integers(1, 30))
def test_shares_are_as_equal_as_the_fewest_domains_allow(rooms: list[int], pods: int) -> None:
    """All pods are in them, none has more than its room, and the smallest share is as large as it can be."""
    used, shares = equal_shares(np.array(rooms), pods, np.arange(len(rooms)))
    assert all(share <= rooms[place] for place, share in zip(used, shares, strict=True))
    assert shares.sum() == min(pods, sum(rooms))
    least, few = best(rooms, min(pods, sum(rooms)))
    assert len(used) == len(set(used.tolist())) == few
    assert shares.min(initial=pods) == (least if few else pods)
    assert [each.size for each in equal_shares(np.array(rooms), 0, np.arange(len(rooms)))] == [0, 0]


@settings(max_examples=settings().max_examples * 2)
@given(domains=st.lists(ROOMS, min_size=1, max_size=4), pods=st.integers(1, 20))
def test_thresholds_are_those_of_each_domain(domains: list[list[int]], pods: int) -> None:
    """Of all domains at once; children in no domain do not count."""
    rooms = np.array([*(room for children in domains for room in children), 30])
    parents = np.array([*(number for number, children in enumerate(domains) for _ in children), -1])
    threshold, few = thresholds(rooms, parents, len(domains), pods)
    assert list(zip(threshold.tolist(), few.tolist(), strict=True)) == [best(each, pods) for each in domains]


RACKS = Tree(
    "default", ("block", "rack"), (("b0", "b1"), ("b0/r0", "b0/r1", "b1/r0", "b1/r1")),
    np.array([[0] * 6 + [1] * 6, [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3], dtype=np.int32),
)  # fmt: skip
"""Two blocks of two racks of three nodes."""


@given(
    rooms=st.lists(st.integers(0, 3), min_size=12, max_size=12), least=st.integers(1, 6), more=st.integers(0, 4),
    closed=st.sets(st.integers(0, 3)), profile=st.sampled_from(["best-fit", "least-free"]), tied=st.booleans(),
)  # fmt: skip
def test_domains_are_tried_from_the_tightest_on(
    *, rooms: list[int], least: int, more: int, closed: set[int], profile: Profile, tied: bool
) -> None:
    """Those that hold all pods, then the tightest, those of which most is used, and those in tight surroundings."""
    wanted = WantedPods(Geometry(RACKS, np.arange(12)), np.array(rooms), least, least + more)
    fits, left = np.array([rack not in closed for rack in range(4)]), np.array([number % 5 for number in range(12)])
    racks = [sum(rooms[3 * rack : 3 * rack + 3]) for rack in range(4)]

    def key(rack: int) -> tuple[float, ...]:
        short = racks[rack] < least + more if profile == "best-fit" else False
        free = left[3 * rack : 3 * rack + 3].sum() if tied else 0
        return short, racks[rack], free, sum(racks[rack // 2 * 2 : rack // 2 * 2 + 2]), rack

    order = (None, lambda: None, lambda: left) if tied else (None,)
    found = list(best_first(wanted, 1, fits, profile=profile, order=order))
    assert found == sorted((rack for rack in range(4) if racks[rack] >= least and fits[rack]), key=key)


def racks(rooms: list[list[int]], profile: str = "balanced") -> Racks:
    """Blocks of racks of one node with so many GPUs."""
    world = Racks(0, checked=False, profile=profile)
    for block, inside in enumerate(rooms):
        for rack, gpus in enumerate(inside):
            world.rack_node(block, rack, 0, gpus=gpus)
    return world


def test_the_block_with_equal_racks_comes_before_the_tighter_one() -> None:
    """Ten pods could be eight and two, or five and five."""
    placed = {}
    for profile in ("best-fit", "balanced"):
        placed[profile] = Counter(racks_of(racks([[8, 2], [6, 6]], profile).workers("a", 10, 1, required="block")))
    assert placed == {"best-fit": {"b0r0": 8, "b0r1": 2}, "balanced": {"b1r0": 5, "b1r1": 5}}


def test_a_rack_with_little_room_is_left_out() -> None:
    """Of three racks two can have six each, and of those with more room the ones that just fit."""
    assert Counter(racks_of(racks([[9, 6, 7, 2]]).workers("a", 12, 1, required="block"))) == {"b0r1": 6, "b0r2": 6}


@pytest.mark.parametrize("leader", [1, 2])
@pytest.mark.parametrize(("rooms", "workers", "shares"), [([8, 8], 10, [5, 5]), ([16, 14], 23, [11, 12])])
@pytest.mark.parametrize("blocks", [1, 2])
def test_workers_have_equal_shares_beside_a_leader(
    blocks: int, rooms: list[int], workers: int, shares: list[int], leader: int
) -> None:
    """Whether its pod is like theirs or not, and whether their racks are in one block or two."""
    world = racks([rooms] if blocks == 1 else [[each] for each in rooms])
    tasks = {"leader": (1, {"nvidia.com/gpu": leader}), "worker": (workers, {"nvidia.com/gpu": 1})}
    key = world.gang("a", tasks)
    world.said_of(key, {"muster.dev/topology-preferred": "block"})
    world.plan()
    assert sorted(Counter(world.placed(key)["worker"]).values()) == shares


def test_slices_have_equal_shares_and_stay_whole() -> None:
    """Four slices of two, in two racks; each could hold three."""
    world = racks([[7, 7]])
    said = {"muster.dev/topology-slice-required": "rack", "muster.dev/topology-slice-size": "2"}
    assert racks_of(world.workers("a", 8, 1, required="block", template=said)) == ["b0r0"] * 4 + ["b0r1"] * 4


@pytest.mark.parametrize("profile", ["balanced", "BalancedPlacement"])
def test_nodes_of_a_rack_have_equal_shares(profile: str) -> None:
    """Nodes are the innermost domains, whatever the levels say; Kueue's name of the profile is known too."""
    world = Racks(1, 1, 3, levels=["block", "rack"], profile=profile)
    assert sorted(Counter(world.workers("a", 12, 1, required="rack")).values()) == [6, 6]
