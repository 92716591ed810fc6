"""The process starts all its parts, and ends them."""

import asyncio
import threading
from collections import Counter
from pathlib import Path

import pytest

from extender.configfile import ConfigFile
from extender.main import Extender
from extender.settings import ExtenderOptions, ExtenderSettings

pytestmark = pytest.mark.anyio

KUBECONFIG = """
current-context: none
contexts: [{name: none, context: {cluster: none, user: none}}]
clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: none, user: {}}]
"""
THREADS = {"planner", "config-file", "recorder", "events", "status"}
WATCHES = {f"reflector-{kind}" for kind in ("leases", "nodes", "podgroups", "configmaps")}


def running() -> Counter[str]:
    """The names of threads and of watches: other tests of the process may have threads of the same names."""
    watches = (task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("reflector-"))
    return Counter([*(thread.name for thread in threading.enumerate()), *watches])


async def test_the_process_starts_all_parts_and_ends_them(tmp_path: Path) -> None:
    """Without an API server it waits; held calls are let go before it ends."""
    kubeconfig, config = tmp_path / "kubeconfig", tmp_path / "config.yaml"
    kubeconfig.write_text(KUBECONFIG)
    config.write_text("actions: allocate\n")
    settings = ExtenderSettings(record_folder=str(tmp_path), config=str(config), status_port=0)
    options = ExtenderOptions(
        kubeconfig=str(kubeconfig), host="127.0.0.1", status_host="127.0.0.1", identity_prefix="x_", settings=settings
    )
    before = running()
    extender = Extender(options, ConfigFile(config), asyncio.get_running_loop())
    cancelled: list[int] = []
    extender._barrier.cancel_all = lambda: cancelled.append(1)  # type: ignore[method-assign]
    extender.start()
    await asyncio.sleep(0)
    assert set(running() - before) >= THREADS | WATCHES
    assert extender._settling is not None
    extender.let_go()
    assert cancelled == [1]
    await asyncio.to_thread(extender.stop)
    async with asyncio.timeout(20):
        while any(name.startswith("reflector-") for name in running()):  # noqa: ASYNC110 - nothing else says it
            await asyncio.sleep(0.01)
    assert extender._settling.cancelled()
    assert not THREADS & set(running() - before)
    assert extender._sizes()["held binds"] == 0
    assert (extender.pages(), extender._active(), extender._last_session()) == ({}, False, None)
