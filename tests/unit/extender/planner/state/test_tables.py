"""Objects that are looked up by name: which changes matter, and what a snapshot has keeps its answers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from extender_world import World
from hypothesis import given
from hypothesis import strategies as st

from extender.planner.framework.snapshot import take_snapshot
from extender.planner.state.amounts import (
    CLIP,
    MAX_SUM,
    clipped,
    discard,
    put_entry,
    row_along,
    sum_along,
    tally,
    times,
)
from extender.planner.state.state import PlannerState
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.kubernetes.quota import PodDisruptionBudget, ResourceQuota
from muster.api.kubernetes.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    StorageClass,
    VolumeNodeAffinity,
)
from muster.api.volcano.topology import HyperNode, HyperNodeSpec, Topology

META = ObjectMeta(name="a", namespace="ns", uid="u")
NOTED = ObjectMeta(name="a", namespace="ns", uid="u", annotations={"note": "x"}, labels={"zone": "b"})
CHANGES: dict[str, tuple[Callable[..., Any], Any, list[tuple[Any, bool]]]] = {
    "claim": (PlannerState.on_claim, PersistentVolumeClaim(metadata=META), [
        (PersistentVolumeClaim(metadata=NOTED), True),
        (PersistentVolumeClaim(metadata=NOTED), False),
        (PersistentVolumeClaim(metadata=NOTED, spec=PersistentVolumeClaimSpec(volume_name="v")), True),
    ]),
    "volume": (PlannerState.on_volume, PersistentVolume(metadata=META), [
        (PersistentVolume(metadata=META), False),
        (PersistentVolume(metadata=NOTED), True),
        (PersistentVolume(metadata=NOTED, spec=PersistentVolumeSpec(node_affinity=VolumeNodeAffinity())), True),
    ]),
    "storage class": (PlannerState.on_storage_class, StorageClass(metadata=META), [
        (StorageClass(metadata=NOTED), False), (StorageClass(volume_binding_mode="WaitForFirstConsumer"), True),
    ]),
    "HyperNode": (PlannerState.on_hyper_node, HyperNode(metadata=META), [
        (HyperNode(metadata=NOTED), False), (HyperNode(metadata=META, spec=HyperNodeSpec(tier=7)), True),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("kind", CHANGES)
def test_what_decides_where_pods_fit_matters(kind: str) -> None:
    """Then the nodes have another version, so that pods which did not fit are tried again."""
    on, first, later = CHANGES[kind]
    state = PlannerState()
    for new, matters in [(first, True), *later, (None, True)]:
        if new is not None and new.metadata.name != "a":
            new.metadata = META
        before = state.nodes.version, state.hyper_nodes_version
        assert on(state, first, new) is matters, new
        assert state.nodes.version == before[0] + matters
        assert state.hyper_nodes_version == before[1] + (matters and kind == "HyperNode")
    assert on(state, first, None) is False


def test_what_a_snapshot_has_of_volumes_stays() -> None:
    """Whatever comes afterwards, and however often a snapshot is taken."""
    state, claim = PlannerState(), PersistentVolumeClaim(metadata=META)
    claim.spec.access_modes = ["ReadWriteOncePod"]
    empty = take_snapshot(state).volumes
    state.on_claim(None, claim)
    state.on_volume(None, PersistentVolume(metadata=META))
    state.on_storage_class(None, StorageClass(metadata=META))
    full = take_snapshot(state).volumes
    assert (empty.claims, empty.volumes, empty.classes, empty.exclusive, empty.generation) == ({}, {}, {}, set(), 0)
    state.on_claim(None, PersistentVolumeClaim(metadata=META))
    state.on_volume(PersistentVolume(metadata=META), None)
    state.on_storage_class(StorageClass(metadata=META), None)
    assert ([*full.claims], [*full.volumes], [*full.classes]) == (["ns/a"], ["a"], ["a"])
    assert (full.exclusive, full.generation, take_snapshot(state).volumes.generation) == ({"ns/a"}, 3, 6)
    assert (take_snapshot(state).volumes.exclusive, [*take_snapshot(state).volumes.claims]) == (set(), ["ns/a"])


def test_quotas_budgets_and_topologies_come_and_go() -> None:
    """Namespaces without quotas are left out."""
    state = PlannerState()
    quota, budget, topology = ResourceQuota(metadata=META), PodDisruptionBudget(metadata=META), Topology(metadata=META)
    state.on_resource_quota(None, quota)
    state.on_budget(None, budget)
    before = state.nodes.version
    state.on_topology(None, topology)
    assert state.nodes.version == before + 1
    assert (state.quotas, state.disruption_budgets, state.topologies) == (
        {"ns": {"a": quota}}, {"ns/a": budget}, {"a": topology}
    )  # fmt: skip
    state.on_resource_quota(quota, None)
    state.on_budget(budget, None)
    state.on_topology(topology, None)
    assert (state.quotas, state.disruption_budgets, state.topologies) == ({}, {}, {})


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.booleans()), max_size=12))
def test_tables_leave_out_what_is_empty(steps: list[tuple[str, int, bool]]) -> None:
    """Counts of 0, sets without members, and what is gone."""
    counts: dict[str, int] = {}
    sets: dict[str, set[int]] = {}
    table: dict[str, int] = {}
    for key, value, comes in steps:
        before = counts.get(key, 0), table.get(key)
        tally(counts, key, value if comes else -value)
        assert counts.get(key, 0) == before[0] + (value if comes else -value)
        assert put_entry(table, key, value if comes else None) == before[1]
        assert table.get(key) == (value if comes else None)
        if comes:
            sets.setdefault(key, set()).add(value)
        else:
            discard(sets, key, value)
            assert value not in sets.get(key, ())
        assert all(counts.values())
        assert all(sets.values())
        assert None not in table.values()


def test_amounts_are_clipped_so_that_no_sum_leaves_its_bits() -> None:
    """Requests at 2^50, a queue's sums at 2^54, those of many pods at 2^60; what no node offers is left out."""
    axis, vector = {"cpu": 1, "memory": 0}, {"cpu": 2**62, "memory": -5, "none": 1}
    assert row_along(axis, 3, vector).tolist() == [0, CLIP, 0]
    assert sum_along(axis, 3, vector).tolist() == [0, 2**54, 0]
    assert [clipped(amount) for amount in (-1, 0, CLIP - 1, CLIP, CLIP + 1)] == [0, 0, CLIP - 1, CLIP, CLIP]
    row = np.array([CLIP, 3], dtype=np.int64)
    assert (times(row, 0).tolist(), times(row, 1023).tolist()) == ([0, 0], [CLIP * 1023, 3069])
    assert times(row, 1024).tolist() == [MAX_SUM, 3072]
    assert times(row, 2**20).tolist() == [MAX_SUM, 3 * 2**20]


@pytest.mark.parametrize(("asked", "fits"), [(2**50 - 1, True), (2**50, False), (2**60, False)])
def test_a_request_at_the_clip_fits_nowhere(asked: int, *, fits: bool) -> None:
    """Also where a node offers more."""
    world = World(checked=False).nodes(1)
    world.change(world.state.nodes.nodes[0], status={"allocatable": {"memory": 2**62, "pods": 110}})
    key = world.gang("a", {"worker": (1, {"memory": asked})})
    session = world.session()
    gang = session.gang(key)
    assert gang.pod_sets[0].cls is not None
    assert bool(session.room(gang.pod_sets[0].cls)[0]) is fits
