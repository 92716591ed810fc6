"""Where the API server is and who we are: a kubeconfig file, or the service account of a pod.

Certificates and tokens are read here; whoever has to log in, or goes through a proxy, is left to `muster.kube.logins`.
"""

import base64
import contextlib
import os
import ssl
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.kube import kubeconfig as files
from muster.kube.errors import ConfigurationError
from muster.kube.kubeconfig import Kubeconfig

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN_FRESH_S = 10.0
_DEFAULT = "~/.kube/config"
_PLAIN_USER = frozenset(
    {"token", "tokenFile", "client-certificate", "client-certificate-data", "client-key", "client-key-data"}
)
_PROXIES = frozenset({"http_proxy", "https_proxy", "all_proxy"})


def anonymous() -> str | None:
    """No Authorization header: a client certificate says who we are, or nothing does."""
    return None


@dataclass(frozen=True, slots=True)
class Config:
    """How to reach an API server.

    `authorization` gives the value of the Authorization header for the next request and renews tokens on the way.
    Certificates are read once, when the configuration is loaded.
    """

    server: str
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    proxy: str | None = None
    authorization: Callable[[], str | None] = anonymous


def load_config(kubeconfig: Path | str | None = None) -> Config:
    """Reads a kubeconfig; "" means the pod's service account, None that if we are in a pod, else the user's default."""
    in_pod = "KUBERNETES_SERVICE_HOST" in os.environ
    in_cluster = kubeconfig == "" or (kubeconfig is None and in_pod)
    file = _file(kubeconfig)
    where = "the pod's service account" if in_cluster else f"kubeconfig {file}"
    try:
        return _of_pod() if in_cluster else _of_file(file)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"cannot use {where}: {error}; name a readable file with --kubeconfig or in KUBECONFIG"
        ) from error


def context_namespace(kubeconfig: Path | str | None = None) -> str:
    """The namespace that the current context of a kubeconfig names, as kubectl takes it; else "default"."""
    try:
        return files.read(_file(kubeconfig)).namespace or "default"
    except (OSError, ValueError):
        return "default"  # what is wrong with the file is said when a client is made from it


def tls_of(
    server: str,
    *,
    ca_file: str | None = None,
    ca_pem: bytes = b"",
    certificate: str | None = None,
    key: str | None = None,
    verify: bool = True,
) -> ssl.SSLContext | None:
    """What a connection to the server begins with, files read; None for plain HTTP. ValueError for anything else."""
    if not server.startswith(("http://", "https://")):
        raise ValueError(f"the server {server!r} should begin with https:// (or http://)")
    if server.startswith("http:"):
        return None
    context = ssl.create_default_context(cafile=ca_file or None, cadata=ca_pem.decode() if ca_pem else None)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate:
        context.load_cert_chain(certificate, key)
    return context


def _file(kubeconfig: Path | str | None) -> str:
    return str(kubeconfig or os.environ.get("KUBECONFIG") or _DEFAULT)


def _of_pod() -> Config:
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{part}", "") for part in ("HOST", "PORT"))
    if not host or not port:
        raise ValueError("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set, so this is no pod")
    token = _TokenFile(SERVICE_ACCOUNT / "token").header
    if _through_proxy():
        from muster.kube import logins  # noqa: PLC0415 - it takes long to import

        return logins.of_pod(token)
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return Config(server, tls_of(server, ca_file=str(SERVICE_ACCOUNT / "ca.crt")), authorization=token)


def _of_file(file: str) -> Config:
    said = files.read(file)
    named = said.user.get("tokenFile")
    token = _TokenFile(Path(named)).header if named else None
    if said.user.keys() - _PLAIN_USER or "proxy-url" in said.cluster or _through_proxy():
        from muster.kube import logins  # noqa: PLC0415 - it takes long to import

        return logins.of_context(file, said.context, token)
    server = str(said.cluster.get("server") or "").rstrip("/")
    return Config(
        server,
        _tls(server, said),
        server_name=said.cluster.get("tls-server-name") or None,
        authorization=token or _fixed(said.user.get("token")),
    )


def _through_proxy() -> bool:
    return any(name.lower() in _PROXIES and value for name, value in os.environ.items())


def _tls(server: str, said: Kubeconfig) -> ssl.SSLContext | None:
    """Data in the file itself count before files that it names, as for kubectl."""
    ca_pem = _data(said.cluster, "certificate-authority")
    pem = _data(said.user, "client-certificate"), _data(said.user, "client-key")
    with contextlib.ExitStack() as stack:
        certificate, key = (
            _written(stack, data) if data else said.user.get(name)
            for data, name in zip(pem, ("client-certificate", "client-key"), strict=True)
        )
        return tls_of(
            server,
            ca_file=None if ca_pem else said.cluster.get("certificate-authority"),
            ca_pem=ca_pem,
            certificate=certificate,
            key=key,
            verify=not said.cluster.get("insecure-skip-tls-verify"),
        )


def _data(said: dict[str, Any], name: str) -> bytes:
    return base64.b64decode(str(said.get(f"{name}-data") or ""))


def _written(stack: contextlib.ExitStack, pem: bytes) -> str:
    """A file of our own with this in it, until the stack ends: of a client, OpenSSL reads only files."""
    file = stack.enter_context(tempfile.NamedTemporaryFile())  # noqa: SIM115 - the stack closes it
    file.write(pem)
    file.flush()
    return file.name


def _fixed(token: object) -> Callable[[], str | None]:
    return (lambda: f"Bearer {token}") if token else anonymous


class _TokenFile:
    """The bearer token in a file, read again every few seconds: whoever renews it writes it anew.

    While it cannot be read, the last token stays.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._header = self._read()
        self._fresh_until = time.monotonic() + TOKEN_FRESH_S

    def header(self) -> str:
        with self._lock:
            now = time.monotonic()
            if now >= self._fresh_until:
                with contextlib.suppress(OSError, ValueError):
                    self._header = self._read()
                self._fresh_until = now + TOKEN_FRESH_S
            return self._header

    def _read(self) -> str:
        token = self._file.read_text(encoding="utf-8").strip()
        if not token:
            raise ValueError(f"{self._file} is empty; it should hold a token")
        return f"Bearer {token}"
