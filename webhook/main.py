"""The webhook process: arguments in, served routes out."""

import argparse
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import structlog

from muster.kube.client import Client
from muster.kube.errors import ConfigurationError
from muster.process import logs
from muster.process.health import Check, Health, StatusServer
from muster.process.server import serve
from muster.runtime import registry
from webhook.app import create_app, routes
from webhook.config import AdmissionConfig, load
from webhook.lookup import Cached, ClusterLookups

log = structlog.get_logger(__name__)

THREADS = 4


def main(argv: Sequence[str] | None = None) -> int:
    """Serves until SIGTERM; gives the exit code."""
    arguments = _parser().parse_args(argv)
    logs.configure("webhook", arguments.log_level)
    try:
        config = load(arguments.config) if arguments.config else AdmissionConfig()
        client = Client.load(arguments.kubeconfig, user_agent="muster-webhook")
    except (ConfigurationError, ValueError) as error:
        log.error("cannot start", why=str(error))  # noqa: TRY400 - the sentence says it; a traceback would hide it
        return 2
    _serve(arguments, config, ClusterLookups(client))
    return 0


def _serve(arguments: argparse.Namespace, config: AdmissionConfig, cluster: ClusterLookups) -> None:
    health = Health()
    for cached in cluster.caches:
        health.add_check(cached.kind, _synced(cached))
    status = StatusServer(arguments.status_port, health, host=arguments.host)

    def start() -> None:
        for cached in cluster.caches:
            cached.reflector.start()
        status.start()

    def stop() -> None:
        status.stop()
        with ThreadPoolExecutor(len(cluster.caches)) as pool:  # each waits for the end of its watch
            list(pool.map(lambda cached: cached.reflector.stop(), cluster.caches))

    handlers = routes(cluster.lookups, registry.framework(), marks=arguments.mark_pods, groups=config.resource_groups)
    serve(
        create_app(handlers),
        host=arguments.host,
        port=arguments.port,
        threads=THREADS,
        name="muster-webhook",
        cert_file=arguments.cert_file,
        key_file=arguments.key_file,
        on_worker_start=start,
        on_worker_stop=stop,
    )


def _synced(cached: Cached[Any]) -> Check:
    return lambda: None if cached.reflector.synced else "not listed yet"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="webhook", description="Muster's admission webhook.")
    parser.add_argument("--kubeconfig", default="", help="how to reach the API server; empty means in-cluster")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, required=True, help="HTTPS port of the webhook")
    parser.add_argument("--cert-file", required=True, help="serving certificate (PEM); a new file is taken up at once")
    parser.add_argument("--key-file", required=True, help="its private key (PEM)")
    parser.add_argument("--status-port", type=int, required=True, help="HTTP port of /metrics, /healthz and /readyz")
    parser.add_argument(
        "--mark-pods", action="store_true", help="mark the pods that Muster places, for a scheduler shared with others"
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="resource groups (YAML); it is read once, at the start"
    )
    parser.add_argument("--log-level", default="info", choices=logs.LEVELS)
    return parser
