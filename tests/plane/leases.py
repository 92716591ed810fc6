"""Parts that follow a killed one without waiting for its lease."""

import contextlib

from muster.api.core import LEASES
from muster.api.names import SYSTEM_NAMESPACE
from muster.kube.errors import NotFound
from musterctl.plane.plane import Plane


def start_at_once(plane: Plane, part: str, lease: str) -> None:
    """Starts a part that leads by this lease, whose dead holder would else be waited for."""
    with contextlib.suppress(NotFound):
        plane.client().delete(LEASES, lease, SYSTEM_NAMESPACE)
    plane.part(part).start()
