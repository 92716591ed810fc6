"""The settings of certificates, as one frozen value."""

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, Literal
from urllib.parse import urlsplit

from certs.rotation import Terms, Wanted
from controller.settings import LOAD_WAIT_S, ControllerSettings
from muster.resources.runtime import parse_duration_s

SERVING: Final = "tls"
"""The name of the webhook's certificate in the Secret: tls.crt and tls.key."""
REPORTS: Final = "reports"
"""The name of the certificate of the TrainJobs' status server."""
WEB: Final = "web"
"""The name of the certificate of the page."""
TRUST_WAIT_S: Final = 30.0
"""Until all API servers have taken up a new caBundle: a new authority signs nothing before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateOptions:
    """The Secret to look after, and how."""

    secret: str
    issuer: Literal["own", "external"]
    wanted: tuple[Wanted, ...]
    terms: Terms


def certificates_of(settings: ControllerSettings) -> CertificateOptions | None:
    """The options of settings without problems; None without a Secret: certificates come from elsewhere."""
    if not settings.cert_secret:
        return None
    wanted = [Wanted(name=SERVING, common_name="muster-webhook", names=frozenset(map(_normal, settings.cert_dns_name)))]
    if settings.report_port and settings.cert_issuer == "own":
        host = _normal(urlsplit(settings.report_url).hostname or "")
        wanted.append(Wanted(name=REPORTS, common_name="muster-reports", names=frozenset({host})))
    if settings.web_dns_name and settings.cert_issuer == "own":
        wanted.append(Wanted(name=WEB, common_name="muster-web", names=frozenset(map(_normal, settings.web_dns_name))))
    return CertificateOptions(
        secret=settings.cert_secret,
        issuer=settings.cert_issuer,
        wanted=tuple(wanted),
        terms=Terms(
            authority_life_s=parse_duration_s(settings.cert_authority_lifetime),
            life_s=parse_duration_s(settings.cert_lifetime),
            trust_wait_s=TRUST_WAIT_S,
            load_wait_s=LOAD_WAIT_S,
        ),
    )


def _normal(name: str) -> str:
    """An address as certificates give it back."""
    try:
        return str(ip_address(name))
    except ValueError:
        return name
