"""The extender's loop compares new affinities with pods between its other callbacks, and tells when that is done."""

import asyncio
from typing import Any

import msgspec
import pytest

from extender import cluster as module
from extender.cluster import Cluster
from muster.api.kubernetes.core import Pod
from muster.kube.client import Client
from muster.kube.config import Config
from muster.kube.reflector import Reflector

pytestmark = pytest.mark.anyio

LONGEST_S = 20.0
NO_SERVER = "http://127.0.0.1:1"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PODS = 100


def pod(name: str, terms: list[dict[str, Any]] | None = None) -> Pod:
    """A pod of Muster's."""
    meta = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1"}
    spec = {"schedulerName": "muster", "affinity": {"podAntiAffinity": {REQUIRED: terms or []}}}
    return msgspec.convert({"metadata": meta, "spec": spec}, Pod)


async def test_new_affinities_are_compared_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ready once those of its first pods are, and the planner is woken."""
    monkeypatch.setattr(module, "LOOKS", 10)
    monkeypatch.setattr(module, "SLICE_LOOKS", 500)
    monkeypatch.setattr(Reflector, "synced", True)
    woken, slices = asyncio.Event(), 0
    client = Client(Config(NO_SERVER), loop=asyncio.get_running_loop())
    cluster = Cluster(client, wake=woken.set)
    state = cluster.state
    for number in range(PODS):
        state.on_pod(None, pod(f"p{number}"))
    state.on_pod(None, pod("asks", [{"topologyKey": "zone", "labelSelector": {}}]))
    assert not cluster.synced
    assert cluster.not_ready() == "affinities are still compared with the pods of the cluster"
    assert not woken.is_set()
    compare = state.compare

    def counted(looks: int) -> bool:
        nonlocal slices
        slices += 1
        return compare(looks)

    monkeypatch.setattr(state, "compare", counted)
    async with asyncio.timeout(LONGEST_S):
        await woken.wait()
    assert cluster.synced
    assert cluster.not_ready() is None
    assert all(len(record.cls.matched) == 1 for record in state.pods.values())
    client.close()
    assert slices > 1
