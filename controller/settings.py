"""The command line of the controller process, and the file with its settings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta, field

from muster.api import names
from muster.process import settings
from muster.process.settings import Settings
from muster.resources.runtime import parse_duration_s

Port = Annotated[int, Meta(ge=0, le=65535)]
LOAD_WAIT_S: Final = 3600.0
"""Until all replicas show the certificates in the Secret: much longer than a kubelet takes to renew a volume."""
TRUST_WAIT_S: Final = 30.0
"""Until all API servers have taken up a new caBundle: a new authority signs nothing before."""
_SHORTEST_S: Final = 6 * LOAD_WAIT_S
_LONGEST_S: Final = 100 * 365 * 86400.0


class ControllerSettings(Settings, frozen=True, kw_only=True):
    """The settings of the controller, the same for all its pods."""

    KIND: ClassVar[str] = "ControllerConfiguration"

    status_port: Port = 8082
    """HTTP port of /metrics, /healthz and /readyz."""
    workers: Annotated[int, Meta(ge=1, le=256)] = 3
    """Threads that share the Jobs among them; one Job is always in the hands of one. More help where the API server is
    far away, as they wait for it most of the time."""
    lease_name: str = names.CONTROLLER_LEASE
    """The Lease of its leader."""
    lease_namespace: str = names.SYSTEM_NAMESPACE
    """Namespace of that Lease, and of the Secret with certificates."""
    lease_duration_s: Annotated[float, Meta(ge=1, le=3600)] = field(name="leaseDuration", default=15.0)
    """Seconds until a dead leader is replaced. The leader gives up after two thirds of it without a renewal."""
    shipped: str | None = None
    """Folder with queues and runtimes (YAML files), applied unless the cluster's have been changed. None: none."""
    report_port: Port = 0
    """HTTPS port where trainers report their progress; 0: they cannot. It needs the four fields that follow."""
    report_url: str = ""
    """URL of that port for pods, e.g. https://muster-reports.muster-system.svc."""
    report_cert_file: str = ""
    """Its certificate (PEM); a new file is taken up with the next connection."""
    report_key_file: str = ""
    """Its key (PEM)."""
    report_ca_file: str = ""
    """The authorities of its certificate (PEM), which pods are given. The file is followed; TrainJobs wait for it."""
    cert_secret: str = ""
    """The Secret, beside the Lease, with the webhook's certificates (docs/certificates.md). With a report port it has
    those of the status server, too (reports.crt, reports.key). Empty: certificates are given as files."""
    cert_issuer: Literal["own", "external"] = "own"
    """The issuer of these certificates: the controller itself, or another one, e.g. cert-manager, which it watches."""
    cert_dns_name: tuple[str, ...] = ()
    """Host names or addresses of the webhook, as the webhook configurations have them. Other names mean another
    certificate."""
    web_dns_name: tuple[str, ...] = ()
    """Host names or addresses of the page (docs/web.md), if its certificate is to be in that Secret, too (web.crt,
    web.key)."""
    cert_lifetime: str = "2160h"
    """Life of a certificate, which is renewed after two thirds of it: so much is left to notice what hinders that."""
    cert_authority_lifetime: str = "8760h"
    """Life of an authority; the next one comes after two thirds of it."""
    train_jobs_as: Literal["Job", "JobSet"] = "Job"
    """Kind that makes the pods of TrainJobs: batch Jobs, or a JobSet where its CRD and controller are installed. The
    webhook must have the same."""
    train_job_network_policies: bool = True
    """Keep traffic of other pods from the pods of TrainJobs by a NetworkPolicy, which Kubeflow Trainer does not make.
    The annotation muster.dev/network-policy of a TrainJob or its runtime comes first. Not with JobSets."""
    accelerators: tuple[str, ...] = ()
    """Resources that count devices, beside the known ones, as the webhook has them (docs/frameworks.md)."""
    native_pod_groups: bool = True
    """Publish gangs as Kubernetes' own PodGroups (scheduling.k8s.io) where the API server serves these, and have pods
    of Volcano Jobs name them (docs/native-podgroups.md). Preemption in other profiles then ends a gang whole or not at
    all. The webhook must have the same value. Not for a kube-scheduler that also serves other pods."""
    traces_endpoint: str = ""
    """URL of a collector that takes OTLP over HTTP, e.g. http://collector.observability.svc:4318. It gets a trace for
    each gang (docs/operations.md), and `muster[tracing]` must be installed. Empty: what the variable
    OTEL_EXPORTER_OTLP_ENDPOINT says, else no traces."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level that is logged, as JSON on standard error."""

    def problems(self) -> Iterator[str]:
        """Yield the report port without its files, and lives of certificates that leave no time to renew them."""
        reports = {
            "reportUrl": self.report_url,
            "reportCertFile": self.report_cert_file,
            "reportKeyFile": self.report_key_file,
            "reportCaFile": self.report_ca_file,
        }
        if self.report_port and (missing := [name for name, value in reports.items() if not value]):
            yield f"reportPort: it needs {', '.join(missing)}"
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
        yield f"{name}: at least six hours (6h), as its last third is the time to renew it"
    if life_s > _LONGEST_S:
        yield f"{name}: at most a hundred years (876000h)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOptions:
    """The values of the command line."""

    kubeconfig: str
    status_host: str
    report_host: str
    settings: ControllerSettings


def parse(argv: Sequence[str] | None = None) -> ControllerOptions:
    """Read the arguments, by default those of this process; mistakes end the process with code 2."""
    parser = settings.parser_of("controller", "Muster's controller: whether a pod exists.")
    add = parser.add_argument
    add("--status-host", default="127.0.0.1", help="address of the status port [default: %(default)s]")
    add("--report-host", default="0.0.0.0", help="address of the report port [default: %(default)s]")  # noqa: S104 - for pods
    return ControllerOptions(**settings.parse(parser, argv, ControllerSettings))
