"""Events are recorded as kubectl shows them, and repeats are folded."""

from collections.abc import Iterator
from typing import Any

import pytest

from muster.api.kubernetes.core import CONFIG_MAPS, EVENTS, NAMESPACES
from muster.api.kubernetes.meta import parse_time
from muster.kube.client import Client
from muster.kube.events import EventWriter

pytestmark = [pytest.mark.plane, pytest.mark.api]


class Clock:
    """Seconds since the epoch, one more each time."""

    def __init__(self) -> None:
        self.now = 1_790_000_000.0

    def __call__(self) -> float:
        """Now."""
        self.now += 1
        return self.now


@pytest.fixture
def recorder(client: Client) -> Iterator[EventWriter]:
    """A recorder that writes."""
    recorder = EventWriter(client, "muster-test", wall_s=Clock())
    recorder.start()
    yield recorder
    recorder.stop()


def test_an_event_says_what_happened(client: Client, recorder: EventWriter, namespace: str, kubectl: Any) -> None:
    """With all fields that kubectl and dashboards read."""
    about = client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, namespace)
    recorder.event(about, "Warning", "Broken", "it broke")
    assert recorder.flush(10)
    (event,) = kubectl.json("get", "events", "--namespace", namespace)["items"]
    assert event["involvedObject"] == {
        "apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": namespace,
        "uid": about.metadata.uid, "resourceVersion": about.metadata.resource_version,
    }  # fmt: skip
    assert (event["type"], event["reason"], event["message"], event["count"]) == ("Warning", "Broken", "it broke", 1)
    assert event["source"]["component"] == event["reportingComponent"] == "muster-test"
    assert event["firstTimestamp"] == event["lastTimestamp"]
    assert "it broke" in kubectl("describe", "configmap", "a", "--namespace", namespace)


def test_repeats_are_one_event_that_counts(client: Client, recorder: EventWriter, namespace: str) -> None:
    """Whether they come before or after the first was written; another message is another event."""
    about = client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, namespace)
    for _ in range(2):
        recorder.event(about, "Normal", "Ticked", "tick")
    assert recorder.flush(10)
    for _ in range(3):
        recorder.event(about, "Normal", "Ticked", "tick")
    recorder.event(about, "Normal", "Ticked", "tock")
    assert recorder.flush(10)
    tick, tock = sorted(client.list(EVENTS, namespace), key=lambda event: -event.count)
    assert (tick.message, tick.count, tock.message, tock.count) == ("tick", 5, "tock", 1)
    first, last = parse_time(tick.first_timestamp), parse_time(tick.last_timestamp)
    assert first is not None
    assert last is not None
    assert last - first == 4


def test_an_event_that_expired_is_written_anew(client: Client, recorder: EventWriter, namespace: str) -> None:
    """The API server forgets events after an hour; the next repeat starts a new one."""
    about = client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, namespace)
    recorder.event(about, "Normal", "Ticked", "tick")
    assert recorder.flush(10)
    (event,) = client.list(EVENTS, namespace)
    client.delete(EVENTS, event.metadata.name, namespace)
    recorder.event(about, "Normal", "Ticked", "tick")
    assert recorder.flush(10)
    (again,) = client.list(EVENTS, namespace)
    assert again.count == 1


def test_events_of_cluster_scoped_objects_are_in_default(client: Client, recorder: EventWriter, namespace: str) -> None:
    """Where kubectl describe looks for them."""
    recorder.event(client.get(NAMESPACES, namespace), "Normal", "Seen", "hello")
    assert recorder.flush(10)
    (event,) = client.list(EVENTS, "default", field_selector=f"involvedObject.name={namespace}")
    assert event.message == "hello"


def test_a_recorder_never_fails_its_caller(client: Client, recorder: EventWriter, namespace: str) -> None:
    """An event that is refused is counted and left; the next is written; a full queue drops."""
    about = client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, namespace)
    nowhere = client.create(CONFIG_MAPS, {"metadata": {"name": "b"}}, namespace)
    nowhere.metadata.namespace = "does-not-exist"
    recorder.event(nowhere, "Normal", "Lost", "into the void")
    recorder.event(about, "Normal", "Kept", "x" * 5000)
    assert recorder.flush(10)
    (event,) = client.list(EVENTS, namespace)
    assert event.message == "x" * 1024
    about.metadata.uid = object()  # type: ignore[assignment]  # nothing that can be sent
    recorder.event(about, "Normal", "Odd", "a defect")
    recorder.event(client.get(CONFIG_MAPS, "a", namespace), "Normal", "After", "the thread lives")
    assert recorder.flush(10)
    assert "the thread lives" in {event.message for event in client.list(EVENTS, namespace)}
    full = EventWriter(client, "muster-test")
    for number in range(300):
        full.event(about, "Normal", "Flood", str(number))
    assert len(full._pending) == 250
    full.stop()
