"""Certificates of our own authority are accepted by TLS clients, and keys are for their owner only."""

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs.authority import Authority, CertificatePair


def parsed(pair: CertificatePair) -> x509.Certificate:
    """The certificate of a pair."""
    return x509.load_pem_x509_certificate(pair.cert_pem)


def test_server_certificate_has_its_names_and_addresses() -> None:
    """Names and addresses stand in the subject alternative names; it is signed by the authority, on P-256."""
    authority = Authority.create("ca")
    certificate = parsed(authority.issue("webhook", dns_names=["a.svc"], ips=["127.0.0.1"], server=True))
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["a.svc"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]
    certificate.verify_directly_issued_by(parsed(authority.pair))
    key = certificate.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert isinstance(key.curve, ec.SECP256R1)


def test_client_certificate_names_user_and_groups() -> None:
    """The API server reads the user from the common name and the groups from the organisations."""
    certificate = parsed(Authority.create("ca").issue("admin", organizations=["system:masters"], client=True))
    assert [each.value for each in certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] == [
        "system:masters"
    ]
    assert certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "admin"


def test_a_certificate_ends_when_it_shall_and_with_its_authority() -> None:
    """It lives as long as asked for, though never longer than its authority, and is valid for clocks a day behind."""
    now = datetime(2026, 3, 1, tzinfo=UTC)
    authority = Authority.create("ca", life=timedelta(days=30), now=now)
    ends = [
        parsed(authority.issue("x", server=True, life=timedelta(days=days), now=now)).not_valid_after_utc
        for days in (7, 90)
    ]
    assert ends == [now + timedelta(days=7), now + timedelta(days=30)]
    for pair in (authority.pair, authority.issue("x", now=now)):
        assert parsed(pair).not_valid_before_utc < now - timedelta(days=1)


def test_a_pair_does_not_show_its_key() -> None:
    """Neither when it is printed, nor in the report of a failed test."""
    assert "PRIVATE" not in repr(Authority.create("ca").pair)


def test_saved_authority_signs_on(tmp_path: Path) -> None:
    """Loaded from its folder it is the same authority; keys are readable by their owner only, also when replaced."""
    authority = Authority.create("ca")
    authority.save(tmp_path)
    authority.save(tmp_path)
    pair = Authority.load(tmp_path).issue("x", server=True)
    pair.save(tmp_path)
    parsed(pair).verify_directly_issued_by(parsed(authority.pair))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["ca.crt", "ca.key", "tls.crt", "tls.key"]
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("ca.key", "tls.key")} == {0o600}
    assert (tmp_path / "tls.key").read_bytes() == pair.key_pem


IDENTIFIERS = {"AuthorityKeyIdentifier": False, "SubjectKeyIdentifier": False}


@pytest.mark.parametrize(
    ("of", "extensions", "uses"),
    [
        ("authority", {"SubjectKeyIdentifier": False, "BasicConstraints": True, "KeyUsage": True},
            {"digital_signature", "key_cert_sign", "crl_sign"}),
        ("server", {**IDENTIFIERS, "BasicConstraints": True, "KeyUsage": True, "ExtendedKeyUsage": False,
            "SubjectAlternativeName": False}, {"digital_signature"}),
        ("bare", {**IDENTIFIERS, "BasicConstraints": True, "KeyUsage": True}, {"digital_signature"}),
    ],
)  # fmt: skip
def test_what_a_certificate_may_be_used_for(of: str, extensions: dict[str, bool], uses: set[str]) -> None:
    """What verifiers must understand is critical, as RFC 5280 says; an authority signs no further authorities."""
    authority = Authority.create("ca")
    made = {
        "authority": authority.pair,
        "server": authority.issue("server", dns_names=["a"], server=True),
        "bare": authority.issue("bare"),
    }[of]
    found = parsed(made).extensions
    assert {type(each.value).__name__: each.critical for each in found} == extensions
    usage = found.get_extension_for_class(x509.KeyUsage).value
    names = ("digital_signature", "key_cert_sign", "crl_sign", "content_commitment", "key_encipherment",
             "data_encipherment", "key_agreement")  # fmt: skip
    assert {name for name in names if getattr(usage, name)} == uses
    limits = found.get_extension_for_class(x509.BasicConstraints).value
    assert (limits.ca, limits.path_length) == ((True, 0) if of == "authority" else (False, None))
