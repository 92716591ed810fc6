"""The command line of the controller process, and the file with its settings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta, field

from muster.api import names
from muster.process import settings
from muster.process.settings import Port, Settings
from muster.resources.runtime import parse_duration_s

LOAD_WAIT_S: Final = 3600.0
"""Time after which all replicas present the certificates in the Secret; much longer than a kubelet takes to update a
volume."""
TRUST_WAIT_S: Final = 30.0
"""Time until all API servers have loaded a new caBundle; a new authority does not sign before that."""
_SHORTEST_S: Final = 6 * LOAD_WAIT_S
_LONGEST_S: Final = 100 * 365 * 86400.0


class ControllerSettings(Settings, frozen=True, kw_only=True):
    """The settings of the controller, which are the same for all its pods."""

    KIND: ClassVar[str] = "ControllerConfiguration"

    status_port: Port = 8082
    """HTTP port of /metrics, /healthz and /readyz."""
    workers: Annotated[int, Meta(ge=1, le=256)] = 3
    """Number of threads that process Jobs; a Job is processed by one thread at a time. More threads help if the API
    server is far away, because threads mostly wait for its responses."""
    lease_name: str = names.CONTROLLER_LEASE
    """Lease of the leading controller."""
    lease_namespace: str = names.SYSTEM_NAMESPACE
    """Namespace of the Lease, and of the Secret with certificates."""
    lease_duration_s: Annotated[float, Meta(ge=1, le=3600)] = field(name="leaseDuration", default=15.0)
    """Seconds until a dead leader is replaced. A leader gives up after two thirds of this time without a renewal."""
    shipped: str | None = None
    """Folder with queues and runtimes (YAML files) to apply; objects that users have changed are kept. If no folder is
    given, the controller applies no objects."""
    report_port: Port = 0
    """HTTPS port where trainers report their progress; 0 disables reports. A report port requires `reportUrl`,
    `reportCertFile`, `reportKeyFile` and `reportCaFile`."""
    report_url: str = ""
    """URL of the report port for pods, e.g. https://muster-reports.muster-system.svc."""
    report_cert_file: str = ""
    """Certificate (PEM) of the report port; a new file takes effect with the next connection."""
    report_key_file: str = ""
    """Private key (PEM) of the report port's certificate."""
    report_ca_file: str = ""
    """File with the certificate authorities (PEM) of the report port's certificate, which pods receive. Changes of the
    file take effect at once; TrainJobs wait until the file exists."""
    cert_secret: str = ""
    """Secret with the webhook's certificates, in the namespace of the Lease (docs/certificates.md). With a report port,
    the Secret also contains the certificate of the status server (reports.crt, reports.key). If no Secret is named, the
    certificates must be provided as files."""
    cert_issuer: Literal["own", "external"] = "own"
    """Issuer of the certificates in `certSecret`: the controller, or an external issuer such as cert-manager, which the
    controller monitors."""
    cert_ca_file: str = ""
    """File with additional certificate authorities (PEM) for the caBundles, e.g. the next authority before a change of
    the issuer. If no file is given, the caBundles contain no additional authorities."""
    cert_dns_name: tuple[str, ...] = ()
    """Host names or addresses of the webhook, as in the webhook configurations. If these names change, a new
    certificate is issued."""
    web_dns_name: tuple[str, ...] = ()
    """Host names or addresses of the web page (docs/web.md). If names are given, the Secret also contains the web
    page's certificate (web.crt, web.key)."""
    cert_lifetime: str = "2160h"
    """Lifetime of a certificate. A certificate is renewed after two thirds of its lifetime, so that problems with the
    renewal can be fixed in the last third."""
    cert_authority_lifetime: str = "8760h"
    """Lifetime of a certificate authority, which is replaced after two thirds of its lifetime."""
    train_jobs_as: Literal["Job", "JobSet"] = "Job"
    """Kind that the controller creates for TrainJobs: Volcano Jobs, or a JobSet if its CRD and controller are
    installed. The webhook must have the same value."""
    train_job_network_policies: bool = True
    """Whether a NetworkPolicy blocks traffic from other pods to the pods of TrainJobs (Kubeflow Trainer creates none).
    The annotation muster.dev/network-policy of a TrainJob or its runtime takes precedence. The setting has no effect on
    TrainJobs that run as JobSets."""
    accelerators: tuple[str, ...] = ()
    """Additional resources that count devices (docs/frameworks.md). The webhook must have the same value."""
    native_pod_groups: bool = True
    """Whether to publish gangs as native PodGroups (scheduling.k8s.io), if the API server serves this kind, and to name
    them in pods of Volcano Jobs (docs/native-podgroups.md). Preemption in other profiles then evicts a gang as a whole
    or not at all. The webhook must have the same value. Disable the setting if Muster's kube-scheduler also
    schedules other pods."""
    traces_endpoint: str = ""
    """URL of a collector for OTLP over HTTP, e.g. http://collector.observability.svc:4318, which gets a trace for each
    gang (docs/operations.md). Requires `muster[tracing]`. If no URL is given, the variable OTEL_EXPORTER_OTLP_ENDPOINT
    is used; without this variable, no traces are sent."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level that is logged, as JSON on standard error."""

    def problems(self) -> Iterator[str]:
        """Yield errors: a report port without its files, and certificate lifetimes that leave no time for a renewal."""
        reports = {
            "reportUrl": self.report_url,
            "reportCertFile": self.report_cert_file,
            "reportKeyFile": self.report_key_file,
            "reportCaFile": self.report_ca_file,
        }
        if self.report_port and (missing := [name for name, value in reports.items() if not value]):
            yield f"reportPort: it requires {', '.join(missing)}"
        if self.cert_secret and self.cert_issuer == "own" and not self.cert_dns_name:
            yield "certDnsName: name the webhook, e.g. muster-webhook.muster-system.svc"
        yield from _life("certLifetime", self.cert_lifetime)
        yield from _life("certAuthorityLifetime", self.cert_authority_lifetime)


def _life(name: str, text: str) -> Iterator[str]:
    try:
        life_s = parse_duration_s(text)
    except ValueError as error:
        yield f"{name}: {error}"
        return
    if life_s < _SHORTEST_S:
        yield f"{name}: must be at least six hours (6h), because only the last third is left for the renewal"
    if life_s > _LONGEST_S:
        yield f"{name}: must be at most a hundred years (876000h)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOptions:
    """The values of the command line."""

    kubeconfig: str
    status_host: str
    report_host: str
    settings: ControllerSettings


def parse(argv: Sequence[str] | None = None) -> ControllerOptions:
    """Parse the arguments, by default the process's own; errors end the process with code 2."""
    parser = settings.parser_of("controller", "Muster's controller of Jobs, TrainJobs, gangs and queues.")
    add = parser.add_argument
    add("--status-host", default="127.0.0.1", help="address of the status port [default: %(default)s]")
    add("--report-host", default="0.0.0.0", help="address of the report port [default: %(default)s]")  # noqa: S104 - for pods
    return ControllerOptions(**settings.parse(parser, argv, ControllerSettings))
