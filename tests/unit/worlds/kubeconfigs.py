"""kubeconfig files, and the folder of a pod's service account, for tests of what is made of them."""

import json
from pathlib import Path
from typing import Any

import pytest
from kubernetes.config import incluster_config

from muster.kube.config import ClientConfig


def plain(cluster: dict[str, Any], user: dict[str, Any]) -> dict[str, Any]:
    """The content of a kubeconfig with one context."""
    return {
        "apiVersion": "v1",
        "kind": "ClientConfig",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "me"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "me", "user": user}],
    }


def write(file: Path, content: dict[str, Any]) -> str:
    """A kubeconfig (JSON is YAML)."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))
    return str(file)


def header(config: ClientConfig) -> str | None:
    """The Authorization header of the next request."""
    return config.authorization() if config.authorization else None


def kubeconfig(folder: Path, user: dict[str, Any], **cluster: Any) -> Path:
    """A file with one context, whose server is on loopback unless it is given."""
    content = plain({"server": "https://127.0.0.1:6443/prefix/", **cluster}, user)
    return Path(write(folder / "kubeconfig", content))


def service_account(folder: Path, monkeypatch: pytest.MonkeyPatch, authority: bytes, token: str) -> None:
    """Has this process find a service account there, as if it ran in a pod; an address is still to be set."""
    (folder / "token").write_text(token)
    (folder / "ca.crt").write_bytes(authority)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(folder / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(folder / "ca.crt"))
