"""The API server responds slowly; the runbook's commands show it, gangs start whole, and no lease is lost."""

import re
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gang_jobs import History, runs
from runbook import BARRIER_S, NAMESPACE, STARTS_S, Walk, members, submit, walk
from slow import Delayed

from muster.api import names
from muster.api.kubernetes.core import LEASES
from muster.kube.client import Client
from musterctl.plane.machine import free_ports
from musterctl.plane.plane import Plane
from musterctl.plane.state import API_SERVER, COMPONENTS, CONTROLLER, EXTENDER, WEBHOOK

pytestmark = [pytest.mark.plane, pytest.mark.long]
__all__ = ["walk"]
WaitFor = Callable[..., Any]
HEADING = "The API server is slow"
SUMMED = re.compile(r"^muster_kube_request_seconds_(sum|count)\{(?!verb=\"watch)[^}]*\} (\S+)$", re.MULTILINE)
LEASES_OF_MUSTER = (names.CONTROLLER_LEASE, names.SCHEDULER_LEASE)
DELAY_S = 2.0
LEASE_S = 15.0
REPLICAS = 16


@pytest.fixture
def slow(fresh_plane: Callable[..., Plane]) -> Iterator[tuple[Plane, Delayed, int]]:
    """A plane behind a proxy that delays responses, and the API server's own port."""
    plane = fresh_plane(COMPONENTS, start=False, nodes=4)
    (port,) = free_ports(1, plane.state.ports.values())
    plane.arguments[API_SERVER] = [*plane.arguments.get(API_SERVER, ()), f"--secure-port={port}"]
    with Delayed(plane.state.ports[API_SERVER], port) as delayed:
        plane.start()
        yield plane, delayed, port
        delayed.delay_s = 0.0
        plane.stop()


def leaders(client: Client) -> dict[str, tuple[str | None, int | None]]:
    """Who leads by each of Muster's leases, and how often that has changed."""
    found = (client.get(LEASES, name, names.SYSTEM_NAMESPACE) for name in LEASES_OF_MUSTER)
    return {each.metadata.name: (each.spec.holder_identity, each.spec.lease_transitions) for each in found}


def requests_of(plane: Plane, part: str) -> tuple[float, float]:
    """How long all requests of a process took together, and their number."""
    with urllib.request.urlopen(f"http://127.0.0.1:{plane.state.ports[f'{part}-status']}/metrics", timeout=5) as answer:
        found = SUMMED.findall(answer.read().decode())
    seconds, count = (sum(float(value) for what, value in found if what == wanted) for wanted in ("sum", "count"))
    return seconds, count


def test_slow_api_server(
    slow: tuple[Plane, Delayed, int], walk: Callable[[Plane], Walk], wait_for: WaitFor, tmp_path: Path
) -> None:
    """A gang that runs stays, others start whole, each process is ready, and both leaders lead on."""
    plane, delayed, port = slow
    direct = tmp_path / "direct.kubeconfig"
    direct.write_text(plane.kubeconfig.read_text().replace(f":{plane.state.ports[API_SERVER]}", f":{port}"))
    client, walked = Client.load(direct), walk(plane)
    submit(client, "steady", gpus=1)
    wait_for(lambda: runs(client, NAMESPACE, "steady", 2), STARTS_S, "a gang")
    steady = members(client, "steady")
    wait_for(lambda: all(holder for holder, _ in leaders(client).values()), 60, "the leaders")
    led = leaders(client)
    before = {part: requests_of(plane, part) for part in (EXTENDER, CONTROLLER)}
    delayed.delay_s, began_s = DELAY_S, time.monotonic()
    with History(client, NAMESPACE) as history:
        submit(client, "later", REPLICAS, gpus=0)
        wait_for(lambda: runs(client, NAMESPACE, "later", REPLICAS), STARTS_S, "a gang")
        walked.took(f"a gang of {REPLICAS} runs with {DELAY_S:g} s", began_s)
        assert history.half_placed_s("later-", REPLICAS) < BARRIER_S
    said = walked.section(HEADING)
    assert all(each in "".join(said.values()) for each in (*LEASES_OF_MUSTER, "later", "steady"))
    wait_for(lambda: time.monotonic() > began_s + 3 * LEASE_S, 60, "three leases to pass")
    for part, (seconds, count) in before.items():
        seconds_now, count_now = requests_of(plane, part)
        assert (seconds_now - seconds) / (count_now - count) > DELAY_S
    assert [plane.trouble(part) for part in (WEBHOOK, EXTENDER, CONTROLLER)] == ["", "", ""]
    assert leaders(client) == led
    assert members(client, "steady") == steady
