"""The command line of the extender process: its table, and what it says as one frozen value."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from extender.settings import ExtenderSettings
from muster.api import names
from muster.process import settings
from muster.process.logs import LEVELS
from muster.process.loopback import is_loopback


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says, a field for each flag; times are in seconds, and help is in the table below."""

    kubeconfig: str
    host: str
    port: int
    status_host: str
    status_port: int
    lease_namespace: str
    lease_name: str
    identity_prefix: str
    barrier_timeout_s: float
    recovery_timeout_s: float
    staleness_grace_s: float
    growth_delay_s: float
    config: Path | None
    traces_endpoint: str
    log_level: str


def parse(argv: Sequence[str] | None = None) -> Options:
    """Reads the arguments, by default those of this process; what is wrong with them ends it with code 2."""
    parser = argparse.ArgumentParser(prog="extender", description="Muster's scheduler extender and planner.")
    add = parser.add_argument
    add("--kubeconfig", default="", help="empty: the pod's own credentials")
    add("--host", type=_loopback, default="127.0.0.1", help="loopback address of the verbs [default: %(default)s]")
    add("--port", type=int, default=9444, help="the verbs, plain HTTP: same pod only [default: %(default)s]")
    add("--status-port", type=int, default=9445, help="/metrics, /healthz, /readyz [default: %(default)s]")
    add("--status-host", default="127.0.0.1", help="address of that port [default: %(default)s]")
    add("--lease-name", default=names.SCHEDULER_LEASE, help="kube-scheduler's Lease to follow [default: %(default)s]")
    add("--lease-namespace", default=names.SYSTEM_NAMESPACE, help="where that is [default: %(default)s]")
    add("--identity-prefix", default="", help="how its holder begins; empty: <hostname>_")
    _seconds(parser, "--barrier-timeout", 10.0, "how long a bind waits for its gang")
    _seconds(parser, "--recovery-timeout", 30.0, "how long a gang may stay partial")
    _seconds(
        parser,
        "--staleness-grace",
        60.0,
        "how long a started gang may lack members before the rest is evicted; negative: for ever",
    )
    _seconds(parser, "--growth-delay", 1.0, "how long after its start a gang gets no more than its minimum")
    add(
        "--config",
        type=Path,
        metavar="FILE",
        help="actions, plugins and their arguments (YAML); followed while running",
    )
    add("--traces-endpoint", default="", metavar="URL", help="where traces are sent, by OTLP over HTTP; empty: nowhere")
    add("--log-level", default="info", choices=LEVELS, help="[default: %(default)s]")
    given = settings.parse(parser, argv, ExtenderSettings)
    # kube-scheduler's identity in its Lease is "<host name>_<uuid>", and a pod's containers share one host name.
    return Options(**{**given, "identity_prefix": given["identity_prefix"] or f"{os.uname().nodename}_"})


def _loopback(host: str) -> str:
    if not is_loopback(host):
        raise argparse.ArgumentTypeError(
            f"{host!r} is not a loopback address. Calls are not authenticated yet, so whoever reaches this port could"
            " bind pods. Run the extender in the pod of its kube-scheduler and leave 127.0.0.1."
        )
    return host


def _seconds(parser: argparse.ArgumentParser, flag: str, default: float, what: str) -> None:
    """Adds a flag that is a time; its field says the unit."""
    field = f"{flag.removeprefix('--').replace('-', '_')}_s"
    parser.add_argument(
        flag, dest=field, type=float, metavar="SECONDS", default=default, help=f"{what} [default: %(default)s]"
    )
