"""Configurations that only the `kubernetes` package can read: with programs to run, logins, or proxies.

To import it takes 0.15 s and 20 MiB, a third of what a process takes to start, so who needs none of it goes without.
"""

import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from kubernetes.client import Configuration
from kubernetes.client.rest import should_bypass_proxies
from kubernetes.config import ConfigException, load_incluster_config, load_kube_config

from muster.kube.config import TOKEN_FRESH_S, Config, anonymous, tls_of


def of_pod(token: Callable[[], str | None]) -> Config:
    """The service account's, with `token` as its header; raises OSError or ValueError."""
    configuration = Configuration()
    _load(lambda: load_incluster_config(client_configuration=configuration))
    return _config(configuration, token)


def of_context(files: str, context: str, token: Callable[[], str | None] | None) -> Config:
    """A context's, with `token` as its header if that is known; raises OSError or ValueError."""
    configuration = Configuration()
    _load(lambda: load_kube_config(files, context, configuration))
    return _config(configuration, token or (_Token(configuration).header if configuration.api_key else anonymous))


def _load(load: Callable[[], None]) -> None:
    try:
        load()
    except ConfigException as error:
        raise ValueError(str(error)) from error


def _config(configuration: Any, authorization: Callable[[], str | None]) -> Config:
    server: str = configuration.host
    proxied = configuration.proxy and not should_bypass_proxies(server, configuration.no_proxy or "")
    return Config(
        server=server,
        tls=tls_of(
            server,
            ca_file=configuration.ssl_ca_cert,
            certificate=configuration.cert_file,
            key=configuration.key_file,
            verify=configuration.verify_ssl,
        ),
        server_name=configuration.tls_server_name or None,
        proxy=_proxy(configuration.proxy) if proxied else None,
        authorization=authorization,
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
                self._fresh_until = now + TOKEN_FRESH_S
            return self._header
