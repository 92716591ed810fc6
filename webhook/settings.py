"""Settings of the webhook, from a file, and its command line: what differs from pod to pod."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from muster.process import settings
from muster.process.settings import Settings

Port = Annotated[int, Meta(ge=0, le=65535)]


class WebhookSettings(Settings, frozen=True, kw_only=True):
    """The settings of the webhook, the same for all its pods."""

    KIND: ClassVar[str] = "WebhookConfiguration"

    port: Port = 9443
    """HTTPS port of the webhook. Over 1024, as the process is not root."""
    status_port: Port = 8080
    """HTTP port of /metrics, /healthz and /readyz; apart from the webhook's, so that probes need no certificate."""
    cert_file: str = "/etc/muster/tls/tls.crt"
    """Serving certificate (PEM). A new file is taken up with the next connection."""
    key_file: str = "/etc/muster/tls/tls.key"
    """Private key of the serving certificate (PEM)."""
    client_ca_file: str = ""
    """PEM of an authority: only clients with a certificate of it are answered, as the API server can be given one.
    Empty answers all clients, as most clusters do: then look-ups are limited by the client's address, and answers list
    no queues and quote no quotas (docs/security.md)."""
    mark_pods: bool = False
    """Mark the pods that Muster places with the resources muster.dev/member and muster.dev/binding, for a
    kube-scheduler that also serves other pods. A kube-scheduler of Muster's own needs no marks."""
    config: str | None = None
    """File with resource groups, in the YAML of Volcano's admission. It is read once, at the start. None: no groups."""
    train_jobs_as: Literal["Job", "JobSet"] = "Job"
    """Kind that the controller makes of TrainJobs; fields that it cannot carry out are refused."""
    accelerators: tuple[str, ...] = ()
    """Resources that count devices, beside the known ones (docs/frameworks.md); `*` stands for any text, as in
    example.com/npu-*. Frameworks start a process for each device. The controller must have the same."""
    native_pod_groups: bool = True
    """Have pods of a gang name the PodGroup of Kubernetes' own (scheduling.k8s.io) as which the controller publishes
    it, where the API server serves these (docs/native-podgroups.md). Without effect with `markPods`."""
    durable_history: bool = True
    """The usage of queues outlives the pod of the recorder. False, where no recorder runs or its store has no volume:
    Queues that enforce a budget are warned of."""
    traces_endpoint: str = ""
    """URL of a collector that takes OTLP over HTTP, e.g. http://collector.observability.svc:4318. It gets a trace for
    each gang (docs/operations.md), and `muster[tracing]` must be installed. Empty: the variable
    OTEL_EXPORTER_OTLP_ENDPOINT, else no traces."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level that is logged, as JSON on standard error. `debug` has a line for each review."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookOptions:
    """The values of the command line."""

    kubeconfig: str
    host: str
    settings: WebhookSettings


def parse(argv: Sequence[str] | None = None) -> WebhookOptions:
    """Read the arguments, by default those of this process; mistakes end the process with code 2."""
    parser = settings.parser_of("webhook", "Muster's admission webhook.")
    parser.add_argument("--host", default="127.0.0.1", help="address of both ports [default: %(default)s]")
    return WebhookOptions(**settings.parse(parser, argv, WebhookSettings))
