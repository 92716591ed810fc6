"""The command line of the controller, and what its settings say of certificates."""

from certs.rotation import Terms, Wanted
from controller.certificates.options import CertificateOptions, certificates_of, scheduler_certificates_of
from controller.options import Options, parse
from controller.settings import ControllerSettings


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
        configurations=("muster",),
        wanted=(Wanted(name="tls", common_name="muster-webhook", names=frozenset({"a.svc", "::1"}), server=True),),
        terms=Terms(authority_life_s=365 * 86400, life_s=90 * 86400, trust_wait_s=30, load_wait_s=600),
    )


def test_every_field_of_certificates() -> None:
    """Durations are written as Go writes them."""
    given = certificates_of(
        ControllerSettings(
            cert_secret="s",  # noqa: S106 - its name
            cert_issuer="external",
            cert_webhooks=("a", "b"),
            cert_lifetime="1h",
            cert_authority_lifetime="2h",
            cert_trust_wait="1s",
            cert_load_wait="1m30s",
        )
    )
    assert given
    assert (given.issuer, given.configurations) == ("external", ("a", "b"))
    assert given.terms == Terms(authority_life_s=7200, life_s=3600, trust_wait_s=1, load_wait_s=90)


def test_a_certificate_for_reports() -> None:
    """Beside the webhook's, in the same Secret."""
    names = {"cert_dns_name": ("a.svc",), "cert_report_dns_name": ("b.svc",)}
    given = certificates_of(ControllerSettings(cert_secret="s", **names))  # noqa: S106 - its name
    assert given
    assert [(each.name, each.names) for each in given.wanted] == [("tls", {"a.svc"}), ("reports", {"b.svc"})]


def test_certificates_between_kube_scheduler_and_the_extender() -> None:
    """In a Secret of their own, with an authority that lasts: no webhook trusts it."""
    assert scheduler_certificates_of(ControllerSettings()) is None
    given = scheduler_certificates_of(ControllerSettings(scheduler_cert_secret="s"))  # noqa: S106 - its name
    assert given
    assert (given.secret, given.configurations) == ("s", ())
    assert [(each.name, each.server, each.client) for each in given.wanted] == [
        ("tls", True, False),
        ("client", False, True),
    ]
    assert given.terms == Terms(
        authority_life_s=3650 * 86400, life_s=90 * 86400, trust_wait_s=7 * 86400, load_wait_s=600
    )


def test_settings_of_both_secrets_that_do_not_fit() -> None:
    """One Secret for both would have one authority for both; and a life must leave time for the waits."""
    one = ControllerSettings(cert_secret="s", cert_dns_name=("a",), scheduler_cert_secret="s")  # noqa: S106 - its name
    assert [each.partition(":")[0] for each in one.problems()] == ["schedulerCertSecret"]
    short = ControllerSettings(scheduler_cert_secret="s", scheduler_cert_authority_lifetime="400h")  # noqa: S106 - its name
    assert [each.partition(":")[0] for each in short.problems()] == ["schedulerCertAuthorityLifetime"]
