"""The clock of Muster's node is off by an hour, and set right again; the runbook's commands, and what this changes."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from gang_jobs import History, job, metric, runs
from runbook import BARRIER_S, NAMESPACE, STARTS_S, Walk, members, sections, submit, walk
from shifted import Clock, shifted

from muster.api import names
from muster.api.kubernetes.core import LEASES
from muster.api.kubernetes.meta import parse_time
from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from musterctl.plane.plane import Plane
from musterctl.plane.state import COMPONENTS, CONTROLLER, EXTENDER, WEBHOOK

pytestmark = [pytest.mark.plane, pytest.mark.long]
__all__ = ["walk"]
WaitFor = Callable[..., Any]
HEADING = "The clock of a node is wrong"
HOUR_S = 3600
TTL_S = 1800
LEASE_S = 15.0


@pytest.fixture(scope="module")
def clocked(
    module_plane: Callable[..., Plane], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Plane, Clock]]:
    """A plane whose webhook, extender and controller have a clock of their own."""
    with shifted(tmp_path_factory.mktemp("clock")) as clock:
        yield module_plane(COMPONENTS, nodes=4), clock


def leaders(client: Client) -> dict[str, tuple[str | None, int | None]]:
    """Who leads by each of Muster's leases, and how often that has changed."""
    return {
        each.metadata.name: (each.spec.holder_identity, each.spec.lease_transitions)
        for each in client.list(LEASES, names.SYSTEM_NAMESPACE)
    }


def ahead_s(said: str) -> float:
    """By how much the controller's clock is ahead of the right one, by the times that the page's command prints."""
    (renewed,) = (line.split()[1] for line in said.splitlines() if line.startswith(names.CONTROLLER_LEASE))
    return (parse_time(renewed) or 0.0) - time.time()


@pytest.mark.parametrize("off_s", [HOUR_S, -HOUR_S], ids=["ahead", "behind"])
def test_clock_off_by_an_hour(
    clocked: tuple[Plane, Clock], walk: Callable[[Plane], Walk], wait_for: WaitFor, off_s: int
) -> None:
    """Gangs start whole and leaders stay, also in the moment of the change; only what waits for a time comes early."""
    plane, clock = clocked
    client, walked = plane.client(), walk(plane)
    word = "ahead" if off_s > 0 else "behind"
    steady, done = f"steady-{word}", f"done-{word}"
    submit(client, steady, gpus=1)
    ends = job_that_ends(client, done, wait_for)
    wait_for(lambda: runs(client, NAMESPACE, steady, 2), STARTS_S, "a gang")
    before, led = members(client, steady), leaders(client)
    (shown,) = sections()[HEADING]
    with History(client, NAMESPACE) as history:
        for shift_s in (off_s, 0):
            clock.shift(shift_s)
            changed_s, name = time.monotonic(), f"gang-{word}-{'wrong' if shift_s else 'right'}"
            wait_for(lambda want=shift_s: abs(ahead_s(walked.run(shown)) - want) < LEASE_S, 30, "the lease to show it")
            submit(client, name, gpus=1)
            wait_for(lambda name=name: runs(client, NAMESPACE, name, 2), STARTS_S, "a gang")
            walked.took(f"{name} runs", changed_s)
            assert history.half_placed_s(f"{name}-", 2) < BARRIER_S
            touch(client, done)
            wait_for(lambda since=changed_s: time.monotonic() > since + 2 * LEASE_S, 60, "two leases to pass")
            assert leaders(client) == led
            assert [plane.trouble(part) for part in (WEBHOOK, EXTENDER, CONTROLLER)] == ["", "", ""]
            assert metric(plane, "extender", 'muster_leading{pool=""}') == 1
            kept = done in {each.metadata.name for each in client.list(JOBS, NAMESPACE)}
            assert kept == (off_s < 0), ends
    assert members(client, steady) == before


def job_that_ends(client: Client, name: str, wait_for: WaitFor) -> str:
    """A gang that has ended, and goes half an hour later; the time of its end."""
    manifest = job(name, NAMESPACE, replicas=2, gpus=1, run_s=1)
    manifest["spec"]["ttlSecondsAfterFinished"] = TTL_S
    client.create(JOBS, manifest, NAMESPACE)
    wait_for(lambda: client.get(JOBS, name, NAMESPACE).status.state.phase == "Completed", STARTS_S, "its end")
    return f"{client.get(JOBS, name, NAMESPACE).status.state.last_transition_time}"


def touch(client: Client, name: str) -> None:
    """Has the controller look at a Job, if it exists."""
    if name in {each.metadata.name for each in client.list(JOBS, NAMESPACE)}:
        client.merge_patch(JOBS, name, {"metadata": {"annotations": {"touched": f"{time.time()}"}}}, NAMESPACE)
