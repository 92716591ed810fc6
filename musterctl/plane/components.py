"""The parts of a plane: their names, in the order in which they are started, and the URLs of their health checks."""

from typing import Final

ETCD: Final = "etcd"
API_SERVER: Final = "kube-apiserver"
CONTROLLER_MANAGER: Final = "kube-controller-manager"
SCHEDULER: Final = "kube-scheduler"
KWOK: Final = "kwok"
WEBHOOK: Final = "webhook"
EXTENDER: Final = "extender"
MUSTER_SCHEDULER: Final = "muster-scheduler"
CONTROLLER: Final = "controller"

READY: Final = {
    ETCD: ("http", ETCD, "/readyz"),
    API_SERVER: ("https", API_SERVER, "/readyz"),
    CONTROLLER_MANAGER: ("https", CONTROLLER_MANAGER, "/healthz"),
    SCHEDULER: ("https", SCHEDULER, "/readyz"),
    KWOK: ("http", KWOK, "/healthz"),
    WEBHOOK: ("http", "webhook-status", "/readyz"),
    EXTENDER: ("http", "extender-status", "/healthz"),  # ready only once its kube-scheduler leads
    MUSTER_SCHEDULER: ("https", MUSTER_SCHEDULER, "/healthz"),
    CONTROLLER: ("http", "controller-status", "/readyz"),
}
"""The health check of each part: scheme, name of the port, path."""
COMPONENTS: Final = tuple(READY)
"""All parts, in the order in which they are started."""
STOP_GROUPS: Final = (frozenset(COMPONENTS) - {ETCD, API_SERVER}, {API_SERVER}, {ETCD})
"""Parts that are ended together, in this order: without etcd not even an API server can end."""
CLUSTER: Final = frozenset({ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER, KWOK})
"""The parts that an existing control plane already has."""
OWN_PROCESSES: Final = frozenset({WEBHOOK, EXTENDER, CONTROLLER})
"""Muster's three processes; the other parts are programs of others."""


def program_of(part: str) -> str:
    """The binary of a part that is none of Muster's processes."""
    return SCHEDULER if part == MUSTER_SCHEDULER else part
