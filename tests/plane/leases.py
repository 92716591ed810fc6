"""Parts that follow a killed one without waiting for its lease."""

import contextlib
import time

from muster.api import names
from muster.api.kubernetes.core import LEASES
from muster.kube.errors import NotFound
from musterctl.plane.plane import Plane


def start_at_once(plane: Plane, part: str, lease: str) -> None:
    """Starts a part that leads by this lease, whose dead holder would else be waited for."""
    with contextlib.suppress(NotFound):
        plane.client().delete(LEASES, lease, names.SYSTEM_NAMESPACE)
    plane.part(part).start()


def kill_controller(plane: Plane) -> None:
    """SIGKILL, and a successor that need not wait for the dead one's lease; returns when that one leads."""
    plane.part("controller").kill()
    start_at_once(plane, "controller", names.CONTROLLER_LEASE)
    client, deadline = plane.client(), time.monotonic() + 60
    while not any(
        lease.metadata.name == names.CONTROLLER_LEASE for lease in client.list(LEASES, names.SYSTEM_NAMESPACE)
    ):
        assert time.monotonic() < deadline, "no controller leads"
        time.sleep(0.02)
