"""Free GPUs of nodes, and nodes that are alike in one row."""

from functools import partial
from typing import Any

import msgspec
from builders import node as a_node
from hypothesis import given
from hypothesis import strategies as st

from gangs.nodes import NodeRow, alike, node_rows, rack_of
from muster.api.kubernetes.core import Node, NodeCondition, Pod
from muster.api.muster.configuration import Suspects
from muster.api.muster.node_faults import rules_in


def node(name: str, gpus: int = 8, *, ready: bool = True, cordoned: bool = False, **labels: str) -> Node:
    """A node of some rack."""
    keys = {"rack": "example.com/rack", "model": "nvidia.com/gpu.product", "zone": "topology.kubernetes.io/zone"}
    given = {keys[key]: value for key, value in labels.items()}
    return a_node(name, gpus=gpus, memory="1Gi", ready=ready, unschedulable=cordoned, labels=given)


def pod(node: str, gpus: int, phase: str = "Running", **annotations: str) -> Pod:
    """A pod on a node."""
    container = {"resources": {"limits": {"nvidia.com/gpu": gpus, "cpu": 1}}}
    meta = {"name": "p", "annotations": {f"muster.dev/{key}": value for key, value in annotations.items()}}
    spec = {"nodeName": node, "containers": [container]}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": {"phase": phase}}, Pod)


def rows(nodes: list[Node], pods: list[Pod]) -> list[NodeRow]:
    """The rows by the list of this version."""
    return node_rows(nodes, pods, partial(rules_in, {}))


def test_free_gpus_and_states() -> None:
    """By what living pods ask for; a node that is cordoned or not ready says so first."""
    nodes = [node("a"), node("b"), node("c"), node("d", cordoned=True), node("e", ready=False), node("f", 0)]
    pods = [pod("a", 8), pod("b", 3), pod("b", 8, "Succeeded"), pod("f", 0), pod("d", 1)]
    found = {row.name: (row.state, row.free_gpus, row.pods) for row in rows(nodes, pods)}
    assert found == {
        "a": ("Full", 0, 1), "b": ("Mixed", 5, 1), "c": ("Free", 8, 0), "d": ("Cordoned", 7, 1),
        "e": ("NotReady", 8, 0), "f": ("Mixed", 0, 1),
    }  # fmt: skip


def test_a_suspect_node_says_so_before_its_cordon() -> None:
    """A cordon is what mostly comes with it, and says less."""
    ill = node("a", cordoned=True)
    ill.status.conditions.append(NodeCondition("KernelDeadlock", "True"))
    assert [row.state for row in rows([ill], [])] == ["Suspect"]


def test_a_node_is_suspect_by_the_list_of_its_pool() -> None:
    """Each pool has an extender with settings of its own."""
    ill, other = node("a"), node("b")
    other.metadata.labels["muster.dev/node-pool"] = "p"
    for each in (ill, other):
        each.status.conditions.append(NodeCondition("XidError", "True"))
    found = node_rows([ill, other], [], partial(rules_in, {"p": Suspects(("XidError=True",))}))
    assert [(row.name, row.state) for row in found] == [("a", "Free"), ("b", "Suspect")]


def test_room_of_a_node() -> None:
    """What pods leave of CPU, memory and GPUs, never below nothing; amounts that cannot be read count as none."""
    [row] = rows([node("a", model="A100")], [pod("a", 2), pod("a", 1)])
    assert (row.model, row.gpus, row.free_gpus, row.free_cpu, row.free_memory) == ("A100", 8, 5, 30_000, 2**30)
    [over] = rows([node("a", 2)], [pod("a", 3)])
    assert (over.state, over.free_gpus) == ("Full", 0)
    strange, holder = node("a"), pod("a", 1)
    strange.status.allocatable["nvidia.com/gpu"] = holder.spec.containers[0].resources.limits["nvidia.com/gpu"] = "many"
    [none] = rows([strange], [])
    assert (none.gpus, none.free_gpus, none.free_cpu) == (0, 0, 0)
    [whole] = rows([node("a")], [holder])
    assert (whole.state, whole.free_gpus, whole.pods) == ("Free", 8, 1)


def test_parts_of_gpus() -> None:
    """A pod that shares a GPU takes its part of it."""
    shared = pod("a", 0, **{"gpu-devices": "0", "gpu-portion": "0.25"})
    [row] = rows([node("a")], [shared])
    assert (row.state, row.free_gpus) == ("Mixed", 7.75)


def test_racks() -> None:
    """Clusters name the label as they like; without one the zone stands there."""
    assert rack_of({"muster.dev/rack": "r1", "a": "b"}) == "r1"
    assert rack_of({"cloud.provider.com/topology-rack": "r2", "topology.kubernetes.io/zone": "z"}) == "r2"
    assert rack_of({"topology.kubernetes.io/zone": "z"}) == "z"
    assert rack_of({}) == ""


ROWS = st.builds(NodeRow, name=st.uuids().map(str), rack=st.sampled_from(["", "r0", "r1"]),
                 model=st.sampled_from(["", "A100"]), state=st.sampled_from(["Free", "Mixed", "Full"]),
                 gpus=st.just(8.0), free_gpus=st.sampled_from([0.0, 4.0, 8.0]))  # fmt: skip


@given(st.lists(ROWS))
def test_no_node_is_lost_among_those_that_are_alike(rows: list[NodeRow]) -> None:
    """Each is in one row, and the free GPUs add up."""
    groups: list[Any] = alike(rows)
    assert sorted(name for each in groups for name in each.nodes) == sorted(row.name for row in rows)
    assert sum(len(each.nodes) * each.free_gpus for each in groups) == sum(row.free_gpus for row in rows)
