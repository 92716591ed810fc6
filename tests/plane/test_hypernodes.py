"""HyperNodes on a real plane: many at once, changed, wrong and right again; gangs sit where they say."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from gang_jobs import job, metric
from planes import Muster

from muster.api.kubernetes.core import NODES, PODS
from muster.api.kubernetes.meta import Condition
from muster.api.volcano.batch import JOBS
from muster.api.volcano.topology import HYPER_NODES
from muster.kube.client import Client
from muster.kube.errors import Invalid
from musterctl.plane.install import name_of
from musterctl.plane.plane import Plane

WaitFor = Callable[..., Any]
JSON = dict[str, Any]
NODES_IN_ALL = 32
RACK = 4
"""Nodes of one rack."""
BLOCKS = 20
"""Of nine racks each, all at once."""
pytestmark = [pytest.mark.plane, pytest.mark.alone(nodes=NODES_IN_ALL)]


@pytest.fixture
def client(plane: Plane) -> Iterator[Client]:
    """A client of it; HyperNodes and Jobs go with the test."""
    client = plane.client()
    yield client
    for each in client.list(JOBS):
        client.delete(JOBS, each.metadata.name, each.metadata.namespace)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda each: client.delete(HYPER_NODES, each.metadata.name), client.list(HYPER_NODES)))


def hyper_node(name: str, tier: int, *members: JSON) -> JSON:
    """A HyperNode."""
    return {"metadata": {"name": name}, "spec": {"tier": tier, "members": list(members)}}


def node(number: int) -> JSON:
    """A node as a member."""
    return {"type": "Node", "selector": {"exactMatch": {"name": name_of(number)}}}


def pattern(text: str) -> JSON:
    """Nodes by their names as a member."""
    return {"type": "Node", "selector": {"regexMatch": {"pattern": text}}}


def within(name: str) -> JSON:
    """A HyperNode as a member."""
    return {"type": "HyperNode", "selector": {"exactMatch": {"name": name}}}


def counts(client: Client) -> dict[str, int]:
    """Every HyperNode's nodeCount."""
    return {each.metadata.name: each.status.node_count for each in client.list(HYPER_NODES)}


def valid(client: Client, name: str) -> Condition | None:
    """The condition of a HyperNode."""
    return next((each for each in client.get(HYPER_NODES, name).status.conditions if each.type == "Valid"), None)


def nodes_of(client: Client, name: str) -> set[int]:
    """The numbers of the nodes of a Job's pods."""
    pods = [pod for pod in client.list(PODS, "default") if pod.metadata.labels.get("volcano.sh/job-name") == name]
    return {int(pod.spec.node_name.rpartition("-")[2]) for pod in pods if pod.spec.node_name}


def test_hundreds_at_once(plane: Plane, client: Client, wait_for: WaitFor) -> None:
    """All are counted, each is written a few times at most, and a gang that comes with them sits in one rack."""
    racks = []
    for number in range(NODES_IN_ALL // RACK):
        ends = "|".join(f"{RACK * number + k:02}" for k in range(RACK))
        racks.append(hyper_node(f"rack-{number}", 1, pattern(f"^node-00({ends})$")))
    empty = [hyper_node(f"rack-{n}", 1, node(RACK * n), node(RACK * n + 1)) for n in range(len(racks), 9 * BLOCKS)]
    blocks = [hyper_node(f"block-{n}", 2, *(within(f"rack-{9 * n + k}") for k in range(9))) for n in range(BLOCKS)]
    before = metric(plane, "extender", 'muster_planner_writes_total{result="ok",what="hypernode"}')
    gang = job("near", "default", replicas=RACK)
    gang["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
    with ThreadPoolExecutor(16) as pool:
        made = pool.map(lambda each: client.create(HYPER_NODES, each), [*blocks, *racks, *empty])
        client.create(JOBS, gang)
        list(made)
    wanted = {f"rack-{n}": RACK if n < len(racks) else 0 for n in range(9 * BLOCKS)} | {
        f"block-{n}": 9 for n in range(BLOCKS)
    }
    wait_for(lambda: counts(client) == wanted, 120, "every HyperNode is counted")
    wait_for(lambda: len(nodes_of(client, "near")) == RACK, 60, "the gang starts")
    assert len({number // RACK for number in nodes_of(client, "near")}) == 1
    written = metric(plane, "extender", 'muster_planner_writes_total{result="ok",what="hypernode"}') - before
    assert written <= 3 * 10 * BLOCKS
    assert not [each for each in client.list(HYPER_NODES) if each.status.conditions]


@pytest.mark.long
def test_changes_while_nothing_runs(client: Client, wait_for: WaitFor) -> None:
    """Members that change, nodes that come and go: counts follow, and so do gangs that come then."""
    client.create(HYPER_NODES, hyper_node("left", 1, node(0), node(1)))
    client.create(HYPER_NODES, hyper_node("right", 1, pattern(f"{name_of(0)[:-1]}[23]$")))
    wait_for(lambda: counts(client) == {"left": 2, "right": 2})
    client.merge_patch(HYPER_NODES, "left", {"spec": {"members": [node(0), node(4), node(5), node(99)]}})
    wait_for(lambda: counts(client) == {"left": 3, "right": 2})
    gang = job("three", "default", replicas=3)
    gang["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
    client.create(JOBS, gang)
    wait_for(lambda: nodes_of(client, "three") == {0, 4, 5}, 60)
    late = client.get(NODES, name_of(31))
    client.create(NODES, {"metadata": {"name": name_of(99), "labels": late.metadata.labels}})
    wait_for(lambda: counts(client) == {"left": 4, "right": 2})
    client.delete(NODES, name_of(99))
    wait_for(lambda: counts(client) == {"left": 3, "right": 2})


def test_a_node_in_two_hyper_nodes_is_told(muster: Muster, client: Client, wait_for: WaitFor) -> None:
    """At both, by name; `muster topo` says it too, and all is well again when one of them gives it up."""
    client.create(HYPER_NODES, hyper_node("a", 1, node(0), node(1)))
    client.create(HYPER_NODES, hyper_node("b", 1, node(1), node(2)))
    client.create(HYPER_NODES, hyper_node("top", 2, within("a"), within("b")))
    for name, other in (("a", "b"), ("b", "a")):
        condition = wait_for(lambda name=name: valid(client, name))
        assert (condition.status, condition.reason) == ("False", "Overlap")
        assert f"{name_of(1)} (in {other})" in condition.message
    drawn = muster("topo", "hypernodes", "--nodes")
    assert f"! a: nodes that are in other HyperNodes of tier 1 too: {name_of(1)} (in b)" in drawn
    assert f"|-- {name_of(1)}" in drawn or f"`-- {name_of(1)}" in drawn
    client.merge_patch(HYPER_NODES, "b", {"spec": {"members": [node(2)]}})
    for name in ("a", "b"):
        wait_for(lambda name=name: (found := valid(client, name)) is not None and found.status == "True")
    assert valid(client, "top") is None


def test_refusals(client: Client) -> None:
    """By the CRD's rules, which are Volcano's, and by the webhook in its words."""
    both = {"type": "Node", "selector": {"exactMatch": {"name": "a"}, "regexMatch": {"pattern": "a"}}}
    for wrong, phrase in (
        (hyper_node("x", 1), "spec.members"),
        (hyper_node("x", -1, node(0)), "spec.tier"),
        (hyper_node("x", 1, both), "Only one of ExactMatch, RegexMatch, or LabelMatch can be specified"),
        (hyper_node("x", 1, pattern("a(b")), "member regexMatch pattern is invalid"),
        (hyper_node("x", 1, within("x")), "cannot be a member of itself"),
    ):
        with pytest.raises(Invalid) as error:
            client.create(HYPER_NODES, wrong)
        assert phrase in str(error.value)
