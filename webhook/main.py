"""The webhook process: arguments in, served routes out."""

import argparse
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from muster.kube.client import Client
from muster.process import logs
from muster.process.health import Check, Health, StatusServer
from muster.process.server import serve
from muster.runtime import registry
from webhook.app import create_app, routes
from webhook.lookup import Cached, ClusterLookups

THREADS = 4


def main(argv: Sequence[str] | None = None) -> None:
    """Serves until SIGTERM."""
    arguments = _parser().parse_args(argv)
    logs.configure("webhook", arguments.log_level)
    client = Client.load(arguments.kubeconfig, user_agent="muster-webhook")
    cluster = ClusterLookups(client)
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

    serve(
        create_app(routes(cluster.lookups, registry.framework(), marks=arguments.mark_pods)),
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
    parser.add_argument("--log-level", default="info", choices=logs.LEVELS)
    return parser
