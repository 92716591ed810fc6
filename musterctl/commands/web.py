"""`muster web`: serves the web page on this machine to the user who starts it; in a cluster, `web.main` serves it."""

import logging
import os
import webbrowser
from contextlib import closing

import click
import structlog

from history.store import STORE_VARIABLE, HistoryStore, StoreError
from musterctl.cluster import Where, known_plane
from musterctl.options import where_options
from musterctl.plane import state
from web.serving import PORT, serve_locally


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0 chooses a free port.")
@click.option("--no-open", is_flag=True, help="Open no browser.")
@click.option(
    "-n", "--namespace", help="Show this namespace, if you cannot list all namespaces.  [default: the context's]"
)
@click.option(
    "--store",
    envvar=STORE_VARIABLE,
    show_envvar=True,
    metavar="URL",
    help="The history's store.  [default: the local control plane's]",
)
@where_options
def web(*, port: int, no_open: bool, namespace: str | None, store: str | None, where: Where) -> None:
    """Shows queues, gangs and topology in a browser.

    The server listens only on this machine, shows the objects that you are allowed to list, and runs until Ctrl-C. The
    chart serves the same pages to all users of a cluster (docs/web.md).
    """
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))

    def show(url: str) -> None:
        click.echo(f"The page is at {url}")
        if not no_open and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            webbrowser.open(url)

    with closing(where.client()) as client:
        try:
            serve_locally(client, port, namespace or client.namespace, show, history_of(where, store))
        except OSError as error:
            raise click.ClickException(
                f"cannot listen on port {port}: {error.strerror}; choose another with --port"
            ) from error


def history_of(where: Where, store: str | None) -> HistoryStore | None:
    """Return the history's store: as given, or else of the local control plane; None for another cluster."""
    folder = known_plane(where)
    url = store or (state.history_of(folder) if folder else None)
    try:
        return HistoryStore.for_serving(url) if url else None
    except StoreError as error:
        raise click.ClickException(str(error)) from error
