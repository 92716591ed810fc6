"""The command line of the controller, and what its settings say of certificates."""

from typing import Literal

import pytest

from certs.rotation import Terms, Wanted
from controller.certificates import CertificateOptions
from controller.main import certificates_of
from controller.settings import ControllerSettings, Options, parse


def test_every_default() -> None:
    """Nothing has to be given."""
    assert parse([]) == Options(
        kubeconfig="",
        status_host="127.0.0.1",
        report_host="0.0.0.0",  # noqa: S104 - pods reach it
        settings=ControllerSettings(),
    )


def test_every_flag() -> None:
    """Each flag sets the field of its name."""
    assert parse(["--kubeconfig=k", "--status-host=::", "--report-host=h"]) == Options(
        kubeconfig="k", status_host="::", report_host="h", settings=ControllerSettings()
    )


def test_no_certificates_by_default() -> None:
    """They are somebody else's affair."""
    assert certificates_of(ControllerSettings()) is None


def test_certificates_by_default() -> None:
    """A Secret and a name are enough: a certificate lives for ninety days, an authority for a year."""
    settings = ControllerSettings(cert_secret="s", cert_dns_name=("a.svc", "0:0::1"))  # noqa: S106 - its name
    assert certificates_of(settings) == CertificateOptions(
        secret="s",  # noqa: S106 - its name
        issuer="own",
        wanted=(Wanted(name="tls", common_name="muster-webhook", names=frozenset({"a.svc", "::1"})),),
        terms=Terms(authority_life_s=365 * 86400, life_s=90 * 86400, trust_wait_s=30, load_wait_s=3600),
    )


def test_every_field_of_certificates() -> None:
    """Durations are written as Go writes them."""
    given = certificates_of(
        ControllerSettings(
            cert_secret="s",  # noqa: S106 - its name
            cert_issuer="external",
            cert_lifetime="24h",
            cert_authority_lifetime="72h30m",
        )
    )
    assert given
    assert given.issuer == "external"
    assert given.terms == Terms(authority_life_s=261000, life_s=86400, trust_wait_s=30, load_wait_s=3600)


@pytest.mark.parametrize(("issuer", "found"), [("own", ["tls", "reports"]), ("external", ["tls"])])
def test_a_certificate_for_reports(issuer: Literal["own", "external"], found: list[str]) -> None:
    """For the host of its URL, beside the webhook's in the same Secret; another issuer has a Secret for it."""
    settings = ControllerSettings(
        cert_secret="s",  # noqa: S106 - its name
        cert_issuer=issuer,
        cert_dns_name=("a.svc",),
        report_port=1,
        report_url="https://b.svc:1/path",
    )
    given = certificates_of(settings)
    assert given
    assert [each.name for each in given.wanted] == found
    assert {host for each in given.wanted[1:] for host in each.names} <= {"b.svc"}


@pytest.mark.parametrize(("issuer", "found"), [("own", ["tls", "web"]), ("external", ["tls"])])
def test_the_certificate_of_the_page(issuer: Literal["own", "external"], found: list[str]) -> None:
    """It is in the Secret of the webhook's where the page is served; another issuer has a Secret for each."""
    given = certificates_of(
        ControllerSettings(
            cert_secret="s",  # noqa: S106 - its name
            cert_issuer=issuer,
            cert_dns_name=("a.svc",),
            web_dns_name=("muster-web.a.svc", "localhost"),
        )
    )
    assert given
    assert [each.name for each in given.wanted] == found
    if issuer == "own":
        assert given.wanted[-1].names == {"muster-web.a.svc", "localhost"}
