"""A large gang that waits behind small ones has nodes reserved for it, on a real control plane."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from gang_jobs import History, job, lone_pod, runs
from planes import Muster

from muster.api.kubernetes.core import NODES, PODS, Pod
from muster.api.kubernetes.meta import ReportedCondition, parse_time
from muster.api.muster.placement import PLACEMENTS, Placement
from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.long, pytest.mark.alone]
OLD_S = 45
"""The first gang runs for so long, and says so."""


def submit(client: Client, namespace: str, name: str, replicas: int, run_s: float, says: str = "") -> None:
    """A Job whose pods take a whole node each; `says` is how long it is expected to run."""
    manifest = job(name, namespace, replicas=replicas, run_s=run_s)
    if says:
        manifest["metadata"]["annotations"] = {"muster.dev/expected-runtime": says}
    client.create(JOBS, manifest, namespace)


def test_short_gangs_run_before_a_large_one_and_long_ones_after_it_although_the_extender_is_killed(
    plane: Plane, idle_client: Client, namespace: str, wait_for: Callable[..., Any]
) -> None:
    """The reservation is written down: it stands while nobody plans, and is kept by who plans next."""
    client = idle_client
    everything = len(client.list(NODES))

    def placement() -> Placement | None:
        return next((one for one in client.list(PLACEMENTS, namespace) if one.metadata.name.startswith("big-")), None)

    def is_reserved() -> bool:
        found = placement()
        return found is not None and found.status.phase == "Reserved"

    with History(client, namespace) as history:
        submit(client, namespace, "old", everything - 2, OLD_S, f"{OLD_S}s")
        wait_for(lambda: runs(client, namespace, "old", everything - 2), 30, "the first gang to run")
        submit(client, namespace, "big", everything, 2)
        wait_for(is_reserved, 15, "a reservation")
        before = placement()
        assert before is not None
        expected = parse_time(before.status.expected_at)
        assert expected is not None
        assert expected - time.time() < OLD_S

        plane.part("extender").kill()
        submit(client, namespace, "long", 1, 300)
        submit(client, namespace, "short", 1, 2, "2s")
        wait_for(lambda: len(client.list(JOBS, namespace)) == 4, 10, "the Jobs")
        plane.part("extender").start()

        wait_for(lambda: any(life.bound for life in history.of("short-")), 30, "the short gang to start")
        after = placement()
        assert after is not None
        assert (after.metadata.uid, after.spec) == (before.metadata.uid, before.spec)
        assert after.status.expected_at == before.status.expected_at
        typed = Muster(plane.kubeconfig)
        assert f"reserved: {everything} nodes" in typed("explain", "job", "big", "-n", namespace)
        assert "the gang would run into the reservation of" in typed("explain", "job", "long", "-n", namespace)

        wait_for(lambda: all(life.bound for life in history.of("big-")), OLD_S + 30, "the large gang to start")
        wait_for(lambda: any(life.bound for life in history.of("long-")), 30, "the long gang to start")
        assert not is_reserved()
        assert history.end_of("short-") < history.start_of("big-")
        assert history.end_of("big-") < history.start_of("long-")


def whole_node(name: str, namespace: str, run_s: float, says: str = "") -> dict[str, Any]:
    """A pod of no gang that takes all GPUs of a node for so long."""
    manifest = lone_pod(name, namespace, "muster")
    manifest["metadata"]["annotations"] = {"kwok.muster.dev/run-seconds": str(run_s)}
    if says:
        manifest["metadata"]["annotations"]["muster.dev/expected-runtime"] = says
    manifest["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 8}}
    return manifest | {"spec": manifest["spec"] | {"restartPolicy": "Never"}}


def test_pods_without_a_gang_take_no_room_that_is_reserved_unless_they_end_before(
    plane: Plane, idle_client: Client, namespace: str, wait_for: Callable[..., Any]
) -> None:
    """Two nodes are free and reserved: a pod that says that it is short runs there at once, another one afterwards.

    The controller is away meanwhile: it would make each of them a gang of one.
    """
    client = idle_client
    everything = len(client.list(NODES))
    with History(client, namespace) as history:

        def node_of(name: str) -> str:
            return client.get(PODS, name, namespace).spec.node_name

        def conditions(name: str) -> list[ReportedCondition]:
            return client.get(PODS, name, namespace).status.conditions

        submit(client, namespace, "old", everything - 2, OLD_S, f"{OLD_S}s")
        wait_for(lambda: runs(client, namespace, "old", everything - 2), 30, "the first gang to run")
        submit(client, namespace, "big", everything, 2)
        wait_for(lambda: any(each.status.phase == "Reserved" for each in client.list(PLACEMENTS, namespace)), 15, "it")
        plane.part("controller").kill()
        client.create(PODS, whole_node("long", namespace, 2), namespace)
        client.create(PODS, whole_node("short", namespace, 2, "2s"), namespace)
        wait_for(lambda: node_of("short"), 30, "the short pod to start")
        told = wait_for(
            lambda: [each for each in conditions("long") if "reserved for gangs" in each.message],
            30,
            "the long one to say why it waits",
        )
        assert told[0].reason == "Unschedulable"
        plane.part("controller").start()
        wait_for(lambda: history.of("big-") and all(life.bound for life in history.of("big-")), OLD_S + 30, "the gang")
        wait_for(lambda: node_of("long"), 90, "the long pod to start")
        assert scheduled(client.get(PODS, "short", namespace)) < scheduled(client.get(PODS, "long", namespace))
        of_big = [pod for pod in client.list(PODS, namespace) if pod.metadata.name.startswith("big-")]
        assert max(map(scheduled, of_big)) <= scheduled(client.get(PODS, "long", namespace))


def scheduled(pod: Pod) -> str:
    """When it was bound, as text that sorts."""
    return next(each.last_transition_time or "" for each in pod.status.conditions if each.type == "PodScheduled")
