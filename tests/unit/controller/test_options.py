"""The command line of the controller: every flag, and what it is without it."""

from pathlib import Path

import pytest

from certs.rotation import Terms, Wanted
from controller.certificates.options import CertificateOptions
from controller.options import Options, parse

DEFAULTS = Options(
    kubeconfig="",
    status_host="127.0.0.1",
    status_port=8082,
    workers=3,
    lease_namespace="muster-system",
    lease_name="muster-controller",
    lease_duration_s=15.0,
    shipped=None,
    train_jobs_as="Job",
    traces_endpoint="",
    log_level="info",
    certificates=None,
    report_port=0,
    report_host="0.0.0.0",  # noqa: S104 - pods reach it
    report_url="",
    report_cert_file="",
    report_key_file="",
    report_ca_file="",
)


def test_every_default() -> None:
    """Nothing has to be given."""
    assert parse([]) == DEFAULTS


def test_every_flag() -> None:
    """Each flag sets the field of its name."""
    flags = ["--kubeconfig=k", "--status-host=::", "--status-port=1", "--workers=8", "--lease-namespace=ns"]
    flags += ["--lease-name=l", "--lease-duration=2.5", "--shipped=f", "--traces-endpoint=t", "--log-level=debug"]
    flags += ["--report-port=2", "--report-host=h", "--report-url=https://u", "--report-cert-file=c"]
    flags += ["--report-key-file=f", "--report-ca-file=a", "--train-jobs-as=JobSet"]
    assert parse(flags) == Options(
        kubeconfig="k",
        status_host="::",
        status_port=1,
        workers=8,
        lease_namespace="ns",
        lease_name="l",
        lease_duration_s=2.5,
        shipped=Path("f"),
        train_jobs_as="JobSet",
        traces_endpoint="t",
        log_level="debug",
        certificates=None,
        report_port=2,
        report_host="h",
        report_url="https://u",
        report_cert_file="c",
        report_key_file="f",
        report_ca_file="a",
    )


def test_certificates_by_default() -> None:
    """A Secret and a name are enough: a certificate lives for ninety days, an authority for a year."""
    assert parse(["--cert-secret=s", "--cert-dns-name=a.svc", "--cert-dns-name=0:0::1"]).certificates == (
        CertificateOptions(
            secret="s",  # noqa: S106 - its name
            issuer="own",
            configurations=("muster",),
            wanted=(Wanted(name="tls", common_name="muster-webhook", names=frozenset({"a.svc", "::1"}), server=True),),
            terms=Terms(authority_life_s=365 * 86400, life_s=90 * 86400, trust_wait_s=30, load_wait_s=600),
        )
    )


def test_every_flag_of_certificates() -> None:
    """Durations are written as Go writes them."""
    flags = ["--cert-secret=s", "--cert-issuer=external", "--cert-webhooks=a", "--cert-webhooks=b"]
    flags += ["--cert-lifetime=1h", "--cert-authority-lifetime=2h", "--cert-trust-wait=1s", "--cert-load-wait=1m30s"]
    given = parse(flags).certificates
    assert given
    assert (given.issuer, given.configurations) == ("external", ("a", "b"))
    assert given.terms == Terms(authority_life_s=7200, life_s=3600, trust_wait_s=1, load_wait_s=90)


def test_a_certificate_for_reports() -> None:
    """Beside the webhook's, in the same Secret."""
    given = parse(["--cert-secret=s", "--cert-dns-name=a.svc", "--cert-report-dns-name=b.svc"]).certificates
    assert given
    assert [(each.name, each.names) for each in given.wanted] == [("tls", {"a.svc"}), ("reports", {"b.svc"})]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--cert-secret=s"], "--cert-dns-name: name the webhook"),
        (["--cert-lifetime=30m"], "--cert-lifetime: the last third of it must be longer"),
        (["--cert-authority-lifetime=20m"], "--cert-authority-lifetime: the last third of it must be longer"),
        (["--cert-lifetime=1000000h"], "--cert-lifetime: at most a hundred years"),
        (["--cert-lifetime=90d"], "'90d' is not a duration; write it like 30s, 5m or 1h30m"),
        (["--cert-issuer=me"], "--cert-issuer"),
    ],
)
def test_certificates_that_cannot_be(flags: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The message names the flag and what would be right."""
    names = [] if flags == ["--cert-secret=s"] else ["--cert-dns-name=a"]
    with pytest.raises(SystemExit) as ended:
        parse(["--cert-secret=s", *names, *flags])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--workers=0", "--workers=x", "--log-level=loud", "--nonsense", "--report-port=1"])
def test_what_cannot_be_used(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It ends the process with code 2 and says which flag is wrong."""
    with pytest.raises(SystemExit) as ended:
        parse([flag])
    assert ended.value.code == 2
    assert flag.partition("=")[0] in capsys.readouterr().err
