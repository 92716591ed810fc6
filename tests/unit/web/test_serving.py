"""The page on loopback: it answers its owner while it runs, and ends as it is told."""

import os
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import pytest
from answering_server import FORBIDDEN, Server
from loopback_server import serving

from muster.kube.client import Client
from muster.kube.config import ClientConfig
from muster.kube.errors import ConfigurationError
from web import serving as web_serving
from web.serving import ForAll, serve_for_all, serve_locally


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """A client of one who may list nothing."""
    server = Server()
    server.other = FORBIDDEN
    review = {
        "metadata": {},
        "spec": {"resourceAttributes": {"verb": "list", "resource": "x"}},
        "status": {"allowed": False},
    }
    server.answers["POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews"] = (201, review, [])
    before = [(number, signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGINT)]
    with serving(server.handler(), tmp_path / "kubeconfig"):
        yield Client.load(tmp_path / "kubeconfig")
    for number, handler in before:
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_told_to_end(client: Client, number: signal.Signals) -> None:
    """At an address with a key, which nobody else has."""
    told: list[str] = []

    def tell(url: str) -> None:
        told.append(url)
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with pytest.raises(urllib.error.HTTPError, match="403"):  # the key is good, and its owner may list nothing
            browser.open(url)
        os.kill(os.getpid(), number)

    serve_locally(client, 0, "team", tell)
    (url,) = told
    assert url.startswith("http://localhost:")
    assert len(url.partition("/?key=")[2]) > 40
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(url)  # noqa: S310 - on loopback


def test_users_are_not_served_with_a_certificate() -> None:
    """The page would act for all of them with its own rights."""
    config = ClientConfig("https://127.0.0.1:1", certificate=True)
    with pytest.raises(ConfigurationError, match="use a service account's token"):
        serve_for_all(config, cast("ForAll", None))


def test_slow_values_are_computed_once_the_caches_are_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before that they would be those of an empty cluster."""
    filled, warmed, left = [False, False, True], Event(), list[Any]()
    site: Any = SimpleNamespace(closing=False, not_ready=lambda: not filled.pop(0))

    def warm(_: Any) -> None:
        left.extend(filled)
        warmed.set()

    monkeypatch.setattr(web_serving, "_POLL_S", 0.0)
    monkeypatch.setattr(web_serving, "warm", warm)
    web_serving._warm(site)
    assert warmed.wait(60)
    assert left == []
