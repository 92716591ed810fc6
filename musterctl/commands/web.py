"""`muster web`: the page, on this machine for who starts it, or in the cluster for everybody with a token."""

import logging
import os
import webbrowser
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import structlog

from history.store import Store, StoreError
from muster.api.names import SYSTEM_NAMESPACE
from muster.kube.config import load_config
from muster.kube.errors import ConfigurationError
from muster.process.logs import configure
from musterctl.cluster import Where, known_plane
from musterctl.options import where_options
from musterctl.plane import state
from musterctl.records import STORE_VARIABLE
from musterctl.web.serving import ForAll, serve_for_all, serve_locally

PORT = 8400
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0 takes a free one.")
@click.option("--no-open", is_flag=True, help="Open no browser.")
@click.option("-n", "--namespace", help="Show this one, where you may not list all.  [default: that of the context]")
@click.option("--in-cluster", is_flag=True, help="Serve everybody, each with a token of his own; over TLS.")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --in-cluster: the address to listen on.")
@click.option("--cert-file", type=_FILE, help="With --in-cluster: the certificate (PEM).")
@click.option("--key-file", type=_FILE, help="With --in-cluster: its key (PEM).")
@click.option("--status-port", type=int, default=0, help="With --in-cluster: /healthz, /readyz and /metrics.")
@click.option("--forwarded-tokens", is_flag=True, help="With --in-cluster: oauth2-proxy in front sends the tokens.")
@click.option("--system-namespace", default=SYSTEM_NAMESPACE, help="With --in-cluster: where Muster is installed.")
@click.option(
    "--store",
    envvar=STORE_VARIABLE,
    show_envvar=True,
    metavar="URL",
    help="The history's store.  [default: the plane's]",
)
@where_options
def web(
    *, port: int, no_open: bool, namespace: str | None, in_cluster: bool, store: str | None, where: Where, **how: Any
) -> None:
    """Shows queues, gangs and topology in a browser.

    It listens on this machine only, and shows what your kubeconfig may list, until Ctrl-C. The chart serves the same
    pages to everybody in the cluster (docs/web.md).
    """
    if in_cluster:
        _for_all(where, port, history=_opened(store) if store else None, **how)
        return
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))

    def tell(url: str) -> None:
        click.echo(f"The page is at {url}")
        if not no_open and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            webbrowser.open(url)

    with closing(where.client()) as client:
        try:
            serve_locally(client, port, namespace or client.namespace, tell, history_of(where, store))
        except OSError as error:
            raise click.ClickException(
                f"cannot listen on port {port}: {error.strerror}; --port takes another"
            ) from error


def history_of(where: Where, store: str | None) -> Store | None:
    """Return the store that is named, else that of a local plane; None for another cluster."""
    folder = known_plane(where)
    url = store or (state.history_of(folder) if folder else None)
    return _opened(url) if url else None


def _opened(url: str) -> Store:
    try:
        return Store.for_serving(url)
    except StoreError as error:
        raise click.ClickException(str(error)) from error


def _for_all(where: Where, port: int, *, cert_file: Path | None, key_file: Path | None, **how: Any) -> None:
    if cert_file is None or key_file is None:
        raise click.UsageError("--in-cluster takes --cert-file and --key-file: tokens do not travel in the clear")
    configure("web")
    try:
        config = load_config(where.given or "")
        serve_for_all(config, ForAll(port=port, cert_file=cert_file, key_file=key_file, **how))
    except (ConfigurationError, OSError) as error:
        raise click.ClickException(str(error)) from error
