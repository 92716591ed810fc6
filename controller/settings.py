"""What the controller can be told in a file."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta, field

from muster.api import names
from muster.process.settings import Settings
from muster.resources.duration import parse_duration_s

Port = Annotated[int, Meta(ge=0, le=65535)]
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
    """Where that Lease is, and the Secret with certificates."""
    lease_duration_s: Annotated[float, Meta(ge=1, le=3600)] = field(name="leaseDuration", default=15.0)
    """Seconds until a dead leader is replaced. The leader gives up after two thirds of it without a renewal."""
    shipped: str | None = None
    """Folder with queues and runtimes (YAML files), which are applied unless somebody has changed them. None: none."""
    report_port: Port = 0
    """HTTPS port where trainers report their progress; 0: they cannot. It needs the four fields that follow."""
    report_url: str = ""
    """How pods reach that port, e.g. https://muster-reports.muster-system.svc."""
    report_cert_file: str = ""
    """Its certificate (PEM); a new file is taken up with the next connection."""
    report_key_file: str = ""
    """Its key (PEM)."""
    report_ca_file: str = ""
    """The authorities of its certificate (PEM), which pods are given. The file is followed; TrainJobs wait for it."""
    cert_secret: str = ""
    """The Secret, beside the Lease, with the webhook's certificates (docs/certificates.md). Empty: they are somebody
    else's affair."""
    cert_issuer: Literal["own", "external"] = "own"
    """Who makes and renews them: the controller itself, or somebody else, e.g. cert-manager, whom it only watches."""
    cert_dns_name: tuple[str, ...] = ()
    """Host names or addresses of the webhook, as the webhook configurations have them. Other names mean another
    certificate."""
    cert_report_dns_name: tuple[str, ...] = ()
    """As pods reach the status server of TrainJobs: a certificate for it stands in the Secret then, too (reports.crt,
    reports.key)."""
    cert_webhooks: tuple[str, ...] = ()
    """Names of the webhook configurations that get the caBundle; none means `muster`."""
    cert_lifetime: str = "2160h"
    """Life of a certificate, which is renewed after two thirds of it: so much is left to notice what hinders that."""
    cert_authority_lifetime: str = "8760h"
    """Life of an authority; the next one comes after two thirds of it."""
    cert_trust_wait: str = "30s"
    """Until all API servers have taken up a new caBundle: nothing is signed by a new authority before."""
    cert_load_wait: str = "10m"
    """Until all replicas show what stands in the Secret: a kubelet takes up to two minutes for it. No old authority
    that was revoked goes before."""
    scheduler_cert_secret: str = ""
    """The Secret, beside the Lease, with the certificates between kube-scheduler and the extender
    (docs/certificates.md): tls.crt, client.crt, and ca.crt, whose authority signs nothing else. Empty: none."""
    scheduler_cert_authority_lifetime: str = "87600h"
    """Life of that authority: ten years, as kube-scheduler reads it only when it starts."""
    scheduler_cert_trust_wait: str = "168h"
    """Until every kube-scheduler has been started again, once there is a new one: it signs nothing before."""
    train_jobs_as: Literal["Job", "JobSet"] = "Job"
    """What makes the pods of TrainJobs: batch Jobs, or a JobSet where its CRD and controller are installed. The
    webhook must have the same."""
    traces_endpoint: str = ""
    """URL of a collector that takes OTLP over HTTP, e.g. http://collector.observability.svc:4318. It gets a trace for
    each gang (docs/tracing.md), and `muster[tracing]` must be installed. Empty: what the variable
    OTEL_EXPORTER_OTLP_ENDPOINT says, else no traces."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """What is logged, as JSON on standard error."""

    def problems(self) -> Iterator[str]:
        """The report port without what it needs, and lives of certificates that leave no time to renew them."""
        reports = {
            "reportUrl": self.report_url,
            "reportCertFile": self.report_cert_file,
            "reportKeyFile": self.report_key_file,
            "reportCaFile": self.report_ca_file,
        }
        if self.report_port and (missing := [name for name, value in reports.items() if not value]):
            yield f"reportPort: it needs {', '.join(missing)}"
        durations = {
            "certLifetime": self.cert_lifetime,
            "certAuthorityLifetime": self.cert_authority_lifetime,
            "certTrustWait": self.cert_trust_wait,
            "certLoadWait": self.cert_load_wait,
            "schedulerCertAuthorityLifetime": self.scheduler_cert_authority_lifetime,
            "schedulerCertTrustWait": self.scheduler_cert_trust_wait,
        }
        seconds = dict[str, float]()
        for name, text in durations.items():
            try:
                seconds[name] = parse_duration_s(text)
            except ValueError as error:
                yield f"{name}: {error}"
        if self.cert_secret and self.cert_issuer == "own" and not self.cert_dns_name:
            yield "certDnsName: name the webhook, e.g. muster-webhook.muster-system.svc"
        if self.cert_secret and self.cert_secret == self.scheduler_cert_secret:
            yield "schedulerCertSecret: it is another Secret than certSecret, as its authority signs nothing else"
        if len(seconds) != len(durations):
            return
        if self.cert_secret:
            yield from _lives(seconds, ("certLifetime", "certAuthorityLifetime"), "certTrustWait")
        if self.scheduler_cert_secret:
            yield from _lives(seconds, ("certLifetime", "schedulerCertAuthorityLifetime"), "schedulerCertTrustWait")


def _lives(seconds: dict[str, float], lives: tuple[str, ...], trust_wait: str) -> Iterator[str]:
    waits_s = seconds[trust_wait] + seconds["certLoadWait"]
    for name in lives:
        if seconds[name] / 3 <= waits_s:
            yield f"{name}: the last third of it must be longer than {trust_wait} and certLoadWait together"
        if seconds[name] > _LONGEST_S:
            yield f"{name}: at most a hundred years (876000h)"
