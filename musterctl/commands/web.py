"""`muster web`: the page, on this machine for who starts it, or in the cluster for everybody with a token."""

import os
import secrets
import signal
import threading
import webbrowser
from contextlib import closing

import click

from muster.kube.client import Client
from muster.process import serve
from musterctl.cluster import Where
from musterctl.options import where_options
from musterctl.web.app import make_app
from musterctl.web.caches import Caches
from musterctl.web.local import KEY, LocalCallers, reach_of
from musterctl.web.security import LOOPBACK
from musterctl.web.site import Site

PORT = 8400


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0 takes a free one.")
@click.option("--no-open", is_flag=True, help="Open no browser.")
@click.option("-n", "--namespace", help="Show this one, where you may not list all.  [default: that of the context]")
@where_options
def web(*, port: int, no_open: bool, namespace: str | None, where: Where) -> None:
    """Shows queues, gangs and their history in a browser.

    It listens on this machine only, and shows what your kubeconfig may list. It ends with Ctrl-C.
    """
    with closing(where.client()) as client:
        _serve_locally(client, port, namespace or client.namespace, browser=not no_open)


def _serve_locally(client: Client, port: int, namespace: str, *, browser: bool) -> None:
    reach = reach_of(client, namespace)
    caches = Caches(client, reach, namespace)
    key = secrets.token_urlsafe(32)
    try:
        listening = serve.listen("127.0.0.1", port)
    except OSError as error:
        raise click.ClickException(
            f"port {port} cannot be had: {error.strerror}; choose another with --port"
        ) from error
    port = listening.getsockname()[1]
    site = Site(caches, LocalCallers(client, key, port, namespace, reach))
    told = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: told.set())
    caches.start()
    server = serve.Threaded("web", make_app(site, hosts=LOOPBACK), [listening])
    server.start()
    url = f"http://localhost:{port}/?{KEY}={key}"
    click.echo(f"The page is at {url}")
    if browser and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        webbrowser.open(url)
    try:
        told.wait()
    finally:
        site.close()
        server.stop()
        caches.stop()
