"""Address and credentials of the API server, from a kubeconfig file or a pod's service account.

The package `kubernetes` reads kubeconfig files and service accounts, and handles multiple files, exec plugins, logins
and proxies. This module converts the result of `kubernetes` into a small `ClientConfig`, and its errors into sentences.
The sentences quote only names from a kubeconfig, because the errors of `kubernetes` may quote whole entries with
secrets.
"""

import os
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypedDict
from urllib.parse import urlsplit

import msgspec
import structlog
import yaml
from kubernetes.client import Configuration
from kubernetes.client.rest import should_bypass_proxies
from kubernetes.config import ConfigException, load_incluster_config
from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger

from muster.kube.errors import ConfigurationError

log = structlog.get_logger(__name__)

_DEFAULT = "~/.kube/config"
_TOKEN = "BearerToken"  # noqa: S105 - the package's name for the header
_RENEWED = frozenset({"tokenFile", "auth-provider"})
"""Kinds of credentials that may change, for which the configuration is loaded again. The package `kubernetes` itself
renews the credentials of exec plugins."""
_CREDENTIALS = frozenset({"token", "exec"}) | _RENEWED
_loading = threading.Lock()
"""Lock for loading a kubeconfig, because the package `kubernetes` stores certificates in files that all loads share."""


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """Address and credentials for an API server.

    `authorization` returns the value of the Authorization header for the next request, and may read a file or run a
    program. If `authorization` is None, requests have no Authorization header. Certificates are read once, when the
    configuration is loaded.
    """

    server: str
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    proxy: str | None = None
    authorization: Callable[[], str] | None = None
    namespace: str = "default"
    """The namespace of a kubeconfig's context."""
    certificate: bool = False
    """True if the client presents a certificate of the user in the TLS handshake, in addition to any
    `authorization`."""


class ClientOptions(TypedDict, total=False):
    """The options of a client.

    At most `connections` requests are in progress at once, not counting streams; other requests wait. `timeout_s` is
    the default timeout of a call, which does not include this wait. `on_warning` receives the API server's warnings,
    also in responses that reject a request. Without `on_warning`, warnings are not read.
    """

    user_agent: str
    connections: int
    timeout_s: float
    on_warning: Callable[[str], None] | None


def load_config(kubeconfig: Path | str | None = None) -> ClientConfig:
    """Read a kubeconfig.

    The path "" stands for the pod's service account. The path None stands for the service account if it exists,
    otherwise for the user's default kubeconfig.
    """
    in_cluster = kubeconfig == "" or (kubeconfig is None and "KUBERNETES_SERVICE_HOST" in os.environ)
    files = str(kubeconfig or os.environ.get("KUBECONFIG") or _DEFAULT)
    where = "the pod's service account" if in_cluster else f"kubeconfig {files}"
    try:
        return _of_pod() if in_cluster else _of_files(files)
    except (_UnusableError, OSError) as error:
        raise ConfigurationError(
            f"cannot use {where}: {error}; name a readable file with --kubeconfig or in KUBECONFIG"
        ) from None


class _UnusableError(ValueError):
    """A kubeconfig or service account that cannot be used; the message quotes no secrets."""


class _Variable(msgspec.Struct):
    name: str
    value: str


class _Program(msgspec.Struct, rename="camel"):
    command: str
    api_version: str
    env: list[_Variable] | None = None


class _User(msgspec.Struct):
    exec: _Program | None = None


class _ServerAddress(msgspec.Struct):
    server: str = ""


class _Context(msgspec.Struct):
    cluster: str = ""
    user: str | None = None
    namespace: str | None = None


class _KubeconfigEntry(msgspec.Struct):
    name: str
    context: _Context | None = None
    cluster: _ServerAddress | None = None
    user: _User | None = None


class _Kubeconfig(msgspec.Struct, rename="kebab"):
    """Fields of a kubeconfig to check, because errors in the package `kubernetes` might quote a secret."""

    contexts: list[_KubeconfigEntry]
    clusters: list[_KubeconfigEntry]
    users: list[_KubeconfigEntry]
    current_context: str | None = None

    def context(self) -> _Context:
        """Return the kubeconfig's current context, after a check that the context's cluster and user exist."""
        name = self.current_context or ""
        context = _named("current-context", name, self.contexts, "context").context or _Context()
        cluster = _named(f"context {name}", context.cluster, self.clusters, "cluster").cluster or _ServerAddress()
        if not cluster.server.startswith(("http://", "https://")):
            raise _UnusableError(f"the server {cluster.server!r} should begin with https:// (or http://)")
        if context.user:
            _named(f"context {name}", context.user, self.users, "user")
        return context


def _named(who: str, name: str, entries: list[_KubeconfigEntry], what: str) -> _KubeconfigEntry:
    known = {each.name: each for each in entries}
    if name not in known:
        there = ", ".join(sorted(known)) or "none"
        raise _UnusableError(f"{who} names {name!r}, which is not among its {what}s: {there}")
    if getattr(known[name], what) is None:
        raise _UnusableError(f"the entry {name!r} of its {what}s has no `{what}`")
    return known[name]


def _of_pod() -> ClientConfig:
    found = Configuration()
    try:
        load_incluster_config(client_configuration=found)
    except ConfigException as error:
        raise _UnusableError(str(error).rstrip(".")) from error
    return _config(found, _Credentials(found.api_key[_TOKEN], partial(_header, found)), None)


def _of_files(files: str) -> ClientConfig:
    merger = _merged(files)
    context = _context(merger)
    user = merger.config["users"].get_with_name(context.user, safe=True) if context.user else None
    given = _CREDENTIALS & (user.value.get("user") or {}).keys() if user else frozenset()
    with _loaded(merger) as found:
        credentials = None
        if header := found.api_key.get(_TOKEN):
            credentials = _Credentials(
                header, partial(_reload, merger) if given & _RENEWED else partial(_header, found)
            )
        elif given and not found.cert_file:
            raise _UnusableError(f"{' and '.join(sorted(given))} of user {context.user!r} gave no credentials")
        return _config(found, credentials, context.namespace)


def _merged(files: str) -> KubeConfigMerger:
    """Return the contents of the kubeconfig files, merged as the package `kubernetes` merges them."""
    try:
        merger = KubeConfigMerger(files)
    except OSError:
        raise
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{mark.name} is not YAML, see line {mark.line + 1}" if mark else "the file is not YAML"
        raise _UnusableError(where) from None
    except Exception:  # noqa: BLE001 - the package's errors about unexpected content may quote it
        raise _UnusableError(
            "each file should be a mapping whose `contexts`, `clusters` and `users` are lists of entries with a name"
        ) from None
    if merger.config is None:
        raise _UnusableError("the file does not exist")
    return merger


def _context(merger: KubeConfigMerger) -> _Context:
    content: dict[str, Any] = merger.config.value
    lists = {name: [each.value for each in content[name]] for name in ("contexts", "clusters", "users")}
    try:
        return msgspec.convert(content | lists, _Kubeconfig).context()
    except msgspec.ValidationError as error:
        raise _UnusableError(f"the file does not have the shape of a kubeconfig: {error}") from None


@contextmanager
def _loaded(merger: KubeConfigMerger) -> Iterator[Any]:
    """Load the configuration with `kubernetes`; the files of keys and certificates exist until this context ends."""
    found = Configuration()
    with _loading, tempfile.TemporaryDirectory() as folder:
        try:
            KubeConfigLoader(
                config_dict=merger.config,
                config_persister=merger.save_changes,
                config_base_path=None,
                temp_file_path=folder,
            ).load_and_set(found)
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            missing = isinstance(error, ConfigException) and str(error).startswith("File does not exist")
            raise _UnusableError(
                str(error) if missing else f"the file cannot be read ({type(error).__name__})"
            ) from None
        yield found


def _reload(merger: KubeConfigMerger) -> str | None:
    """Load the whole configuration again, and return the Authorization header."""
    with _loaded(merger) as found:
        return _header(found)


def _header(found: Any) -> str | None:
    """Return the Authorization header from `kubernetes`, which renews tokens and runs exec plugins again in time."""
    header: str | None = found.get_api_key_with_prefix(_TOKEN)
    return header


def _config(found: Any, credentials: "_Credentials | None", namespace: str | None) -> ClientConfig:
    server: str = found.host
    proxied = found.proxy and not should_bypass_proxies(server, found.no_proxy or "")
    return ClientConfig(
        server=server,
        tls=_tls(found),
        server_name=found.tls_server_name or None,
        proxy=_proxy(found.proxy) if proxied else None,
        authorization=credentials,
        namespace=namespace or "default",
        certificate=bool(found.cert_file),
    )


def _tls(found: Any) -> ssl.SSLContext | None:
    if found.host.startswith("http:"):
        return None
    context = ssl.create_default_context(cafile=found.ssl_ca_cert)
    if not found.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if found.cert_file:
        context.load_cert_chain(found.cert_file, found.key_file)
    return context


def _proxy(url: str) -> str:
    """Check that aiohttp can use a proxy; no error shows the proxy's URL, because the URL may contain a password."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        kind = parts.scheme if "://" in url else "without a scheme"
        raise _UnusableError(
            f"the proxy's URL ({kind}) should begin with http:// or https://; other proxies are not supported: "
            "change proxy-url or HTTPS_PROXY, or name the server in NO_PROXY"
        )
    return url


class _Credentials:
    """The Authorization header. If the header cannot be renewed, its last value stays in use. Thread-safe."""

    def __init__(self, header: str, ask: Callable[[], str | None]) -> None:
        self._header = header.strip()
        self._ask = ask
        self._lock = threading.Lock()

    def __call__(self) -> str:
        with self._lock:
            try:
                self._header = (self._ask() or self._header).strip()
            except Exception as error:  # noqa: BLE001 - the package's message may quote a secret, so only its type is reported
                log.warning("credentials not renewed; the previous ones stay in use", why=type(error).__name__)
            return self._header
