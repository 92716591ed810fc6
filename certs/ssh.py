"""SSH keys for the pods of one workload, as the Secret that they mount."""

from base64 import b64encode
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP521R1
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as ecdsa_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from muster.runtime.component import Component, KeyKind
from muster.runtime.plugins.mpi import PRIVATE_KEY, PUBLIC_KEY


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A private key in OpenSSH's format, and the line of authorized_keys that lets it in."""

    private: bytes
    public: bytes


def key_pair(kind: KeyKind = "ed25519") -> KeyPair:
    """A new pair: Ed25519 (short, and every OpenSSH since 6.5 knows it), or ECDSA on P-521."""
    key = Ed25519PrivateKey.generate() if kind == "ed25519" else ecdsa_key(SECP521R1())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return KeyPair(private, public + b"\n")


def secret_data(pair: KeyPair) -> dict[str, str]:
    """`data` of a Secret of type kubernetes.io/ssh-auth, which also carries the public key."""
    return {PRIVATE_KEY: b64encode(pair.private).decode(), PUBLIC_KEY: b64encode(pair.public).decode()}


def complete(component: Component) -> dict[str, Any]:
    """The manifest to create: with a new pair of keys where the component asks for one.

    Create it, and keep the Secret that is there already: pods that run have mounted its key.
    """
    manifest = dict(component.manifest)
    return {**manifest, "data": secret_data(key_pair(component.keys))} if component.keys else manifest
