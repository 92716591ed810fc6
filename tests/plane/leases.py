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


def revive(plane: Plane) -> None:
    """Starts what has ended, as a kubelet would: a leader ends when its machine stood still for longer than its lease.

    No successor waits for the lease of a dead one, which may be longer than what a test waits for.
    """
    dead = {name for name, part in plane.parts.items() if part.word == "dead"}
    if not dead:
        return
    plane.mend()
    for part, lease in (("controller", names.CONTROLLER_LEASE), ("muster-scheduler", names.SCHEDULER_LEASE)):
        if part in dead:
            with contextlib.suppress(NotFound):
                plane.client().delete(LEASES, lease, names.SYSTEM_NAMESPACE)


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
