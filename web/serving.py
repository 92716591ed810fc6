"""Start and end of the web page's server: on loopback for the user who starts it, or in a cluster for all users."""

import secrets
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from extender.explain.clusterdump import ClusterDump
from extender.explain.pools import pools_of
from extender.planner.api import published_inputs, report_of
from history.read import namespaces
from history.store import HistoryStore, StoreError
from muster.api.base import prepare
from muster.api.muster.configuration import PUBLISHED, name_for
from muster.api.muster.pools import DEFAULT_POOL
from muster.api.muster.usage import read_usage
from muster.api.names import SYSTEM_NAMESPACE, USAGE
from muster.kube.client import Client
from muster.kube.config import ClientConfig
from muster.kube.errors import APIError, ConfigurationError, NotFound
from muster.process import serve
from muster.process.health import Debug, Health, StatusServer
from muster.process.tls import Files, ServerTLS, send_end
from web.app import make_app
from web.caches import PageCaches
from web.callers import NAMESPACES, TokenCallers
from web.local import KEY, LocalCallers, reach_of
from web.pages.topology import summed
from web.site import Site

log = structlog.get_logger()
PORT: Final = 8400
"""Default address of the page."""
_HERE: Final = "127.0.0.1"
_CONNECTIONS: Final = 48
_POLL_S: Final = 0.2


def serve_locally(
    client: Client, port: int, namespace: str, show: Callable[[str], None], history: HistoryStore | None = None
) -> None:
    """Serve the page on loopback until SIGINT or SIGTERM; call `show` with the URL.

    Raises OSError if the port is not available.
    """
    prepare()
    reach = reach_of(client, namespace)
    caches = PageCaches(client, reach, namespace)
    key = secrets.token_urlsafe(32)
    listening = serve.listen(_HERE, port)
    port = listening.getsockname()[1]
    callers = LocalCallers(client, key, port, namespace, reach)
    site = Site(
        caches, callers, history=history, prepare=lambda dump: put_configurations(dump, client, SYSTEM_NAMESPACE)
    )
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: stopped.set())
    caches.start()
    _warm(site)
    server = serve.Threaded("web", make_app(site, on_loopback=True), [listening])
    server.start()
    try:
        show(f"http://localhost:{port}/?{KEY}={key}")
        stopped.wait()
    finally:
        site.close()
        server.stop()
        caches.stop()


@dataclass(frozen=True)
class ForAll:
    """Configuration of the page in a cluster."""

    host: str
    port: int
    status_port: int
    cert_file: Path
    key_file: Path
    forwarded_tokens: bool
    """True if a proxy sends the tokens of signed-in users."""
    system_namespace: str
    """Namespace in which Muster is installed."""
    history: HistoryStore | None
    """The store of the history; None if there is no history."""


def serve_for_all(config: ClientConfig, how: ForAll) -> None:
    """Serve the page over TLS until SIGTERM.

    Raises ConfigurationError for credentials with which the API server could not distinguish the users.
    """
    if config.certificate:
        raise ConfigurationError(
            "the page would act for its users with the certificate of this kubeconfig: "
            "use a service account's token (in a pod, leave out --kubeconfig)"
        )
    client = Client(config, user_agent="muster-web", connections=_CONNECTIONS)
    caches = PageCaches(client)
    callers = TokenCallers(client, config, caches, forwarded=how.forwarded_tokens)
    site = Site(
        caches,
        callers,
        history=how.history,
        prepare=lambda dump: put_configurations(dump, client, how.system_namespace),
    )
    callers.past = lambda: past_of(site)
    health = Health()
    health.add_check("caches", caches.not_ready)
    debug = Debug("web", how, caches.sizes)
    status = StatusServer(how.status_port, health, host=how.host, debug=debug)
    tls = ServerTLS(Files(how.cert_file, how.key_file))
    send_end(tls)

    def start() -> None:
        status.start()
        caches.start()
        _warm(site)

    def stop() -> None:
        callers.close()
        caches.stop()
        status.stop()

    serve.run(
        make_app(site), host=how.host, port=how.port, on_start=start, on_stopping=site.close, on_stop=stop, tls=tls
    )


def _warm(site: Site) -> None:
    """Start computing the slow values once the caches are filled."""

    def make() -> None:
        while site.not_ready() and not site.closing:
            time.sleep(_POLL_S)
        if not site.closing:
            warm(site)

    threading.Thread(target=make, name="warm", daemon=True).start()


def past_of(site: Site) -> list[str]:
    """Return the namespaces in the history; empty if the history cannot be read.

    The pages of the history report the failure themselves.
    """
    try:
        return namespaces(site.history, limit=NAMESPACES) if site.history is not None else []
    except StoreError as error:
        log.warning("the namespaces in the history cannot be read", why=str(error))
        return []


def put_configurations(dump: ClusterDump, client: Client, namespace: str) -> None:
    """Add the inputs of the node pools' extenders to a dump; defaults replace unreadable or unusable inputs.

    The usage of queues is added, too, because budgets limit the usage.
    """
    try:
        dump.usage = read_usage(client.get(PUBLISHED, USAGE, namespace).data or {})
    except NotFound:
        pass
    except (APIError, ValueError) as error:
        log.warning("the page shows budgets of queues as unused", configmap=USAGE, why=str(error))
    for pool in pools_of(dump):
        try:
            published = client.get(PUBLISHED, name_for(pool), namespace)
        except NotFound:
            continue
        except APIError as error:
            log.warning("the extender's inputs cannot be read; the defaults apply here", pool=pool, why=str(error))
            continue
        text = published.text or ""
        if text and report_of(text).errors:
            log.warning("the extender runs with a different configuration than this process", pool=pool)
            text = ""
        if pool == DEFAULT_POOL:
            dump.scheduler_config = text
        else:
            dump.pool_configs[pool] = text
        if published.suspects is not None:
            dump.suspects[pool] = published.suspects
        dump.inputs[pool], problems = published_inputs(published.data or {})
        for problem in problems:
            log.warning("published inputs of the planner cannot be used", pool=pool, why=problem)


def warm(site: Site) -> None:
    """Compute rows of gangs, the nodes' free capacity, a planner cycle and forecasts, once the caches are filled."""
    site.caches.warm()
    summed(site)
    site.explainer.warm()
    site.forecasts.with_forecasts(())
