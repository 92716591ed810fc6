"""Where the API server is and who we are, read by the `kubernetes` package.

That package knows kubeconfig files, service accounts, exec plugins and token refresh; nothing else of it is used.
"""

import os
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes.client import Configuration
from kubernetes.client.rest import should_bypass_proxies
from kubernetes.config import ConfigException, list_kube_config_contexts, load_incluster_config, load_kube_config

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
        return _config(configuration)
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


def _config(configuration: Any) -> Config:
    server: str = configuration.host
    if not server.startswith(("http://", "https://")):
        raise ValueError(f"the server {server!r} should begin with https:// (or http://)")
    proxied = configuration.proxy and not should_bypass_proxies(server, configuration.no_proxy or "")
    return Config(
        server=server,
        tls=_tls(configuration) if server.startswith("https:") else None,
        server_name=configuration.tls_server_name or None,
        proxy=configuration.proxy if proxied else None,
        authorization=_Token(configuration).header if configuration.api_key else anonymous,
    )


def _tls(configuration: Any) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context


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
