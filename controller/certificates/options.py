"""What the settings say of certificates, as one frozen value."""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, Literal

from certs.rotation import Terms, Wanted
from controller.settings import ControllerSettings
from muster.api import names
from muster.api.names import EXTENDER_HOST
from muster.resources.duration import parse_duration_s

SERVING: Final = "tls"
"""The name of the webhook's certificate in the Secret: tls.crt and tls.key."""
REPORTS: Final = "reports"
"""The name of the certificate of the TrainJobs' status server."""
CLIENT: Final = "client"
"""The name of kube-scheduler's client certificate, in the Secret that has the extender's own as `SERVING`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateOptions:
    """Which Secret to look after, and how."""

    secret: str
    issuer: Literal["own", "external"]
    configurations: tuple[str, ...]
    """Names of webhook configurations, of both kinds each; none where those who trust read the Secret."""
    wanted: tuple[Wanted, ...]
    terms: Terms
    queue: str = "certificates"
    """The name of its work queue in metrics."""


def certificates_of(settings: ControllerSettings) -> CertificateOptions | None:
    """What settings without problems say; None without a Secret: certificates are somebody else's affair."""
    if not settings.cert_secret:
        return None
    terms = Terms(
        authority_life_s=parse_duration_s(settings.cert_authority_lifetime),
        life_s=parse_duration_s(settings.cert_lifetime),
        trust_wait_s=parse_duration_s(settings.cert_trust_wait),
        load_wait_s=parse_duration_s(settings.cert_load_wait),
    )
    wanted = [Wanted(name=SERVING, common_name="muster-webhook", names=_hosts(settings.cert_dns_name), server=True)]
    if settings.cert_report_dns_name:
        hosts = _hosts(settings.cert_report_dns_name)
        wanted.append(Wanted(name=REPORTS, common_name="muster-reports", names=hosts, server=True))
    return CertificateOptions(
        secret=settings.cert_secret,
        issuer=settings.cert_issuer,
        configurations=settings.cert_webhooks or (names.WEBHOOKS,),
        wanted=tuple(wanted),
        terms=terms,
    )


def scheduler_certificates_of(settings: ControllerSettings) -> CertificateOptions | None:
    """Those between kube-scheduler and the extender; None without a Secret for them.

    Their authority is one of its own: whoever has a client certificate of it may call the extender.
    """
    if not settings.scheduler_cert_secret:
        return None
    return CertificateOptions(
        secret=settings.scheduler_cert_secret,
        issuer="own",
        configurations=(),
        queue="scheduler-certificates",
        wanted=(
            Wanted(name=SERVING, common_name=EXTENDER_HOST, names=frozenset({EXTENDER_HOST}), server=True),
            Wanted(name=CLIENT, common_name="kube-scheduler", client=True),
        ),
        terms=Terms(
            authority_life_s=parse_duration_s(settings.scheduler_cert_authority_lifetime),
            life_s=parse_duration_s(settings.cert_lifetime),
            trust_wait_s=parse_duration_s(settings.scheduler_cert_trust_wait),
            load_wait_s=parse_duration_s(settings.cert_load_wait),
        ),
    )


def _hosts(given: Iterable[str]) -> frozenset[str]:
    return frozenset(map(_normal, given))


def _normal(name: str) -> str:
    """An address as certificates give it back."""
    try:
        return str(ip_address(name))
    except ValueError:
        return name
