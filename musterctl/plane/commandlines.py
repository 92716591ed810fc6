"""The command line of each component of a local control plane, and the URLs on which each component listens."""

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
"""Time for which nodes that kwok simulates stay Ready without a renewed Lease. The time is long, because kwok sets the
condition Ready only once."""

_KWOK: Final = {
    "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
    "kind": "KwokConfiguration",
    "options": {"enableDebuggingHandlers": True, "enableProfilingHandler": False},
}
"""The configuration with which kwok, in place of kubelets, answers requests for the logs of pods."""
_NO_LOGS: Final = (
    "2020-01-01T00:00:00Z stdout F this node is simulated, so its pods run no program and write no log; "
    "muster explain pod NAME and muster kubectl describe pod NAME show the state of a pod\n"
)
"""The log that kwok returns for every container, in the format of a container runtime."""


@dataclass(frozen=True, slots=True)
class CommandLines:
    """Builder of the command lines of a local control plane's components."""

    folder: Path
    current_options: Callable[[], PlaneOptions]
    """Function that returns the current options, because the options of a running control plane can change."""
    ports: dict[str, int]
    pki: Pki
    binaries: Callable[[], dict[str, Path]]
    kubeconfig: Callable[[str], Path]
    """Function that returns the path of the kubeconfig of a component."""
    settings: Mapping[str, Mapping[str, object]]
    """Additional fields for the settings files of Muster's processes, which override the defaults."""
    played: bool
    """True if kwok simulates the nodes; False if the nodes have real kubelets, which renew their Leases."""

    @property
    def options(self) -> PlaneOptions:
        """Return the current options of the control plane."""
        return self.current_options()

    def command(self, part: str) -> list[str]:
        """Return the command line of a component; write the configuration file that the component needs."""
        base = state.base_of(part)
        arguments = _ARGUMENTS[base](self, part)
        if state.is_own(part):
            return [sys.executable, "-m", base, *arguments]
        return [str(self.binaries()[state.program_of(part)]), *arguments]

    def listens(self, part: str) -> str:
        """Return the URL of the component; for Muster's processes without an API, the URL of the status page."""
        plain = part in {state.ETCD, state.KWOK, state.CONTROLLER, state.HISTORY} or (
            state.base_of(part) == state.EXTENDER and not self.options.extender_tls
        )
        return self.url(part if part in self.ports else f"{part}-status", scheme="http" if plain else "https")

    def extender(self, pool: str = DEFAULT_POOL) -> files.ExtenderAt:
        """Return the address at which a pool's kube-scheduler calls its extender."""
        return files.ExtenderAt(self.listens(state.in_pool(state.EXTENDER, pool)), str(self.pki.extender_folder))

    def url(self, port: str, *, scheme: str = "http") -> str:
        """Return the URL of one of the control plane's ports."""
        return f"{scheme}://{LOOPBACK}:{self.ports[port]}"

    def write_planning(self, text: str) -> Path:
        """Write the planner's configuration file, which the extender reloads; empty text means the defaults."""
        return self.write("planning.yaml", text)

    def write(self, name: str, content: str) -> Path:
        """Write a configuration file into the folder of the control plane, and return the path of the file."""
        path = self.folder / name
        path.write_text(content, encoding="utf-8")
        return path


def _arguments(commandlines: CommandLines, part: str, **marks: object) -> list[str]:
    """Return the arguments of a program from its template, in which the placeholders are filled in."""
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
    """Return the arguments of the cluster's own kube-scheduler, or of Muster's kube-scheduler."""
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
        # An existing cluster's API server presents no client certificate that this plane has issued.
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
    """Return the common arguments of Muster's processes: kubeconfig and settings file; write the settings file."""
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
