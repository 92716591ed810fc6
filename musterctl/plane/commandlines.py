"""The command line of every part of a plane, and the URLs where it listens."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import yaml

from controller.settings import ControllerSettings
from extender.settings import ExtenderSettings
from history.settings import HistorySettings
from muster.api.muster.pools import DEFAULT_POOL, lease_of
from muster.api.names import SYSTEM_NAMESPACE
from muster.process.settings import Settings, text_of
from musterctl.chart import files
from musterctl.plane import state
from musterctl.plane.machine import LOOPBACK
from musterctl.plane.pki import Pki, admission_control, webhook_callers
from musterctl.plane.rights import CLUSTER_LEASE
from musterctl.plane.state import PlaneOptions
from webhook.settings import WebhookSettings

_TEMPLATES: Final[dict[str, list[str]]] = files.document(Path(__file__).with_name("arguments.yaml"))
_PLAYED_NODES_LAST: Final = "8760h"
"""Nodes without Leases stay Ready for so long; kwok changes their condition once and never again."""

_KWOK: Final = {
    "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
    "kind": "KwokConfiguration",
    "options": {"enableDebuggingHandlers": True, "enableProfilingHandler": False},
}
"""kwok answers for kubelets when it is asked for logs."""
_NO_LOGS: Final = (
    "2020-01-01T00:00:00Z stdout F this node is simulated, so its pods run no program and write no log; "
    "muster explain pod NAME and muster kubectl describe pod NAME say what becomes of a pod\n"
)
"""The log of every container, as a container runtime would have written it."""


@dataclass(frozen=True, slots=True)
class CommandLines:
    """The plane as command lines depend on it."""

    folder: Path
    options: PlaneOptions
    ports: dict[str, int]
    pki: Pki
    binaries: Callable[[], dict[str, Path]]
    kubeconfig: Callable[[str], Path]
    """The kubeconfig of a part."""
    settings: Mapping[str, Mapping[str, object]]
    """More fields for the settings of Muster's processes, as their files name them; they win."""
    played: bool
    """True if kwok plays the nodes; otherwise real kubelets renew their Leases."""

    def command(self, part: str) -> list[str]:
        """The whole command line of a part; writes the configuration file that it needs."""
        base = state.base_of(part)
        arguments = _ARGUMENTS[base](self, part)
        if state.is_own(part):
            return [sys.executable, "-m", base, *arguments]
        return [str(self.binaries()[state.program_of(part)]), *arguments]

    def listens(self, part: str) -> str:
        """The URL of the part; for a process of Muster's without an API that is its status page."""
        plain = part in {state.ETCD, state.KWOK, state.CONTROLLER, state.HISTORY} or (
            state.base_of(part) == state.EXTENDER and not self.options.extender_tls
        )
        return self.url(part if part in self.ports else f"{part}-status", scheme="http" if plain else "https")

    def extender(self, pool: str = DEFAULT_POOL) -> files.ExtenderAt:
        """The address of the extender of a pool for its kube-scheduler."""
        return files.ExtenderAt(self.listens(state.in_pool(state.EXTENDER, pool)), str(self.pki.extender_folder))

    def url(self, port: str, *, scheme: str = "http") -> str:
        """The URL of a port of the plane."""
        return f"{scheme}://{LOOPBACK}:{self.ports[port]}"

    def write_planning(self, text: str) -> Path:
        """Writes the file of the planner's configuration, which the extender follows; empty means its defaults."""
        return self.write("planning.yaml", text)

    def write(self, name: str, content: str) -> Path:
        """Writes a file of a part."""
        path = self.folder / name
        path.write_text(content, encoding="utf-8")
        return path


def _arguments(commandlines: CommandLines, part: str, **marks: object) -> list[str]:
    """Return the arguments of a program of Kubernetes, with these marks filled in, and those that all parts have."""
    marks |= {"folder": commandlines.folder, "pki": commandlines.pki, "ports": commandlines.ports, "address": LOOPBACK}
    marks |= {"port": commandlines.ports[part], "base": state.base_of(part)}
    return [each.format_map(marks) for each in _TEMPLATES[state.program_of(part)]]


def _api_server(commandlines: CommandLines, part: str) -> list[str]:
    folder = commandlines.pki.webhook_folder
    callers = yaml.safe_dump(webhook_callers(folder / "client.crt", folder / "client.key"))
    control = yaml.safe_dump(admission_control(commandlines.write("webhook-callers.yaml", callers)))
    return _arguments(commandlines, part, admission=commandlines.write("admission-control.yaml", control))


def _controller_manager(commandlines: CommandLines, part: str) -> list[str]:
    lasts = [f"--node-monitor-grace-period={_PLAYED_NODES_LAST}"] if commandlines.played else []
    return [*_arguments(commandlines, part, kubeconfig=commandlines.kubeconfig(part)), *lasts]


def _scheduler(commandlines: CommandLines, part: str) -> list[str]:
    """Return the arguments of the cluster's own kube-scheduler or, as that part, of Muster's."""
    kubeconfig, shared = str(commandlines.kubeconfig(part)), commandlines.options.shared and part == state.SCHEDULER
    if state.base_of(part) == state.MUSTER_SCHEDULER or shared:
        pool = state.pool_of(part)
        extender = commandlines.extender(pool)
        config = files.kube_scheduler(kubeconfig=kubeconfig, extender=extender, shared=shared, pool=pool)
    else:
        config = files.default_scheduler(kubeconfig=kubeconfig)
    file = commandlines.write(f"{part}.yaml", yaml.safe_dump(config, sort_keys=False))
    return _arguments(commandlines, part, config=file, kubeconfig=kubeconfig)


def _kwok(commandlines: CommandLines, part: str) -> list[str]:
    logs = {"logsFile": str(commandlines.write("simulated.log", _NO_LOGS))}
    answers = {"spec": {"logs": [{**logs, "previousLogsFile": logs["logsFile"]}]}}
    kind = {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "ClusterLogs", "metadata": {"name": "simulated"}}
    config = commandlines.write("kwok.yaml", yaml.safe_dump_all([_KWOK, kind | answers]))
    stages, kubeconfig = Path(__file__).with_name("stages.yaml"), commandlines.kubeconfig(part)
    return _arguments(commandlines, part, config=config, stages=stages, kubeconfig=kubeconfig)


def _webhook(commandlines: CommandLines, part: str) -> list[str]:
    groups = commandlines.options.admission_config
    settings = WebhookSettings(
        port=commandlines.ports["webhook"],
        status_port=commandlines.ports["webhook-status"],
        cert_file=str(commandlines.pki.cert_file("webhook")),
        key_file=str(commandlines.pki.key_file("webhook")),
        # An API server that existed before has no certificate for us.
        client_ca_file="" if commandlines.options.kubeconfig else str(commandlines.pki.webhook_folder / "ca.crt"),
        mark_pods=commandlines.options.shared,
        config=str(commandlines.write("admission.yaml", groups)) if groups else None,
    )
    return [*_own(commandlines, part, settings), f"--host={LOOPBACK}"]


def _extender(commandlines: CommandLines, part: str) -> list[str]:
    pool = state.pool_of(part)
    namespace, lease = CLUSTER_LEASE if commandlines.options.shared else (SYSTEM_NAMESPACE, lease_of(pool))
    settings = ExtenderSettings(
        port=commandlines.ports[part],
        status_port=commandlines.ports[state.in_pool("extender-status", pool)],
        node_pool=pool,
        lease_name=lease,
        lease_namespace=namespace,
        config=str(commandlines.write_planning(commandlines.options.planning_config)),
    )
    if commandlines.options.extender_tls:
        folder = commandlines.pki.extender_folder
        settings = msgspec.structs.replace(
            settings,
            cert_file=str(folder / "tls.crt"),
            key_file=str(folder / "tls.key"),
            client_ca_file=str(folder / "ca.crt"),
        )
    return _own(commandlines, part, settings)


def _controller(commandlines: CommandLines, part: str) -> list[str]:
    settings = ControllerSettings(
        status_port=commandlines.ports["controller-status"],
        report_port=commandlines.ports["controller-reports"],
        report_url=commandlines.url("controller-reports", scheme="https"),
        report_cert_file=str(commandlines.pki.cert_file(part)),
        report_key_file=str(commandlines.pki.key_file(part)),
        report_ca_file=str(commandlines.pki.ca_file),
        native_pod_groups=not commandlines.options.shared,
    )
    return [*_own(commandlines, part, settings), f"--report-host={LOOPBACK}"]


def _history(commandlines: CommandLines, part: str) -> list[str]:
    settings = HistorySettings(
        status_port=commandlines.ports["history-status"], database=state.history_of(commandlines.folder)
    )
    return _own(commandlines, part, settings)


def _own(commandlines: CommandLines, part: str, settings: Settings) -> list[str]:
    """The arguments of every process of Muster's: its kubeconfig, and the file with its settings, which is written."""
    text = text_of(settings, commandlines.settings.get(state.base_of(part), {}))
    return [
        f"--kubeconfig={commandlines.kubeconfig(part)}",
        f"--settings={commandlines.write(f'{part}-settings.yaml', text)}",
    ]


_ARGUMENTS: Final[dict[str, Callable[[CommandLines, str], list[str]]]] = {
    state.ETCD: _arguments,
    state.API_SERVER: _api_server,
    state.CONTROLLER_MANAGER: _controller_manager,
    state.SCHEDULER: _scheduler,
    state.KWOK: _kwok,
    state.WEBHOOK: _webhook,
    state.EXTENDER: _extender,
    state.MUSTER_SCHEDULER: _scheduler,
    state.CONTROLLER: _controller,
    state.HISTORY: _history,
}
