"""SSH keys for the pods of one workload, in a Secret that the pods mount."""

from base64 import b64encode
from dataclasses import dataclass
from typing import Any, Literal

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP521R1, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as ecdsa_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as rsa_key

from muster.runtime.plan import Component, KeyKind
from muster.runtime.plugins.mpi_objects import PRIVATE_KEY, PUBLIC_KEY

PrivateKey = Ed25519PrivateKey | EllipticCurvePrivateKey | RSAPrivateKey
_RSA_BITS = 2048


@dataclass(frozen=True, slots=True)
class SSHKeyPair:
    """A private key in a format that OpenSSH reads, and the public key as a line for authorized_keys."""

    private: bytes
    public: bytes


def key_pair(kind: KeyKind | Literal["rsa"] = "ed25519") -> SSHKeyPair:
    """Return a new key pair: Ed25519, ECDSA (P-521), or RSA.

    RSA keys are in PEM format (PKCS#1), for programs that read the key file without OpenSSH.
    """
    layout = serialization.PrivateFormat.OpenSSH
    key: PrivateKey
    if kind == "rsa":
        key = rsa_key(public_exponent=65537, key_size=_RSA_BITS)
        layout = serialization.PrivateFormat.TraditionalOpenSSL
    else:
        key = Ed25519PrivateKey.generate() if kind == "ed25519" else ecdsa_key(SECP521R1())
    private = key.private_bytes(serialization.Encoding.PEM, layout, serialization.NoEncryption())
    return SSHKeyPair(private, _public(key))


def pair_of(private: bytes) -> SSHKeyPair:
    """Return the key pair of a private key in OpenSSH or PEM format. Raises ValueError if the key is unreadable."""
    load = serialization.load_ssh_private_key if b"OPENSSH" in private else serialization.load_pem_private_key
    try:
        key = load(private, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ValueError(f"the private key cannot be read: {error}") from error
    if not isinstance(key, PrivateKey):
        raise ValueError(f"the private key is of an unsupported type ({type(key).__name__})")  # noqa: TRY004 - the text is at fault
    return SSHKeyPair(private, _public(key))


def _public(key: PrivateKey) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH) + b"\n"


def secret_data(pair: SSHKeyPair) -> dict[str, str]:
    """Return the field `data` of a Secret of type kubernetes.io/ssh-auth that also contains the public key."""
    return {PRIVATE_KEY: b64encode(pair.private).decode(), PUBLIC_KEY: b64encode(pair.public).decode()}


def complete(component: Component) -> dict[str, Any]:
    """Return the manifest of a component, with a new key pair if the component requests one."""
    manifest = dict(component.manifest)
    return {**manifest, "data": secret_data(key_pair(component.keys))} if component.keys else manifest
