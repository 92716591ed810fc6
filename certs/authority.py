"""Muster's own certificate authority: one P-256 key that signs serving and client certificates."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

BACKDATE = timedelta(days=2)
"""Time for which a certificate is already valid before its creation, so that clients whose clock is up to a day behind
accept it."""
_CA_LIFETIME = timedelta(days=3650)
_LIFETIME = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class CertificatePair:
    """A certificate and its private key, both PEM; printing the object does not show the key."""

    cert_pem: bytes
    key_pem: bytes = field(repr=False)

    def save(self, folder: Path, name: str = "tls") -> None:
        """Write `<name>.key` (readable only by its owner), then `<name>.crt`; no process ever sees incomplete files."""
        folder.mkdir(parents=True, exist_ok=True)
        _write_file(folder / f"{name}.key", self.key_pem, mode=0o600)
        _write_file(folder / f"{name}.crt", self.cert_pem, mode=0o644)


class Authority:
    """Signer of certificates; `pair` is the signer's own certificate and key."""

    def __init__(self, pair: CertificatePair) -> None:
        self.pair = pair
        self._certificate = x509.load_pem_x509_certificate(pair.cert_pem)
        key = serialization.load_pem_private_key(pair.key_pem, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError(f"the authority's key is a {type(key).__name__}; an elliptic-curve key is needed")
        self._key = key

    @property
    def cert_pem(self) -> bytes:
        """The certificate of the authority (PEM), as in the field `caBundle` of webhook configurations."""
        return self.pair.cert_pem

    @classmethod
    def create(cls, common_name: str, *, life: timedelta = _CA_LIFETIME, now: datetime | None = None) -> Self:
        """Return a new authority with a new key; its `life` starts at `now`, by default this machine's time."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name(common_name)
        began = now or datetime.now(UTC)
        builder = (
            _builder(name, name, key, began, began + life)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(ca=True), critical=True)
        )
        return cls(_pair(builder.sign(key, hashes.SHA256()), key))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Return the authority whose certificate and key are the files `ca.crt` and `ca.key` of a directory."""
        return cls(CertificatePair((folder / "ca.crt").read_bytes(), (folder / "ca.key").read_bytes()))

    def save(self, folder: Path) -> None:
        """Write the files `ca.crt` and `ca.key` (which only the owner can read) into a directory."""
        self.pair.save(folder, "ca")

    def issue(
        self,
        common_name: str,
        *,
        dns_names: Sequence[str] = (),
        ips: Sequence[str] = (),
        organizations: Sequence[str] = (),
        client: bool = False,
        server: bool = False,
        life: timedelta = _LIFETIME,
        now: datetime | None = None,
    ) -> CertificatePair:
        """Return a certificate with a new key for a server, a client or both; a client's groups become organizations.

        The certificate is valid for the time `life` from `now` on (by default this machine's time), but not longer than
        its authority.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH] if client else []
        purposes += [ExtendedKeyUsageOID.SERVER_AUTH] if server else []
        names: list[x509.GeneralName] = [x509.DNSName(name) for name in dns_names]
        names += [x509.IPAddress(ipaddress.ip_address(ip)) for ip in ips]
        began = now or datetime.now(UTC)
        ends = min(began + life, self._certificate.not_valid_after_utc)
        builder = (
            _builder(_name(common_name, organizations), self._certificate.subject, key, began, ends)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(ca=False), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if purposes:
            builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return _pair(builder.sign(self._key, hashes.SHA256()), key)


def _write_file(file: Path, content: bytes, *, mode: int) -> None:
    """Replace a file atomically, so that other processes never see partial content or a wrong file mode."""
    new = file.with_name(f".{file.name}.new")
    new.unlink(missing_ok=True)
    new.touch(mode=mode)
    new.write_bytes(content)
    new.replace(file)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, began: datetime, ends: datetime
) -> x509.CertificateBuilder:
    """Return the builder of a certificate with the common fields: names, key, serial number, and a backdated start."""
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(began - BACKDATE)
        .not_valid_after(ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(common_name: str, organizations: Sequence[str] = ()) -> x509.Name:
    """Return a distinguished name.

    In a client certificate for an API server, the organizations are the client's groups.
    """
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization) for organization in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _key_usage(*, ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, key_cert_sign=ca, crl_sign=ca, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> CertificatePair:
    return CertificatePair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )
