"""Reader of certificates in PEM text: subject, signer, names and lifetime. The functions do no I/O."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization

from certs.authority import BACKDATE, CertificatePair

_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_RENEWED_AFTER = 2 / 3
"""Fraction of a certificate's lifetime after which the certificate is renewed; the last third is left for retries after
failures."""
_SHOWN_CHARS = 12


class UnreadableError(ValueError):
    """Error for an unreadable certificate or key; the message contains its name, never its content."""


@dataclass(frozen=True, repr=False)
class Certificate:
    """A certificate. Two certificates are equal if their encoded bytes are equal."""

    pem: bytes
    parsed: x509.Certificate = field(compare=False)

    def __repr__(self) -> str:
        return f"<{self.subject} {self.fingerprint[:_SHOWN_CHARS]}>"

    @classmethod
    def read(cls, pem: bytes) -> Self:
        """Return the first certificate in a PEM text. Raises UnreadableError if there is none."""
        try:
            found = x509.load_pem_x509_certificate(pem)
            return cls(found.public_bytes(serialization.Encoding.PEM), found)
        except (ValueError, UnsupportedAlgorithm) as error:
            raise UnreadableError("it is not a certificate (PEM)") from error

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the whole certificate in 64 hexadecimal digits, as `openssl x509 -fingerprint` computes it."""
        return self.parsed.fingerprint(hashes.SHA256()).hex()

    @cached_property
    def subject(self) -> str:
        """The common name of the certificate's subject or, if there is none, the subject's whole name."""
        names = self.parsed.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        return str(names[0].value) if names else self.parsed.subject.rfc4514_string()

    @cached_property
    def names(self) -> frozenset[str]:
        """The host names and addresses for which a server may present the certificate."""
        try:
            found = self.parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except (x509.ExtensionNotFound, ValueError):
            return frozenset()
        addresses = found.get_values_for_type(x509.IPAddress)
        return frozenset([*found.get_values_for_type(x509.DNSName), *map(str, addresses)])

    @cached_property
    def is_authority(self) -> bool:
        """True if the certificate may sign other certificates."""
        try:
            return self.parsed.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        except (x509.ExtensionNotFound, ValueError):
            return False

    @cached_property
    def begins_s(self) -> float:
        """The start of the certificate's validity, in seconds since the epoch."""
        return self.parsed.not_valid_before_utc.timestamp()

    @cached_property
    def ends_s(self) -> float:
        """The end of the certificate's validity, in seconds since the epoch."""
        return self.parsed.not_valid_after_utc.timestamp()

    @property
    def due_s(self) -> float:
        """The time at which the certificate is replaced: after two thirds of its lifetime."""
        made_s = min(self.begins_s + BACKDATE.total_seconds(), self.ends_s)
        return made_s + (self.ends_s - made_s) * _RENEWED_AFTER

    def valid_at(self, now_s: float) -> bool:
        """Return True if the certificate is valid at this time."""
        return self.begins_s <= now_s <= self.ends_s

    def signed_by(self, authority: "Certificate") -> bool:
        """Return True if this authority has signed the certificate."""
        return _signed_by(self, authority)


@lru_cache(maxsize=1024)
def _signed_by(certificate: Certificate, authority: Certificate) -> bool:
    """Verify a signature; results are cached, because each pass checks the same certificates against all caBundles."""
    try:
        certificate.parsed.verify_directly_issued_by(authority.parsed)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return authority.is_authority


@dataclass(frozen=True)
class Pair:
    """A certificate with its matching private key; printing the object does not show the key (PEM)."""

    certificate: Certificate
    key_pem: bytes = field(repr=False)
    above: tuple[Certificate, ...] = ()
    """The intermediate authorities that a server presents with its certificate. Muster's own certificates have no
    intermediate authorities; certificates of another issuer may have some."""

    def vouched_by(self, trusted: Collection[Certificate]) -> bool:
        """Return True if a client that trusts the certificates in `trusted` accepts this certificate.

        `trusted` must contain the certificate itself, its signer, or the signer of one of its intermediate authorities.
        """
        current, left = self.certificate, set(self.above)
        while current not in trusted and not any(current.signed_by(each) for each in trusted):
            signer = next((each for each in left if current.signed_by(each)), None)
            if signer is None:
                return False
            left.discard(signer)
            current = signer
        return True

    @classmethod
    def read(cls, cert_pem: bytes, key_pem: bytes) -> Self:
        """Return a certificate with its key.

        Raises UnreadableError, which names an unreadable part or reports that the two do not match.
        """
        certificate = Certificate.read(cert_pem)
        try:
            key = serialization.load_pem_private_key(key_pem, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            # The library's message is left out: it may quote the key.
            raise UnreadableError("its key is not a private key (PEM, not encrypted)") from None
        form = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        if key.public_key().public_bytes(*form) != certificate.parsed.public_key().public_bytes(*form):
            raise UnreadableError("its key belongs to another certificate")
        return cls(certificate, key_pem, tuple(each for each in read_bundle(cert_pem) if each != certificate))

    @classmethod
    def from_pair(cls, pair: CertificatePair) -> Self:
        """Return the certificate and the key that an authority has issued."""
        return cls(Certificate.read(pair.cert_pem), pair.key_pem)


def read_bundle(pem: bytes) -> tuple[Certificate, ...]:
    """Return the certificates in a PEM text, in order, without duplicates and without unreadable parts."""
    found: dict[Certificate, None] = {}
    for block in _BLOCK.findall(pem):
        try:
            found[Certificate.read(block)] = None
        except UnreadableError:
            continue
    return tuple(found)


def write_bundle(certificates: Iterable[Certificate]) -> bytes:
    """Return the PEM text of these certificates, without duplicates."""
    return b"".join(dict.fromkeys(certificate.pem for certificate in certificates))
