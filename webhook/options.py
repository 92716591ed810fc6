"""The command line of the webhook process: its table, and what it says as one frozen value."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from muster.process import settings
from muster.process.logs import LEVELS
from muster.runtime.train_job import Target
from webhook.settings import WebhookSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says, a field for each flag; their help is in the table below."""

    kubeconfig: str
    host: str
    port: int
    cert_file: str
    key_file: str
    client_ca_file: str
    status_port: int
    mark_pods: bool
    train_jobs_as: Target
    config: Path | None
    traces_endpoint: str
    log_level: str


def parse(argv: Sequence[str] | None = None) -> Options:
    """Reads the arguments, by default those of this process; what is wrong with them ends it with code 2."""
    parser = argparse.ArgumentParser(prog="webhook", description="Muster's admission webhook.")
    add = parser.add_argument
    add("--kubeconfig", default="", help="how to reach the API server; empty means in-cluster")
    add("--host", default="127.0.0.1", help="address to listen on [default: %(default)s]")
    add("--port", type=int, required=True, help="HTTPS port of the webhook")
    add("--cert-file", required=True, help="serving certificate (PEM); a new file is taken up at once")
    add("--key-file", required=True, help="its private key (PEM)")
    add(
        "--client-ca-file",
        default="",
        metavar="FILE",
        help="answer only clients with a certificate of this authority (PEM), as the API server can be given one",
    )
    add("--status-port", type=int, required=True, help="HTTP port of /metrics, /healthz and /readyz")
    add("--mark-pods", action="store_true", help="mark the pods that Muster places, for a scheduler shared with others")
    add(
        "--train-jobs-as",
        default="Job",
        choices=get_args(Target),
        help="what makes the pods of TrainJobs; as the controller has it [default: %(default)s]",
    )
    add("--config", type=Path, metavar="FILE", help="resource groups (YAML); it is read once, at the start")
    add("--traces-endpoint", default="", metavar="URL", help="where traces are sent, by OTLP over HTTP; empty: nowhere")
    add("--log-level", default="info", choices=LEVELS, help="[default: %(default)s]")
    return Options(**settings.parse(parser, argv, WebhookSettings))
