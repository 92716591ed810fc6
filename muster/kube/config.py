"""Where the API server is and who we are, read by the `kubernetes` package.

That package knows kubeconfig files, service accounts, exec plugins and token refresh; nothing else of it is used.
"""

import contextlib
import os
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from kubernetes.client import Configuration
from kubernetes.client.rest import should_bypass_proxies
from kubernetes.config import ConfigException, list_kube_config_contexts, load_incluster_config, load_kube_config
from kubernetes.config.incluster_config import SERVICE_TOKEN_FILENAME

from muster.kube.errors import ConfigurationError

_DEFAULT = "~/.kube/config"
_TOKEN_FRESH_S = 10.0


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
    configuration = Configuration()
    in_pod = "KUBERNETES_SERVICE_HOST" in os.environ
    in_cluster = kubeconfig == "" or (kubeconfig is None and in_pod)
    file = _file(kubeconfig)
    where = "the pod's service account" if in_cluster else f"kubeconfig {file}"
    try:
        if in_cluster:
            load_incluster_config(client_configuration=configuration)
        else:
            load_kube_config(file, client_configuration=configuration)
        return _config(configuration, SERVICE_TOKEN_FILENAME if in_cluster else token_file(file))
    except (ConfigException, OSError, ValueError) as error:
        raise ConfigurationError(
            f"cannot use {where}: {error}; name a readable file with --kubeconfig or in KUBECONFIG"
        ) from error


def context_namespace(kubeconfig: Path | str | None = None) -> str:
    """The namespace that the current context of a kubeconfig names, as kubectl takes it; else "default"."""
    try:
        _, context = list_kube_config_contexts(_file(kubeconfig))
    except (ConfigException, OSError):
        return "default"  # what is wrong with the file is said when a client is made from it
    return str(context["context"].get("namespace") or "default")


def _file(kubeconfig: Path | str | None) -> str:
    return str(kubeconfig or os.environ.get("KUBECONFIG") or _DEFAULT)


def token_file(kubeconfig: str) -> str:
    """The file with the token of the current context's user; empty if it has none, or a token of its own beside it."""
    contexts: dict[str, dict[str, Any]] = {}
    users: dict[str, dict[str, Any]] = {}
    current = ""
    for path in filter(None, kubeconfig.split(os.pathsep)):  # several are one, and the first that says something wins
        file = Path(path).expanduser()
        content = yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else None
        content = content if isinstance(content, dict) else {}
        current = current or str(content.get("current-context") or "")
        for each in content.get("contexts") or ():
            contexts.setdefault(each["name"], each.get("context") or {})
        for each in content.get("users") or ():
            user = each.get("user") or {}
            named = str(user.get("tokenFile") or "")
            users.setdefault(each["name"], {**user, "tokenFile": str(file.parent / named) if named else ""})
    user = users.get(str(contexts.get(current, {}).get("user")), {})
    return str(user.get("tokenFile") or "")


def _config(configuration: Any, token_file: str) -> Config:
    server: str = configuration.host
    if not server.startswith(("http://", "https://")):
        raise ValueError(f"the server {server!r} should begin with https:// (or http://)")
    proxied = configuration.proxy and not should_bypass_proxies(server, configuration.no_proxy or "")
    return Config(
        server=server,
        tls=_tls(configuration) if server.startswith("https:") else None,
        server_name=configuration.tls_server_name or None,
        proxy=_proxy(configuration.proxy) if proxied else None,
        authorization=_authorization(configuration, token_file),
    )


def _proxy(url: str) -> str:
    """A proxy that `muster.kube.dial` can use; its URL may hold a password, so no error shows it."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        kind = parts.scheme if "://" in url else "without a scheme"
        raise ValueError(
            f"the proxy's URL ({kind}) should begin with http:// or https://, no other proxies can be used: "
            "change proxy-url or HTTPS_PROXY, or name the server in NO_PROXY"
        )
    return url


def _tls(configuration: Any) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context


def _authorization(configuration: Any, token_file: str) -> Callable[[], str | None]:
    if token_file:
        return _TokenFile(Path(token_file)).header
    return _Token(configuration).header if configuration.api_key else anonymous


class _TokenFile:
    """The bearer token in a file, read again every few seconds: whoever renews it writes it anew.

    The `kubernetes` package reads that of a kubeconfig once, and that of a pod by the wall clock, which may jump. While
    it cannot be read, the last token stays.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._header = self._read()
        self._fresh_until = time.monotonic() + _TOKEN_FRESH_S

    def header(self) -> str:
        with self._lock:
            now = time.monotonic()
            if now >= self._fresh_until:
                with contextlib.suppress(OSError, ValueError):
                    self._header = self._read()
                self._fresh_until = now + _TOKEN_FRESH_S
            return self._header

    def _read(self) -> str:
        token = self._file.read_text(encoding="utf-8").strip()
        if not token:
            raise ValueError(f"{self._file} is empty; it should hold a token")
        return f"Bearer {token}"


class _Token:
    """The bearer token, asked for again every few seconds (asking is slow, and not thread safe)."""

    def __init__(self, configuration: Any) -> None:
        self._configuration = configuration
        self._lock = threading.Lock()
        self._header: str | None = None
        self._fresh_until = 0.0

    def header(self) -> str | None:
        with self._lock:
            now = time.monotonic()
            if now >= self._fresh_until:
                self._header = self._configuration.get_api_key_with_prefix("BearerToken")
                self._fresh_until = now + _TOKEN_FRESH_S
            return self._header
