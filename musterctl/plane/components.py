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

_PROGRAM: Final = {MUSTER_SCHEDULER: "kube-scheduler"}


def program_of(part: str) -> str:
    """The name of the binary behind a part that is not one of Muster's processes."""
    return _PROGRAM.get(part, part)


def runnable(part: str) -> bool:
    """Whether the part can be run at all: a process of Muster's needs its `__main__`."""
    return part not in OWN_PROCESSES or importlib.util.find_spec(f"{part}.__main__") is not None
