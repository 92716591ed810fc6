"""A neighbour's own manifests, fitted to processes that run beside the plane instead of in it."""

import base64
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from certs.authority import Authority

_HOST = "127.0.0.1"


def read(*paths: Path) -> list[dict[str, Any]]:
    """All objects of YAML files; of folders those of every .yaml file in them, without kustomize's own."""
    files = [file for path in paths for file in ([path] if path.is_file() else sorted(path.glob("*.yaml")))]
    texts = [file.read_text(encoding="utf-8") for file in files if not file.name.startswith("kustom")]
    return [each for text in texts for each in yaml.safe_load_all(text) if each]


def serving(folder: Path) -> bytes:
    """A new certificate for 127.0.0.1 in `folder` (tls.crt, tls.key), and the bundle that vouches for it."""
    authority = Authority.create("neighbour")
    folder.mkdir(parents=True, exist_ok=True)
    authority.issue(_HOST, dns_names=["localhost"], ips=[_HOST], server=True).save(folder)
    return authority.cert_pem


def webhooks(objects: Iterable[Mapping[str, Any]], port: int, ca_pem: bytes) -> list[dict[str, Any]]:
    """The configurations of webhooks among the objects, pointed at a process on this port instead of at a Service."""
    found = []
    for each in objects:
        if each["kind"] not in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
            continue
        hooks = [_local(hook, port, ca_pem) for hook in each["webhooks"]]
        found.append({**each, "webhooks": hooks})
    return found


def _local(hook: Mapping[str, Any], port: int, ca_pem: bytes) -> dict[str, Any]:
    path = hook["clientConfig"]["service"].get("path", "/")
    bundle = base64.b64encode(ca_pem).decode()
    return {**hook, "clientConfig": {"url": f"https://{_HOST}:{port}{path}", "caBundle": bundle}}
