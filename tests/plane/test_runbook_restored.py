"""The cluster's etcd is lost, and restored from a snapshot of before; the runbook's commands, and what they lose."""

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import etcd_tools
import pytest
from gang_jobs import History, runs
from runbook import BARRIER_S, NAMESPACE, RESTART, STARTS_S, Walk, members, sections, submit, walk

from muster.api.kubernetes.core import PODS
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from musterctl.plane.plane import Plane
from musterctl.plane.state import (
    API_SERVER,
    COMPONENTS,
    CONTROLLER,
    CONTROLLER_MANAGER,
    ETCD,
    EXTENDER,
    MUSTER_SCHEDULER,
    SCHEDULER,
    WEBHOOK,
)

pytestmark = [pytest.mark.plane, pytest.mark.long]
__all__ = ["walk"]
WaitFor = Callable[..., Any]
HEADING = "etcd was restored from an old snapshot"
NODES = 6
STARTING = 24
LATER = ("waits-", "after-")
"""Gangs that started after the snapshot."""


def lose_and_restore(plane: Plane, walked: Walk, command: str) -> str:
    """The data are gone; the page's command makes other ones, with which the control plane starts."""
    data = plane.root / "etcd"
    for part in (API_SERVER, ETCD):
        plane.part(part).kill()
    shutil.rmtree(data)
    said = walked.run(command)
    (walked.folder / "etcd-restored").rename(data)
    for part in (ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER):
        plane.restart(part)
    return said


def restart_muster(plane: Plane) -> None:
    """Every process of Muster's, and its kube-scheduler."""
    for part in (WEBHOOK, EXTENDER, MUSTER_SCHEDULER, CONTROLLER):
        plane.restart(part)


def nodes_of(client: Client, name: str) -> set[str]:
    """Where the members of a gang are bound."""
    pods = client.list(PODS, NAMESPACE)
    return {pod.spec.node_name for pod in pods if pod.metadata.name.startswith(f"{name}-") and pod.spec.node_name}


def test_etcd_restored(fresh_plane: Callable[..., Plane], walk: Callable[[Plane], Walk], wait_for: WaitFor) -> None:
    """Two gangs fill the cluster in the snapshot, one waits, and one starts; afterwards it is as if that time were now.

    After the snapshot, one ends, the one that waits takes its place, and one more is submitted.
    """
    plane = fresh_plane(COMPONENTS, nodes=NODES)
    client = plane.client()
    walked = replace(walk(plane), programs=etcd_tools.folder())
    walked.environment["ETCDCTL_ENDPOINTS"] = f"http://127.0.0.1:{plane.state.ports['etcd']}"
    for name in ("steady", "ends"):
        submit(client, name, 3)
        wait_for(lambda name=name: runs(client, NAMESPACE, name, 3), STARTS_S, "a gang")
    steady, ended = members(client, "steady"), members(client, "ends")
    submit(client, "waits", 3)
    wait_for(lambda: members(client, "waits") or client.list(POD_GROUPS, NAMESPACE), 30, "the waiting gang")
    submit(client, "starting", STARTING, gpus=0)
    wait_for(lambda: nodes_of(client, "starting"), STARTS_S, "its first binding")

    _, restore, *others = sections()[HEADING]

    def meanwhile() -> str:
        wait_for(lambda: runs(client, NAMESPACE, "starting", STARTING), STARTS_S, "the gang that started")
        client.delete(JOBS, "ends", NAMESPACE)
        wait_for(lambda: runs(client, NAMESPACE, "waits", 3), STARTS_S, "the gang that waited")
        submit(client, "after", gpus=0)
        wait_for(lambda: runs(client, NAMESPACE, "after", 2), STARTS_S, "the last gang")
        return lose_and_restore(plane, walked, restore)

    (rollout,) = (each for each in others if each.startswith(RESTART))
    began_s = 0.0

    def restart() -> None:
        nonlocal began_s
        began_s = time.monotonic()
        restart_muster(plane)

    walked.section(HEADING, instead={restore: meanwhile, rollout: restart})
    with History(client, NAMESPACE) as history:
        wait_for(lambda: runs(client, NAMESPACE, "starting", STARTING), STARTS_S, "the gang that started to run again")
        walked.took("gangs of the snapshot run, since the restart of Muster", began_s)
        assert (members(client, "steady"), members(client, "ends")) == (steady, ended)
        assert not runs(client, NAMESPACE, "waits", 3)
        assert not nodes_of(client, "waits")
        assert "after" not in {each.metadata.name for each in client.list(JOBS, NAMESPACE)}
        assert not members(client, "after")
        assert not [each for each in client.list(PLACEMENTS, NAMESPACE) if each.metadata.name.startswith(LATER)]
        submit(client, "after", gpus=0)
        wait_for(lambda: runs(client, NAMESPACE, "after", 2), STARTS_S, "what is submitted again")
        walked.took("a new gang runs, since then", began_s)
        client.delete(JOBS, "ends", NAMESPACE)
        wait_for(lambda: runs(client, NAMESPACE, "waits", 3), STARTS_S, "the gang that waits")
        assert history.half_placed_s("waits-", 3) < BARRIER_S
        assert history.half_placed_s("after-", 2) < BARRIER_S
        alive = [life for life in history.of("starting-") if life.gone is None]
        assert sorted(life.slot.rank for life in alive if life.slot) == list(range(STARTING))
    assert members(client, "steady") == steady
