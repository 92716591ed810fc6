"""The command line of the controller process: its table, and what it says as one frozen value."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from controller.certificates.options import CertificateOptions, add_flags, take_flags
from controller.settings import ControllerSettings
from muster.api import names
from muster.process import settings
from muster.process.logs import LEVELS
from muster.runtime.train_job import Target


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
    shipped: Path | None
    train_jobs_as: Target
    report_port: int
    report_host: str
    report_url: str
    report_cert_file: str
    report_key_file: str
    report_ca_file: str
    traces_endpoint: str
    log_level: str
    certificates: CertificateOptions | None
    """None: they are somebody else's affair."""


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
    add(
        "--train-jobs-as",
        default="Job",
        choices=get_args(Target),
        help="what makes the pods of TrainJobs; as the webhook has it [default: %(default)s]",
    )
    add(
        "--shipped",
        type=Path,
        metavar="FOLDER",
        help="queues and runtimes (YAML files) that are applied unless somebody has changed them",
    )
    add(
        "--report-port", type=int, default=0, help="port where trainers report their progress; 0: they cannot [default]"
    )
    add("--report-host", default="0.0.0.0", help="address of that port [default: %(default)s]")  # noqa: S104 - for pods
    add("--report-url", default="", help="how pods reach it, e.g. https://muster-controller.muster-system.svc:10443")
    add("--report-cert-file", default="", help="its certificate (PEM)")
    add("--report-key-file", default="", help="its key (PEM)")
    add("--report-ca-file", default="", help="the authority of its certificate (PEM), which pods are given")
    add("--traces-endpoint", default="", metavar="URL", help="where traces are sent, by OTLP over HTTP; empty: nowhere")
    add("--log-level", default="info", choices=LEVELS, help="[default: %(default)s]")
    add_flags(parser)
    given = settings.parse(parser, argv, ControllerSettings)
    options = Options(certificates=take_flags(given, parser.error), **given)
    if options.workers < 1:
        parser.error("--workers must be at least 1")
    if options.report_port:
        needed = ("report_url", "report_cert_file", "report_key_file", "report_ca_file")
        missing = [f"--{name.replace('_', '-')}" for name in needed if not getattr(options, name)]
        if missing:
            parser.error(f"--report-port needs {', '.join(missing)}")
    return options
