"""Keys for ssh between pods: OpenSSH reads both halves, and they belong together."""

import subprocess
from base64 import b64decode
from pathlib import Path

import pytest

from certs.ssh import complete, key_pair, pair_of, secret_data
from muster.runtime.plan import Component, KeyKind

MANIFEST = {"kind": "Secret", "metadata": {"name": "s"}, "type": "kubernetes.io/ssh-auth", "immutable": True}


@pytest.mark.parametrize(
    ("kind", "algorithm"), [("ed25519", "ssh-ed25519"), ("ecdsa", "ecdsa-sha2-nistp521")], ids=["default", "ecdsa"]
)
def test_openssh_reads_the_pair(tmp_path: Path, kind: KeyKind, algorithm: str) -> None:
    """`ssh-keygen -y` computes the public key from the private one: it is the one in authorized_keys."""
    pair = key_pair(kind)
    path = tmp_path / "id"
    path.write_bytes(pair.private)
    path.chmod(0o600)
    computed = subprocess.run(["ssh-keygen", "-y", "-f", path], check=True, capture_output=True).stdout
    assert computed.split()[:2] == pair.public.split()
    assert pair.public.startswith(algorithm.encode())
    assert pair.private.startswith(b"-----BEGIN OPENSSH PRIVATE KEY-----")


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_the_public_half_follows_from_the_private_one(kind: KeyKind) -> None:
    """In each format; RSA keys have the one that old programs read."""
    pair = key_pair(kind)
    assert pair_of(pair.private) == pair
    assert pair.private.startswith(b"-----BEGIN RSA") == (kind == "rsa")


def test_a_key_that_cannot_be_read() -> None:
    """A sentence says so."""
    with pytest.raises(ValueError, match="the private key cannot be read"):
        pair_of(b"-----BEGIN nothing")


def test_every_pair_is_new() -> None:
    """Two workloads never share a key."""
    assert key_pair().private != key_pair().private


def test_secret_is_completed() -> None:
    """A component that asks for keys gets both halves; another one stays as it is, and so does the argument."""
    whole = complete(Component(MANIFEST, "MPI", once=True, keys="ed25519"))
    assert {key: whole[key] for key in MANIFEST} == MANIFEST
    assert b64decode(whole["data"]["ssh-publickey"]).startswith(b"ssh-ed25519 ")
    assert set(whole["data"]) == set(secret_data(key_pair()))
    assert complete(Component(MANIFEST, "MPI")) == MANIFEST
    assert "data" not in MANIFEST
