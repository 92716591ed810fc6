"""kube-scheduler calls the extender over TLS, with a certificate, and one of both is renewed meanwhile."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from gang_jobs import History, job, metric

from certs.authority import Authority
from muster.api.names import EXTENDER_HOST
from muster.api.volcano.batch import JOBS
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.long, pytest.mark.timeout(600)]
PODS_OF_GANG = 400
HELD = 200
WHOLE_S = 120.0
_ESTABLISHED = "01"
_EXPIRES = "muster_server_certificate_expiry_timestamp_seconds"
WaitFor = Callable[..., Any]


def connections(port: int) -> int:
    """How many clients are connected to this port of the machine."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == _ESTABLISHED for row in rows)


def renew(plane: Plane) -> None:
    """New certificates of the same authority for both, that of the extender with another end."""
    folder = plane.root / "pki" / "extender"
    authority = Authority.load(folder)
    authority.issue("kube-scheduler", client=True).save(folder, "client")
    authority.issue(EXTENDER_HOST, dns_names=(EXTENDER_HOST,), server=True).save(folder)


@contextmanager
def stopped(plane: Plane, part: str) -> Iterator[None]:
    """The part stands still meanwhile."""
    pid = plane.part(part).pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_gang_is_bound_while_certificates_are_renewed(fresh_plane: Callable[..., Plane], wait_for: WaitFor) -> None:
    """Each held call has a connection of its own; none of them breaks, and the gang starts as one."""
    plane = fresh_plane(nodes=16, extender_tls=True)
    client, port = plane.client(), plane.state.ports["extender"]
    with History(client, "default") as history:
        client.create(JOBS, job("gang", "default", replicas=PODS_OF_GANG, gpus=0, cpu="10m"), "default")

        def held() -> int:
            return int(metric(plane, "extender", "muster_barrier_held"))

        wait_for(lambda: held() >= HELD, WHOLE_S, "calls to be held")
        with stopped(plane, "muster-scheduler"):
            before = held()
            assert HELD <= before < PODS_OF_GANG
            assert connections(port) >= before
            shown = metric(plane, "extender", _EXPIRES)
            renew(plane)
            wait_for(lambda: metric(plane, "extender", _EXPIRES) != shown, WHOLE_S, "the new certificate")
            assert held() >= before
        wait_for(lambda: client.get(JOBS, "gang", "default").status.running == PODS_OF_GANG, WHOLE_S, "the gang to run")
        assert not [life for life in history.pods.values() if len(life.nodes) > 1]
        assert metric(plane, "extender", 'muster_barrier_total{outcome="timed_out"}') == 0
