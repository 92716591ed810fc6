"""What a plane consists of: the names of its parts, in the order in which they are started."""

import importlib.util
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

COMPONENTS: Final = (
    ETCD,
    API_SERVER,
    CONTROLLER_MANAGER,
    SCHEDULER,
    KWOK,
    WEBHOOK,
    EXTENDER,
    MUSTER_SCHEDULER,
    CONTROLLER,
)
STOP_GROUPS: Final = (frozenset(COMPONENTS) - {ETCD, API_SERVER}, {API_SERVER}, {ETCD})
"""Which parts are ended together, in this order: without etcd not even an API server can end."""
CLUSTER: Final = frozenset({ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER, KWOK})
"""The parts that an existing control plane already has."""
OWN_PROCESSES: Final = frozenset({WEBHOOK, EXTENDER, CONTROLLER})
"""Muster's three processes; the other parts are other people's programs."""

READY: Final = {
    ETCD: ("http", "etcd", "/readyz"),
    API_SERVER: ("https", "kube-apiserver", "/readyz"),
    CONTROLLER_MANAGER: ("https", "kube-controller-manager", "/healthz"),
    SCHEDULER: ("https", "kube-scheduler", "/readyz"),
    MUSTER_SCHEDULER: ("https", "muster-scheduler", "/healthz"),
    KWOK: ("http", "kwok", "/healthz"),
    WEBHOOK: ("http", "webhook-status", "/readyz"),
    EXTENDER: ("http", "extender-status", "/healthz"),  # ready only once its kube-scheduler leads
    CONTROLLER: ("http", "controller-status", "/readyz"),
}
"""Where a part says that it is ready: scheme, name of the port, path."""
_PROGRAM: Final = {MUSTER_SCHEDULER: "kube-scheduler"}


def program_of(part: str) -> str:
    """The name of the binary behind a part that is not one of Muster's processes."""
    return _PROGRAM.get(part, part)


def runnable(part: str) -> bool:
    """Whether the part can be run at all: a process of Muster's needs its `__main__`."""
    return part not in OWN_PROCESSES or importlib.util.find_spec(f"{part}.__main__") is not None
