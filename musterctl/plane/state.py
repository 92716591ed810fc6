"""The components of a local control plane, and its state, which is stored in `plane.json`: options and ports."""

import os
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

import msgspec

from muster.api.muster.pools import DEFAULT_POOL
from musterctl.plane.machine import LocalError, free_ports, write_private

ETCD: Final = "etcd"
API_SERVER: Final = "kube-apiserver"
CONTROLLER_MANAGER: Final = "kube-controller-manager"
SCHEDULER: Final = "kube-scheduler"
KWOK: Final = "kwok"
WEBHOOK: Final = "webhook"
EXTENDER: Final = "extender"
MUSTER_SCHEDULER: Final = "muster-scheduler"
CONTROLLER: Final = "controller"
HISTORY: Final = "history"

READY: Final = {
    ETCD: ("http", ETCD, "/readyz"),
    API_SERVER: ("https", API_SERVER, "/readyz"),
    CONTROLLER_MANAGER: ("https", CONTROLLER_MANAGER, "/healthz"),
    SCHEDULER: ("https", SCHEDULER, "/readyz"),
    KWOK: ("http", KWOK, "/healthz"),
    WEBHOOK: ("http", "webhook-status", "/readyz"),
    EXTENDER: ("http", "extender-status", "/readyz"),
    MUSTER_SCHEDULER: ("https", MUSTER_SCHEDULER, "/healthz"),
    CONTROLLER: ("http", "controller-status", "/readyz"),
    HISTORY: ("http", "history-status", "/healthz"),
}
"""Maps each component to its health check: scheme, name of the port, and path."""
ALL: Final = tuple(READY)
"""All components, in the order in which they are started."""
COMPONENTS: Final = tuple(name for name in ALL if name != HISTORY)
"""Components that are needed to run gangs: all components except the recorder of the history."""
STOP_GROUPS: Final = (frozenset(ALL) - {ETCD, API_SERVER}, {API_SERVER}, {ETCD})
"""Groups of components that are stopped one after the other, because an API server cannot shut down without etcd."""
CLUSTER: Final = frozenset({ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER, KWOK})
"""The components that an existing cluster already has; they are not started if Muster is attached to a cluster."""
OWN_PROCESSES: Final = frozenset({WEBHOOK, EXTENDER, CONTROLLER, HISTORY})
"""Muster's processes; the other components are programs of other projects."""

DEFAULT_NAME = "default"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?")
OF_A_PAIR: Final = (EXTENDER, MUSTER_SCHEDULER)
"""The components of which each node pool has its own: `extender-NAME` and `muster-scheduler-NAME`."""
PORTS = (
    "etcd", "etcd-peer", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "muster-scheduler", "kwok",
    "webhook", "webhook-status", "extender", "extender-status", "controller-status", "controller-reports",
    "history-status",
)  # fmt: skip
"""Names of the ports of a control plane without additional node pools."""
_OF_A_PAIR_PORTS = (EXTENDER, "extender-status", MUSTER_SCHEDULER)


def base_of(part: str) -> str:
    """Return the name of a component without its node pool: `extender` for `extender-NAME`."""
    return next((base for base in OF_A_PAIR if part.startswith(f"{base}-")), part)


def pool_of(part: str) -> str:
    """Return the node pool of a component; the default pool for components that all pools share."""
    return part.removeprefix(base_of(part)).removeprefix("-")


def in_pool(name: str, pool: str) -> str:
    """Return the name of a node pool's component, or of its port."""
    return f"{name}-{pool}" if pool else name


def parts_of(wanted: Collection[str], pools: Iterable[str]) -> tuple[str, ...]:
    """Return these components, and the components of each additional node pool, in the order of their start."""
    pools = (DEFAULT_POOL, *pools)
    return tuple(
        in_pool(name, pool)
        for name in ALL
        if name in wanted
        for pool in (pools if name in OF_A_PAIR else (DEFAULT_POOL,))
    )


def ready(part: str) -> tuple[str, str, str]:
    """Return the health check of a component: scheme, name of the port, path."""
    scheme, port, path = READY[base_of(part)]
    return scheme, in_pool(port, pool_of(part)), path


def is_own(part: str) -> bool:
    """Return True if a component is one of Muster's processes."""
    return base_of(part) in OWN_PROCESSES


def program_of(part: str) -> str:
    """Return the binary of a component that is not a process of Muster."""
    return SCHEDULER if base_of(part) == MUSTER_SCHEDULER else part


class PlaneOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options with which a control plane was created; only the planner's configuration can be changed later."""

    nodes: int = 8
    pool: tuple[str, ...] = ()
    """Node pools in addition to the default pool, each with its own extender and kube-scheduler. The nodes are divided
    among all pools."""
    cpu: str = "32"
    memory: str = "256Gi"
    gpus: int = 8
    racks: int = 2
    blocks: int = 1
    kubernetes: str = ""
    """The Kubernetes version of the control plane, e.g. 1.34; empty means the version of the available programs, or the
    newest supported version."""
    kubeconfig: str = ""
    """Attach mode: the kubeconfig of an existing control plane; empty for a new local control plane."""
    scheduler: bool = True
    """Attach mode: whether Muster's kube-scheduler is started."""
    shared: bool = False
    """Whether the cluster's own scheduler also serves Muster's pods, so that Muster's kube-scheduler does not run."""
    extender_tls: bool = False
    """Whether kube-scheduler calls the extender over TLS, with certificates on both sides, instead of plain HTTP."""
    admission_config: str = ""
    """The webhook's configuration as YAML text, not as the name of a file."""
    planning_config: str = ""
    """The planner's configuration, with actions and plugins, as YAML text, not as the name of a file."""
    webhook_port: int = 0
    """Port of the webhook; 0 chooses a free port."""
    extender_port: int = 0
    """Port of the extender; 0 chooses a free port."""


class PlaneState(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `plane.json`: options, and the components and ports that were chosen at creation."""

    options: PlaneOptions
    parts: tuple[str, ...]
    ports: dict[str, int]


def home() -> Path:
    """Return the folder that contains the folders of all local control planes."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "muster"


def folder_of(name: str) -> Path:
    """Return the folder of the local control plane with this name."""
    if not _NAME.fullmatch(name):
        raise LocalError(
            f"a control plane cannot be named {name!r}: use at most 42 lower-case letters, digits and '-', "
            "without '-' at the ends"
        )
    return home() / name


def history_of(folder: Path) -> str:
    """Return the URL of the history's store in the folder of a control plane."""
    return f"sqlite:///{folder.absolute() / 'history.db'}"


def names() -> list[str]:
    """Return the names of all local control planes."""
    return sorted(path.parent.name for path in home().glob("*/plane.json"))


def load(folder: Path) -> PlaneState | None:
    """Return the state of the control plane in this folder; None if the folder contains no control plane."""
    try:
        return msgspec.json.decode((folder / "plane.json").read_bytes(), type=PlaneState)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise LocalError(f"{folder / 'plane.json'} cannot be read ({error}); remove {folder} to start again") from error


def create(folder: Path, options: PlaneOptions, parts: tuple[str, ...]) -> PlaneState:
    """Choose ports for a new control plane, and write its state."""
    wished = {"webhook": options.webhook_port, "extender": options.extender_port}
    given = {name: port for name, port in wished.items() if port}
    ports = (*PORTS, *(in_pool(port, pool) for pool in options.pool for port in _OF_A_PAIR_PORTS))
    chosen = free_ports(len(ports), taken=given.values())
    state = PlaneState(options=options, parts=parts, ports=dict(zip(ports, chosen, strict=True)) | given)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    save(folder, state)
    return state


def save(folder: Path, state: PlaneState) -> None:
    """Write the state of a control plane."""
    write_private(folder / "plane.json", msgspec.json.format(msgspec.json.encode(state)))
