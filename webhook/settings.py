"""Settings of the webhook from a file, and its command line, which has the values that differ from pod to pod."""

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from muster.process import settings
from muster.process.settings import Port, Settings

MOST_DRAIN_S: Final = 3600
"""Maximum value of --drain-seconds."""


class WebhookSettings(Settings, frozen=True, kw_only=True):
    """The settings of the webhook, which are the same for all its pods."""

    KIND: ClassVar[str] = "WebhookConfiguration"

    port: Port = 9443
    """HTTPS port of the webhook; must be above 1024, because the process does not run as root."""
    status_port: Port = 8080
    """HTTP port of /metrics, /healthz and /readyz; separate from the webhook's port, so that probes need no
    certificate."""
    cert_file: str = "/etc/muster/tls/tls.crt"
    """Serving certificate (PEM). A new file takes effect with the next connection."""
    key_file: str = "/etc/muster/tls/tls.key"
    """Private key of the serving certificate (PEM)."""
    client_ca_file: str = ""
    """CA certificate (PEM) that verifies client certificates. If this file is given, the webhook accepts only clients
    with a certificate of this authority; configure the API server to present a client certificate. Without the file, as
    in most clusters, the webhook accepts all clients, and its messages neither list queues nor quote quotas
    (docs/security.md)."""
    wait_for_ca_bundles: bool = False
    """Whether a new replica becomes ready only when the webhook configurations trust its certificate. If true, the
    webhook needs the right to list and watch webhook configurations. If false, reviews can fail for a few seconds after
    a change of the issuer."""
    mark_pods: bool = False
    """Whether to mark the pods that Muster places with the resources muster.dev/member and muster.dev/binding, for a
    kube-scheduler that also serves other pods. Muster's own kube-scheduler calls the extender for each pod, so its pods
    need no such resources."""
    config: str | None = None
    """File with resource groups, in the YAML format of Volcano's admission. The file is read once, at startup. Without
    a file, no resource groups are defined."""
    train_jobs_as: Literal["Job", "JobSet"] = "Job"
    """Kind that the controller creates for TrainJobs; the webhook refuses fields that this kind does not support."""
    accelerators: tuple[str, ...] = ()
    """Additional resources that count devices (docs/frameworks.md lists the built-in ones); `*` matches any text, as in
    example.com/npu-*. Frameworks start a process for each device. The controller must have the same value."""
    native_pod_groups: bool = True
    """Whether pods of a gang name its native PodGroup (scheduling.k8s.io), which the controller publishes if the API
    server serves this kind (docs/native-podgroups.md). This setting has no effect if `markPods` is true."""
    durable_history: bool = True
    """Whether the recorder's usage data outlives its pod. Set it to false if no recorder runs, or its store has no
    volume: queues that enforce a budget then cause a warning."""
    traces_endpoint: str = ""
    """URL of a collector for OTLP over HTTP, e.g. http://collector.observability.svc:4318, which gets a trace for each
    gang (docs/operations.md). Requires `muster[tracing]`. If no URL is given, the variable OTEL_EXPORTER_OTLP_ENDPOINT
    is used; without this variable, no traces are sent."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level that is logged, as JSON on standard error. `debug` logs a line for each review."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookOptions:
    """The values of the command line."""

    kubeconfig: str
    host: str
    drain_seconds: int
    settings: WebhookSettings


def parse(argv: Sequence[str] | None = None) -> WebhookOptions:
    """Parse the arguments, by default the process's own; errors end the process with code 2."""
    parser = settings.parser_of("webhook", "Muster's admission webhook.")
    parser.add_argument("--host", default="127.0.0.1", help="address of both ports [default: %(default)s]")
    parser.add_argument(
        "--drain-seconds",
        type=_drain_seconds,
        default=0,
        help="maximum time for which the process continues to serve after SIGTERM, until clients have closed their "
        "connections; API servers close idle ones after 90 seconds [default: %(default)s]",
    )
    return WebhookOptions(**settings.parse(parser, argv, WebhookSettings))


def _drain_seconds(text: str) -> int:
    """Parse the value of --drain-seconds. Raises ArgumentTypeError, which argparse reports with the flag's name."""
    if re.fullmatch(r"[0-9]{1,4}", text) and int(text) <= MOST_DRAIN_S:
        return int(text)
    raise argparse.ArgumentTypeError(f"should be a whole number of seconds from 0 to {MOST_DRAIN_S}, and is {text!r}")
