"""While the API server is frozen, calls end in time, nobody leads, and events wait."""

import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from muster.api.kubernetes.core import CONFIG_MAPS, EVENTS
from muster.kube.errors import Unreachable
from muster.kube.events import EventWriter
from muster.kube.lease import Elector

pytestmark = [pytest.mark.plane, pytest.mark.long]


def test_a_frozen_api_server_stops_leaders_and_loses_no_events(
    fresh_plane: Callable[..., Any], wait_for: Callable[..., Any]
) -> None:
    """A call gives up at its limit; the leader's deadline counts although its request hangs; all goes on afterwards."""
    plane = fresh_plane(("etcd", "kube-apiserver"))
    client = plane.client()
    story: list[str] = []
    elector = Elector(
        client, "default", "lease", "me", lease_duration_s=3, renew_deadline_s=2, retry_period_s=0.3,
        on_started=lambda: story.append("on"), on_stopped=lambda: story.append("off"),
    )  # fmt: skip
    recorder = EventWriter(client, "muster-test")
    about = client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, "default")
    elector.start()
    recorder.start()
    wait_for(lambda: elector.leading)
    plane.part("kube-apiserver").signal(signal.SIGSTOP)
    started = time.monotonic()
    with pytest.raises(Unreachable, match="no response within"):
        client.get(CONFIG_MAPS, "a", "default", timeout_s=0.2)
    with pytest.raises(Unreachable, match="no response within"):
        client.request("GET", "/readyz", timeout_s=0.2)
    assert time.monotonic() - started < 2
    recorder.event(about, "Normal", "Waited", "for the API server")
    wait_for(lambda: not elector.leading, timeout_s=3)
    wait_for(lambda: story == ["on", "off"], timeout_s=5)
    plane.part("kube-apiserver").signal(signal.SIGCONT)
    wait_for(lambda: elector.leading)
    assert story == ["on", "off", "on"]
    assert recorder.flush(30)
    (event,) = client.list(EVENTS, "default", field_selector="involvedObject.name=a")
    assert (event.message, event.count) == ("for the API server", 1)
    recorder.stop()
    elector.stop()
    client.close()
