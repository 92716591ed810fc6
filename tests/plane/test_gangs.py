"""Gangs start whole, one after the other when both do not fit, on neighbouring nodes."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from gang_jobs import History, job

from muster.api import names
from muster.api.kubernetes.core import PODS
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client

pytestmark = [pytest.mark.plane, pytest.mark.alone]
BARRIER_S = 10.0
ROUNDS = [4, pytest.param(20, marks=pytest.mark.long)]


def phase(client: Client, namespace: str, name: str) -> str:
    """The Job's phase."""
    return client.get(JOBS, name, namespace).status.state.phase


@pytest.mark.parametrize("rounds", ROUNDS)
def test_two_gangs_that_need_all_nodes_run_one_after_the_other(
    client: Client,
    namespace: str,
    wait_for: Callable[..., Any],
    record_property: Callable[[str, object], None],
    seed: int,
    rounds: int,
) -> None:
    """Rounds in random order: never a gang in part for longer than a barrier, ranks in node order."""
    chance = random.Random(seed)  # noqa: S311 - the order of submissions is no secret
    longest = 0.0
    with History(client, namespace) as history:
        for turn in range(rounds):
            names = [f"a{turn}", f"b{turn}"]
            chance.shuffle(names)
            for name in names:
                client.create(JOBS, job(name, namespace, replicas=8, run_s=0.3), namespace)
            for name in names:
                wait_for(lambda name=name: phase(client, namespace, name) == "Completed", 60, f"{name} to complete")
            spans = sorted((history.start_of(f"{name}-"), history.end_of(f"{name}-")) for name in names)
            assert spans[0][1] < spans[1][0], "the second began before the first was whole"
            for name in names:
                lives = history.of(f"{name}-")
                assert len(lives) == 8, "a pod was made twice"
                ranks = sorted(lives, key=lambda life: life.slot.rank if life.slot else -1)
                nodes = [life.node for life in ranks]
                assert nodes == sorted(nodes)
                longest = max(longest, history.half_placed_s(f"{name}-", 8))
                client.delete(JOBS, name, namespace)
    assert longest < BARRIER_S
    record_property("longest_in_part_s", longest)


def test_a_gang_that_waits_says_why_in_its_pod_group(
    client: Client, namespace: str, wait_for: Callable[..., Any]
) -> None:
    """Condition and Event carry the same sentence."""
    client.create(JOBS, job("first", namespace, replicas=8), namespace)
    wait_for(lambda: phase(client, namespace, "first") == "Running", 30)
    client.create(JOBS, job("second", namespace, replicas=3), namespace)

    def reason() -> str:
        groups = [group for group in client.list(POD_GROUPS, namespace) if group.metadata.name.startswith("second-")]
        return next((c.message for group in groups for c in group.status.conditions if c.type == "Unschedulable"), "")

    sentence = (
        "worker: room is missing for 3 pods of 8 nvidia.com/gpu each: none fits now; of 8 nodes: "
        "8 too little nvidia.com/gpu; 3 more nodes with 8 free nvidia.com/gpu are needed"
    )
    assert wait_for(reason, 15) == sentence
    pods = wait_for(lambda: [p for p in client.list(PODS, namespace) if p.metadata.name.startswith("second-")], 15)
    assert not any(pod.spec.node_name for pod in pods)
    client.delete(JOBS, "first", namespace)
    wait_for(lambda: phase(client, namespace, "second") == "Running", 30, "the second to start once there is room")
    client.delete(JOBS, "second", namespace)


def test_a_placement_tells_the_story_of_its_gang(client: Client, namespace: str, wait_for: Callable[..., Any]) -> None:
    """Planned with nodes in rank order, Bound in the end, gone with its PodGroup."""
    client.create(JOBS, job("story", namespace, replicas=4, gpus=4), namespace)
    placement = wait_for(
        lambda: next((p for p in client.list(PLACEMENTS, namespace) if p.status.phase == "Bound"), None), 30
    )
    [workers] = placement.spec.pod_sets
    assert [run.count for run in workers.runs] == [2, 2]
    assert placement.metadata.controller.kind == "PodGroup"
    assert (placement.status.bound, placement.status.planned) == (4, 4)
    newer = client.get(replace(PLACEMENTS, version="v1beta1"), placement.metadata.name, namespace)
    assert (newer.spec, newer.status) == (placement.spec, placement.status)
    client.delete(JOBS, "story", namespace)
    wait_for(lambda: not client.list(PLACEMENTS, namespace), 30, "the placement to go with its PodGroup")


@pytest.mark.parametrize("spec", [{}, {"minMember": 0}], ids=["left out", "0"])
def test_a_podgroup_without_a_minimum_starts_at_once(
    client: Client, namespace: str, wait_for: Callable[..., Any], spec: dict[str, int]
) -> None:
    """As in Volcano: each pod when it comes. Spark's own feature step for Volcano makes such a PodGroup."""
    client.create(POD_GROUPS, {"metadata": {"name": "spark"}, "spec": spec}, namespace)
    wait_for(lambda: client.get(POD_GROUPS, "spark", namespace).status.phase == "Inqueue")
    for name in ("driver", "executor"):
        pod = {"schedulerName": "volcano", "containers": [{"name": "main", "image": "none"}]}
        metadata = {"name": name, "annotations": {names.GROUP_NAME: "spark"}}
        client.create(PODS, {"metadata": metadata, "spec": pod}, namespace)
        wait_for(lambda name=name: client.get(PODS, name, namespace).status.phase == "Running", 30, f"the {name}")


def test_plain_pods_of_a_group_of_kueue_start_together(
    client: Client, namespace: str, wait_for: Callable[..., Any]
) -> None:
    """By Kueue's label and annotation; the PodGroup goes with the last of them."""

    def pod(name: str) -> dict[str, Any]:
        labels = {names.QUEUE: "default", names.KUEUE_GROUP: "sample"}
        metadata = {"name": name, "labels": labels, "annotations": {names.KUEUE_TOTAL: "2"}}
        return {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "none"}]}}

    client.create(PODS, pod("a"), namespace)
    wait_for(lambda: client.list(POD_GROUPS, namespace), 30, "the PodGroup")
    assert client.get(PODS, "a", namespace).spec.scheduling_gates
    client.create(PODS, pod("b"), namespace)
    wait_for(lambda: all(each.spec.node_name for each in client.list(PODS, namespace)), 30, "both to start")
    [group] = client.list(POD_GROUPS, namespace)
    assert (group.metadata.name, group.spec.min_member) == ("podgroup-kueue-sample", 2)
    client.delete(PODS, "b", namespace)
    wait_for(lambda: len(client.list(PODS, namespace)) == 1, 30, "one pod to be gone")
    assert client.list(POD_GROUPS, namespace)
    client.delete(PODS, "a", namespace)
    wait_for(lambda: not client.list(POD_GROUPS, namespace), 30, "the PodGroup to be gone")
