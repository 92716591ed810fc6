"""The command line of the controller, and what its settings say of certificates."""

from typing import Any

import pytest

from certs.rotation import Terms, WantedCertificate
from controller.certificates import CertificateOptions
from controller.main import certificates_of
from controller.settings import ControllerOptions, ControllerSettings, parse


def test_every_default() -> None:
    """Nothing has to be given."""
    assert parse([]) == ControllerOptions(
        kubeconfig="",
        status_host="127.0.0.1",
        report_host="0.0.0.0",  # noqa: S104 - pods reach it
        settings=ControllerSettings(),
    )


def test_every_flag() -> None:
    """Each flag sets the field of its name."""
    assert parse(["--kubeconfig=k", "--status-host=::", "--report-host=h"]) == ControllerOptions(
        kubeconfig="k", status_host="::", report_host="h", settings=ControllerSettings()
    )


def certificates(**given: Any) -> CertificateOptions:
    """What settings with a Secret say of certificates."""
    found = certificates_of(ControllerSettings(cert_secret="s", **given))  # noqa: S106 - its name
    assert found
    return found


def test_no_certificates_by_default() -> None:
    """They are somebody else's affair."""
    assert certificates_of(ControllerSettings()) is None


def test_certificates_by_default() -> None:
    """A Secret and a name are enough: a certificate lives for ninety days, an authority for a year."""
    assert certificates(cert_dns_name=("a.svc", "0:0::1")) == CertificateOptions(
        secret="s",  # noqa: S106 - its name
        issuer="own",
        wanted=(WantedCertificate(name="tls", common_name="muster-webhook", names=frozenset({"a.svc", "::1"})),),
        terms=Terms(authority_life_s=365 * 86400, life_s=90 * 86400, trust_wait_s=30, load_wait_s=3600),
    )


def test_every_field_of_certificates() -> None:
    """Durations are written as Go writes them."""
    given = certificates(cert_issuer="external", cert_lifetime="24h", cert_authority_lifetime="72h30m")
    assert given.issuer == "external"
    assert given.terms == Terms(authority_life_s=261000, life_s=86400, trust_wait_s=30, load_wait_s=3600)


@pytest.mark.parametrize(("asked", "name", "hosts"), [
    pytest.param({"report_port": 1, "report_url": "https://b.svc:1/path"}, "reports", {"b.svc"}, id="reports"),
    pytest.param({"web_dns_name": ("w.svc", "localhost")}, "web", {"w.svc", "localhost"}, id="page"),
])  # fmt: skip
def test_a_certificate_for_another_server(asked: dict[str, Any], name: str, hosts: set[str]) -> None:
    """For its hosts, beside the webhook's in the same Secret; another issuer has a Secret for it."""
    webhook, other = certificates(cert_dns_name=("a.svc",), **asked).wanted
    assert (webhook.name, other.name, other.common_name, other.names) == ("tls", name, f"muster-{name}", hosts)
    external = certificates(cert_dns_name=("a.svc",), cert_issuer="external", **asked)
    assert [each.name for each in external.wanted] == ["tls"]
