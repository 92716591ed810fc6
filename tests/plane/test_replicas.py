"""Two pairs of kube-scheduler and extender: one leads, and one that was frozen does not act on what it remembers."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from gang_jobs import History, job
from pairs import ended, option, replaced, resettled, started

from muster.api.kubernetes.core import LEASES, PODS
from muster.api.muster.placement import PLACEMENTS
from muster.api.names import SCHEDULER_LEASE, SYSTEM_NAMESPACE
from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from musterctl.plane.machine import free_ports
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.long, pytest.mark.alone]
OTHER_HOST = "other"


@pytest.fixture
def second_pair(plane: Plane, tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Starts kube-scheduler and extender once more, on the host `other`; they stand by. Ended after the test."""
    secure, extender, status = free_ports(3, plane.state.ports.values())
    scheduler = plane.commandlines.command("muster-scheduler")
    config = yaml.safe_load(Path(option(scheduler, "--config")).read_text())
    for entry in config["extenders"]:
        entry["urlPrefix"] = f"http://127.0.0.1:{extender}"
    file = tmp_path / "scheduler.yaml"
    file.write_text(yaml.safe_dump(config))
    commands = [
        resettled(
            plane.commandlines.command("extender"), tmp_path / "extender.yaml", {"port": extender, "statusPort": status}
        ),
        replaced(scheduler, {"--config": file, "--secure-port": secure}),
    ]
    pair = [started(command, tmp_path / f"{number}.log", host=OTHER_HOST) for number, command in enumerate(commands)]
    try:
        yield pair
    finally:
        for process in pair:
            ended(process)


def holder(client: Client) -> str:
    """Who leads."""
    return client.get(LEASES, SCHEDULER_LEASE, SYSTEM_NAMESPACE).spec.holder_identity or ""


def test_a_frozen_leader_binds_nothing_when_it_wakes_up(
    plane: Plane, namespace: str, second_pair: list[subprocess.Popen[bytes]], wait_for: Callable[..., Any]
) -> None:
    """The other pair takes over and places the gang; the woken one neither binds nor plans."""
    client = plane.client()
    wait_for(lambda: holder(client) and not holder(client).startswith(OTHER_HOST), 30, "the first pair to lead")
    frozen = [plane.part("muster-scheduler"), plane.part("extender")]
    try:
        with History(client, namespace) as history:
            client.create(JOBS, job("gang", namespace, replicas=16, gpus=4), namespace)
            wait_for(lambda: client.list(PLACEMENTS, namespace), 30, "the placement")
            for part in frozen:
                _signal_all(part.pid, signal.SIGSTOP)
            wait_for(lambda: holder(client).startswith(OTHER_HOST), 60, "the second pair to lead")
            wait_for(lambda: client.get(JOBS, "gang", namespace).status.running == 16, 90, "the gang to run")
            placed = {placement.metadata.uid: placement.spec for placement in client.list(PLACEMENTS, namespace)}
            for part in frozen:
                _signal_all(part.pid, signal.SIGCONT)
            client.create(JOBS, job("later", namespace, replicas=4, gpus=0), namespace)
            wait_for(lambda: client.get(JOBS, "later", namespace).status.running == 4, 60, "the next gang to run")
            assert holder(client).startswith(OTHER_HOST)
            now = {placement.metadata.uid: placement.spec for placement in client.list(PLACEMENTS, namespace)}
            assert all(now[uid] == spec for uid, spec in placed.items()), "the woken planner wrote"
            alive = [life for life in history.of("gang-") if life.gone is None]
            assert sorted(life.slot.rank for life in alive if life.slot) == list(range(16))
            assert all(len(life.nodes) == 1 for life in alive)
            assert all(pod.spec.node_name for pod in client.list(PODS, namespace))
    finally:
        for process in second_pair:
            ended(process)
        for part in frozen:
            part.kill()  # kube-scheduler would end by itself, but when it has found out that its lease is lost
        plane.mend()
        for name in ("gang", "later"):
            client.delete(JOBS, name, namespace)


def _signal_all(pid: int | None, signum: int) -> None:
    """A process of the plane and its children (a gunicorn master's worker)."""
    if pid is not None:
        with suppress(ProcessLookupError):
            os.killpg(os.getpgid(pid), signum)
