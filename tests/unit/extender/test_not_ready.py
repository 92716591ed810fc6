"""The extender's caches say which kinds they lack."""

import asyncio

import pytest

from extender.cluster import Cluster
from muster.kube import readable
from muster.kube.client import Client
from muster.kube.config import Config

pytestmark = pytest.mark.anyio

LONGEST_S = 20.0
NO_SERVER = "http://127.0.0.1:1"


async def test_the_kinds_that_were_never_read_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """And why, since when, once that is longer than an API server needs to restart."""
    monkeypatch.setattr(readable, "PATIENCE_S", 0.0)
    client = Client(Config(NO_SERVER), loop=asyncio.get_running_loop())
    cluster = Cluster(client, wake=lambda: None)
    assert cluster.not_ready() == f"the caches are not filled yet: {', '.join(cluster.sizes())}"
    cluster.start()
    async with asyncio.timeout(LONGEST_S):
        while "resourceclaims cannot be read since " not in (cluster.not_ready() or ""):  # noqa: ASYNC110 - nothing else says it
            await asyncio.sleep(0.01)
    cluster.stop()
    client.close()
