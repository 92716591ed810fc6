"""The command line of the controller process: its table, and what it says as one frozen value."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from muster.api import names
from muster.process.logs import LEVELS


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says, a field for each flag; times are in seconds, and help is in the table below."""

    kubeconfig: str
    status_host: str
    status_port: int
    workers: int
    lease_namespace: str
    lease_name: str
    lease_duration_s: float
    log_level: str


def parse(argv: Sequence[str] | None = None) -> Options:
    """Reads the arguments, by default those of this process; what is wrong with them ends it with code 2."""
    parser = argparse.ArgumentParser(prog="controller", description="Muster's controller: whether a pod exists.")
    add = parser.add_argument
    add("--kubeconfig", default="", help="file to find the API server with; empty: in-cluster")
    add("--status-port", type=int, default=8082, help="port of /metrics, /healthz and /readyz [default: %(default)s]")
    add("--status-host", default="127.0.0.1", help="address of that port [default: %(default)s]")
    add("--workers", type=int, default=3, help="threads that share the Jobs among them [default: %(default)s]")
    add("--lease-name", default=names.CONTROLLER_LEASE, help="the Lease of its leader [default: %(default)s]")
    add("--lease-namespace", default=names.SYSTEM_NAMESPACE, help="where that is [default: %(default)s]")
    add(
        "--lease-duration",
        dest="lease_duration_s",
        metavar="SECONDS",
        type=float,
        default=15.0,
        help="until a dead leader is replaced [default: %(default)s]",
    )
    add("--log-level", default="info", choices=LEVELS, help="[default: %(default)s]")
    options = Options(**vars(parser.parse_args(argv)))
    if options.workers < 1:
        parser.error("--workers must be at least 1")
    return options
