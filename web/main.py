"""The web page's process in a cluster, which serves all users, each with their own token, until SIGTERM."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import structlog

from history.store import STORE_VARIABLE, HistoryStore, StoreError
from muster.api.names import SYSTEM_NAMESPACE
from muster.kube.config import load_config
from muster.kube.errors import ConfigurationError
from muster.process.logs import configure
from web.serving import PORT, ForAll, serve_for_all

log = structlog.get_logger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM; return the exit code."""
    options = vars(parser().parse_args(argv))
    kubeconfig, url = options.pop("kubeconfig"), os.environ.get(STORE_VARIABLE)
    configure("web")
    try:
        history = HistoryStore.for_serving(url) if url else None
        serve_for_all(load_config(kubeconfig), ForAll(history=history, **options))
    except (ConfigurationError, StoreError, OSError) as error:
        log.error("cannot start", why=str(error))  # noqa: TRY400 - the error text suffices; a traceback would hide it
        return 2
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line; its arguments are the fields of `ForAll` except the history."""
    found = argparse.ArgumentParser(
        prog="web",
        description="Muster's web page for all users with a token. It accepts only TLS connections, to protect tokens.",
        epilog=f"{STORE_VARIABLE} names the store of the history; without it there is none.",
        allow_abbrev=False,
    )
    found.add_argument("--kubeconfig", default="", help="kubeconfig of the API server; empty: in-cluster")
    found.add_argument("--host", default="127.0.0.1", help="the address to listen on [default: %(default)s]")
    found.add_argument("--port", type=int, default=PORT, help="[default: %(default)s]")
    found.add_argument("--status-port", type=int, default=0, help="/healthz, /readyz and /metrics; 0: a free port")
    found.add_argument("--cert-file", type=Path, required=True, help="the certificate (PEM)")
    found.add_argument("--key-file", type=Path, required=True, help="its key (PEM)")
    found.add_argument(
        "--forwarded-tokens", action="store_true", help="an oauth2-proxy in front of the page sends the tokens"
    )
    found.add_argument("--system-namespace", default=SYSTEM_NAMESPACE, help="where Muster is installed")
    return found
