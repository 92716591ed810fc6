"""How many pods fit on each node by resources alone, and which resource is too scarce."""

from typing import Any

import msgspec
import numpy as np
import pytest
from extender_world import World
from hypothesis import given
from hypothesis import strategies as st

from extender.planner import reasons
from extender.planner.dynamic.needs import ClaimNeeds, SharedClaim
from extender.planner.framework.answers import LeftFree
from extender.planner.framework.freecapacity import LARGE, ClaimUsers
from extender.planner.framework.operations import Operation
from extender.planner.framework.session import Session
from extender.planner.state.podclass import ClassTable, PodClass
from muster.api.kubernetes.core import PodSpec
from muster.api.kubernetes.devices import MOST_PODS

GPU = "nvidia.com/gpu"
NODES = 4
AMOUNTS = st.lists(st.integers(-2, 9), min_size=NODES, max_size=NODES)


def opened(requests: dict[str, Any]) -> tuple[Session, PodClass]:
    """A cycle over four nodes, and the class of pods that ask for this."""
    world = World(checked=False).nodes(NODES)
    key = world.gang("a", {"worker": (1, requests)})
    session = world.session()
    return session, session.gang(key).pod_sets[0].cls


def cause(session: Session, code: int) -> str:
    """The words of a code."""
    return str(session.causes.of[code]) if code else ""


@given(AMOUNTS, AMOUNTS, AMOUNTS, st.integers(1, 3), st.integers(0, 3), st.sets(st.integers(0, NODES - 1), min_size=1))
def test_room_is_what_is_free_less_what_is_reserved_for_others(
    cpu: list[int], gpus: list[int], kept: list[int], one: int, other: int, some: set[int]
) -> None:
    """By the resource of which there is least; of some nodes as of all; and 0 where a resource is too scarce."""
    session, cls = opened({"cpu": one, GPU: other})
    free, axis = session.snapshot.free, session.snapshot.axis
    free[axis["cpu"], :NODES], free[axis[GPU], :NODES] = np.array(cpu) * 1000, np.array(gpus) * 1000
    columns = np.array(sorted(some))
    amounts = np.zeros((free.shape[0], len(columns)), dtype=np.int64)
    amounts[axis["cpu"]] = np.array(kept)[columns].clip(min=0) * 1000
    codes = np.full(len(columns), session.causes.code("reserved for gang b"), dtype=np.int16)
    without = session.room(cls)
    session.reserved = LeftFree(columns, amounts, codes, b"")
    left = [each - (max(kept[at], 0) if at in some else 0) for at, each in enumerate(cpu)]
    for found, have in ((without, cpu), (session.room(cls), left)):
        fits = [max(min(have[at] // one, gpus[at] // other if other else 99), 0) for at in range(NODES)]
        assert found[:NODES].tolist() == [min(each, 110) for each in fits]
    assert session.room(cls, columns=columns).tolist() == session.room(cls)[columns].tolist()
    assert session.room(cls, free).tolist() == without.tolist()
    assert session.room(cls, free[:, columns], columns=columns).tolist() == without[columns].tolist()
    for at, code in enumerate(session.scarce(cls)[:NODES].tolist()):
        lacks = "cpu" if cpu[at] < one else GPU if other and gpus[at] < other else ""
        held = "reserved for gang b" if at in some and session.room(cls)[at] == 0 else ""
        assert cause(session, code) == (str(reasons.cause.scarce(lacks)) if lacks else held)
    assert [bool(code) for code in session.scarce(cls, free)] == [count == 0 for count in without]


@pytest.mark.parametrize(("ports", "most"), [(True, 1), (False, 32)])
def test_pods_with_a_host_port_share_no_node(*, ports: bool, most: int) -> None:
    """Unless only resources are asked about."""
    session, cls = opened({"cpu": 1})
    container = {"ports": [{"containerPort": 80, "hostPort": 80}], **World.pod_spec({"cpu": 1})["containers"][0]}
    ported = ClassTable().of_spec(msgspec.convert({"containers": [container]}, PodSpec))
    assert session.room(cls, ports=ports)[:NODES].tolist() == [32] * NODES
    assert session.room(ported, ports=ports)[:NODES].tolist() == [most] * NODES


def test_a_resource_that_no_node_offers_is_too_scarce_everywhere() -> None:
    """Whatever else there is; but not where a pod asks for 0 of it."""
    session, cls = opened({"cpu": 1, "example.com/none": 0})
    assert session.room(cls)[:NODES].tolist() == [32] * NODES
    assert not session.scarce(cls)[:NODES].any()
    session, cls = opened({"cpu": 1, "example.com/none": 1})
    assert session.room(cls)[:NODES].tolist() == [0] * NODES
    assert {cause(session, code) for code in session.scarce(cls)} == {"too little example.com/none"}


def test_pods_that_ask_for_nothing_fit_anywhere() -> None:
    """But for the number of pods of a node, which is a resource too."""
    session, cls = opened({})
    assert session.room(cls)[:NODES].tolist() == [110] * NODES
    assert session.room(ClassTable().of_amounts({})).tolist() == [LARGE] * len(session.snapshot.nodes)


def test_users_of_a_claim_are_counted_by_claim_and_queue() -> None:
    """Those of a PodGroup that shares it are one user, so that it has no limit."""
    one, grouped = SharedClaim("ns/c", (("x", 1),)), SharedClaim("ns/g", (), grouped=True)
    session, cls = opened({"cpu": 1})
    session.snapshot.claim_users = {"ns/c": MOST_PODS - 2, "ns/g": 1_000}
    session.snapshot.claim_queues = {"ns/c": {"q": 3}}
    users = ClaimUsers(session.snapshot)
    gang = session.snapshot.gangs[0]
    named = ClassTable().equipped(cls, ClaimNeeds(named=(one, grouped)))
    assert (users.hold(named), users.full(named, 2), users.full(named, 3)) == (2, "", "ns/c")
    assert users.hold(ClassTable().equipped(cls, ClaimNeeds(named=(grouped,)))) == LARGE
    assert (users.new([one, grouped, one], "q"), users.new([one, one], "r")) == ([grouped], [one])
    users.count(Operation(gang, "worker", [0, 1, 2], 0, session.snapshot.row_of(cls), named), 1)
    assert (users.user_count("ns/c"), users.user_count("ns/c", gang.queue), users.user_count("ns/c", "q")) == (
        MOST_PODS + 1,
        3,
        3,
    )
    assert (users.hold(named), users.new([one], gang.queue)) == (0, [])
