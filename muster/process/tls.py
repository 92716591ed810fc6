"""What a server speaks TLS with, made of its files (`muster.process.tlsfiles`).

`TLSContext` is for servers that ask for a context at each connection (`muster.process.server`). `Material` is for one
that reads files when it starts (`muster.process.embedded`), and ends the process if there is anything wrong with them:
so it is checked here, and handed over as it was checked.
"""

import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from muster.process.tlsfiles import FileError, Files, Followed, memory_folder

Key = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey
_CURVES = (ec.SECP256R1, ec.SECP384R1)
_RSA_BITS = range(2048, 4097)


class TLSContext:
    """A server's TLS context, made anew when one of its files changes.

    With an authority for clients, those must have a certificate of it.
    """

    def __init__(self, cert_file: Path, key_file: Path, client_ca_file: Path | None = None) -> None:
        self._made = Followed(Files(cert_file, key_file, client_ca_file), _context)

    def get(self) -> ssl.SSLContext:
        """The context for the next connection; OSError or ValueError (also ssl.SSLError) if there never was one."""
        return self._made.get()[0]

    def ends_s(self) -> float:
        """When the certificate ends that the next connection gets, in seconds since the epoch."""
        return self._made.get()[1]


@dataclass(frozen=True)
class Material:
    """What the files say, checked and written down anew as PEM; the key is not shown when it is printed."""

    cert_pem: bytes
    key_pem: bytes = field(repr=False)
    client_ca_pem: bytes
    ends_s: float
    """When the certificate ends, in seconds since the epoch."""

    @classmethod
    def read(cls, files: Files) -> "Material":
        """Of files that all are there; OSError or FileError if one cannot be used."""
        chain, key = _certificates(files.cert), _key(files.key)
        if not _belongs(key, chain[0]):
            raise FileError(f"{files.key}: this key belongs to another certificate than {files.cert}")
        if files.client_ca is None:
            raise FileError("the authorities of clients are missing: name a file with their certificates")
        return cls(
            _pem(chain),
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ),
            _pem(_certificates(files.client_ca)),
            chain[0].not_valid_after_utc.timestamp(),
        )

    def written(self) -> tuple["TemporaryDirectory[str]", Files]:
        """Files with it that only their owner may read, and their folder, which ends with its `cleanup`.

        They are in memory where the machine has a place for that.
        """
        folder = TemporaryDirectory(prefix="muster-tls-", dir=memory_folder())  # with mode 0700
        files = Files(*(Path(folder.name, name) for name in ("tls.crt", "tls.key", "ca.crt")))
        for file, content in zip(files, (self.cert_pem, self.key_pem, self.client_ca_pem), strict=True):
            if file:
                file.write_bytes(content)
        return folder, files


def _context(files: Files) -> tuple[ssl.SSLContext, float]:
    certificate = x509.load_pem_x509_certificate(files.cert.read_bytes())
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.cert, files.key)
    if files.client_ca:
        context.load_verify_locations(cafile=files.client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context, certificate.not_valid_after_utc.timestamp()


def _certificates(file: Path) -> list[x509.Certificate]:
    try:
        found = x509.load_pem_x509_certificates(file.read_bytes())
    except ValueError as error:
        raise FileError(f"{file}: there is no certificate (PEM) in it") from error
    if any(each.version is not x509.Version.v3 for each in found):
        raise FileError(f"{file}: a certificate in it is not of version 3")
    return found


def _belongs(key: Key, certificate: x509.Certificate) -> bool:
    try:
        return key.public_key() == certificate.public_key()
    except (ValueError, UnsupportedAlgorithm):  # of a kind that no key of ours can be of
        return False


def _key(file: Path) -> Key:
    """A key of a kind that every TLS library takes."""
    try:
        key = serialization.load_pem_private_key(file.read_bytes(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # Not even what the library says: it has seen the key.
        raise FileError(f"{file}: it is not a private key (PEM, not encrypted)") from None
    match key:
        case ec.EllipticCurvePrivateKey() if isinstance(key.curve, _CURVES):
            return key
        case ed25519.Ed25519PrivateKey():
            return key
        case rsa.RSAPrivateKey() if key.key_size in _RSA_BITS:
            return key
        case _:
            raise FileError(f"{file}: take a key for P-256, P-384, Ed25519, or RSA with 2048 to 4096 bits")


def _pem(certificates: Iterable[x509.Certificate]) -> bytes:
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in certificates)
