"""The webhook process: builds what the routes need, fills the caches, and serves until it is told to end."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import structlog

from muster.kube.client import Client
from muster.kube.errors import ConfigurationError
from muster.process import logs, tracing
from muster.process.debug import Debug
from muster.process.health import Check, Health, StatusServer
from muster.process.server import serve
from muster.runtime import registry
from webhook.app import Reviews, create_app, routes
from webhook.config import AdmissionConfig, load
from webhook.lookup import Cached, ClusterLookups
from webhook.options import Options, parse

log = structlog.get_logger(__name__)

THREADS = 4


def main(argv: Sequence[str] | None = None) -> int:
    """Serves until SIGTERM; gives the exit code."""
    options = parse(argv)
    logs.configure("webhook", options.log_level)
    try:
        tracing.check(options.traces_endpoint)
        config = load(options.config) if options.config else AdmissionConfig()
        client = Client.load(options.kubeconfig, user_agent="muster-webhook")
    except (ConfigurationError, ValueError) as error:
        log.error("cannot start", why=str(error))  # noqa: TRY400 - the sentence says it; a traceback would hide it
        return 2
    _serve(options, config, ClusterLookups(client))
    return 0


def _serve(options: Options, config: AdmissionConfig, cluster: ClusterLookups) -> None:
    health = Health()
    for cached in cluster.caches:
        health.add_check(cached.kind, _synced(cached))
    debug = Debug("webhook", options, lambda: {cached.kind: cached.reflector.size for cached in cluster.caches})
    status = StatusServer(options.status_port, health, host=options.host, debug=debug)

    def start() -> None:
        for cached in cluster.caches:
            cached.reflector.start()
        status.start()
        tracing.configure("webhook", options.traces_endpoint)

    def stop() -> None:
        status.stop()
        with ThreadPoolExecutor(len(cluster.caches)) as pool:  # each waits for the end of its watch
            list(pool.map(lambda cached: cached.reflector.stop(), cluster.caches))

    handlers = routes(
        cluster.lookups,
        registry.framework(),
        marks=options.mark_pods,
        groups=config.resource_groups,
        target=options.train_jobs_as,
    )
    serve(
        create_app(handlers),
        host=options.host,
        port=options.port,
        threads=THREADS,
        name="muster-webhook",
        cert_file=options.cert_file,
        key_file=options.key_file,
        client_ca_file=options.client_ca_file or None,
        on_worker_start=start,
        on_worker_stop=stop,
        direct=Reviews(handlers),
    )


def _synced(cached: Cached[Any]) -> Check:
    return lambda: None if cached.reflector.synced else "not listed yet"
