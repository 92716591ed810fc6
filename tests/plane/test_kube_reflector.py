"""A reflector is equal to the API server, and has told every change once, whatever happens in between."""

import base64
import json
import random
import select
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from tenants import refusal

from muster.api.kubernetes.core import CONFIG_MAPS
from muster.api.kubernetes.meta import Object
from muster.kube.client import Client
from muster.kube.config import load_config
from muster.kube.errors import AlreadyExists, APIError, Backoff
from muster.kube.reads import FIRST_OBJECTS
from muster.kube.reflector import Reflector
from musterctl.plane.machine import free_ports
from musterctl.plane.plane import Plane
from musterctl.plane.process import PlaneProcess
from musterctl.plane.state import API_SERVER

pytestmark = [pytest.mark.plane, pytest.mark.api]

WaitFor = Callable[..., Any]
STREAM = 300
"""Objects that are written while the API server ends."""
FIRST = 10
"""Objects of the first page that is asked for; the next one is ten times as large."""
MANY = FIRST_OBJECTS + 50
"""Objects of three such pages, and of two of a reflector."""


class Story:
    """What the handlers of a reflector were told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.known: dict[str, Object] = {}

    def __call__(self, old: Object | None, new: Object | None) -> None:
        """Checks that the changes follow from each other, and notes them."""
        obj = new or old
        assert obj is not None
        name = obj.metadata.name
        assert self.known.get(name) is old, f"{name}: the old object is not the one that was told before"
        if new is None:
            del self.known[name]
        else:
            assert old is None or old.metadata.uid == new.metadata.uid
            self.known[name] = new
        self.told.append((name, "deleted" if new is None else "added" if old is None else "changed"))


def equal(reflector: Reflector[Object], client: Client, namespace: str) -> bool:
    """Whether the store is what a list says."""
    listed = {item.metadata.key: item for item in client.list(CONFIG_MAPS, namespace)}
    return {item.metadata.key: item for item in reflector.store.list()} == listed


def create(client: Client, namespace: str, name: str) -> None:
    """Creates an object, however often the API server must be asked."""
    for _ in range(600):
        try:
            client.create(CONFIG_MAPS, {"metadata": {"name": name}}, namespace, timeout_s=2)
        except AlreadyExists:
            return
        except APIError:
            threading.Event().wait(0.1)
        else:
            return
    pytest.fail(f"cannot create {name}")


class Relay:
    """Hands bytes on between clients and the API server at `target`, until the line is cut."""

    def __init__(self, port: int) -> None:
        self.target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.connected = True
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._ended = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends it."""
        self._ended = True
        self._thread.join(5)

    def _run(self) -> None:
        with self._listener:
            while not self._ended:
                if not self.connected:
                    self._drop(*self._pairs)
                for readable in select.select([self._listener, *self._pairs], [], [], 0.02)[0]:
                    if readable is self._listener:
                        self._accept()
                    elif readable in self._pairs:
                        self._hand_on(readable)
            self._drop(*self._pairs)

    def _accept(self) -> None:
        near = self._listener.accept()[0]
        if not self.connected:
            near.close()
            return
        try:
            far = socket.create_connection(("127.0.0.1", self.target))
        except OSError:
            near.close()
        else:
            self._pairs |= {near: far, far: near}

    def _hand_on(self, source: socket.socket) -> None:
        try:
            data = source.recv(65536)
            if data:
                self._pairs[source].sendall(data)
                return
        except OSError:
            pass  # reset by either side: the same as its end
        self._drop(source)

    def _drop(self, *ends: socket.socket) -> None:
        for end in ends:
            other = self._pairs.pop(end, None)
            if other:
                self._pairs.pop(other, None)
                other.close()
            end.close()


@pytest.fixture
def relays(plane: Plane) -> Iterator[Callable[[], Relay]]:
    """Makes lines to the API server that can be cut."""
    made: list[Relay] = []

    def make() -> Relay:
        made.append(Relay(plane.state.ports[API_SERVER]))
        return made[-1]

    yield make
    for each in made:
        each.close()


def at(plane: Plane, port: int) -> Client:
    """A client of what listens at this port as the plane's API server."""
    return Client(replace(load_config(plane.kubeconfig), server=f"https://127.0.0.1:{port}"))


@pytest.fixture
def start_anew(plane: Plane, wait_for: WaitFor) -> Iterator[Callable[[], int]]:
    """Starts another API server on the same etcd, which remembers nothing; returns its port when it is ready."""
    port = free_ports(1, plane.state.ports.values())[0]

    def command() -> list[str]:
        other = (f"--secure-port={plane.state.ports[API_SERVER]}", f"--secure-port={port}")
        return [each.replace(*other) for each in plane.commandlines.command(API_SERVER)]

    part = PlaneProcess(f"another-{API_SERVER}", plane.root, command)

    def start() -> int:
        part.start()
        with closing(at(plane, port)) as client:
            wait_for(lambda: not refusal(lambda: client.request("GET", "/readyz", timeout_s=2)), 60, "it to be ready")
        return port

    yield start
    part.kill()


def follow(client: Client, namespace: str, story: Story) -> Reflector[Object]:
    """A reflector that tells this story, once it has told what there is."""
    reflector: Reflector[Object] = Reflector(client, CONFIG_MAPS, namespace=namespace)
    reflector.add_handler(story)
    reflector.start()
    assert reflector.wait_synced(10)
    return reflector


def compact(plane: Plane) -> None:
    """Makes etcd forget everything but the present."""

    def call(path: str, content: dict[str, Any]) -> Any:
        request = urllib.request.Request(f"{plane.commandlines.url('etcd')}/v3/kv/{path}", json.dumps(content).encode())  # noqa: S310 - etcd of this test
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - as above
            return json.load(answer)

    revision = call("range", {"key": base64.b64encode(b"/").decode()})["header"]["revision"]
    call("compaction", {"revision": revision, "physical": True})


def fails(old: Object | None, new: Object | None) -> None:
    """A handler with a defect; the others must not notice."""
    raise RuntimeError(f"{old} {new}")


def test_tells_changes_as_they_happen(client: Client, namespace: str, wait_for: WaitFor) -> None:
    """SamplePod what is there, then every change, with the old object; the store is always ahead of the handlers."""
    client.create(CONFIG_MAPS, {"metadata": {"name": "before"}}, namespace)
    story = Story()
    reflector = Reflector(client, CONFIG_MAPS, namespace=namespace)
    reflector.add_handler(story)
    reflector.add_handler(fails)
    reflector.start()
    assert reflector.wait_synced(10)
    assert reflector.synced
    assert story.told == [("before", "added")]
    client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, namespace)
    client.merge_patch(CONFIG_MAPS, "a", {"data": {"x": "1"}}, namespace)
    client.delete(CONFIG_MAPS, "a", namespace)
    client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, namespace)
    wait_for(lambda: len(story.told) == 5)
    assert [what for name, what in story.told if name == "a"] == ["added", "changed", "deleted", "added"]
    assert equal(reflector, client, namespace)
    with pytest.raises(RuntimeError, match=r"before start\(\)"):
        reflector.add_handler(story)
    reflector.stop()


def test_stops_in_the_middle_of_a_watch(client: Client, namespace: str, wait_for: WaitFor) -> None:
    """At once, although nothing happens on the stream; and a second time without harm."""
    reflector = Reflector(client, CONFIG_MAPS, namespace=namespace)
    reflector.start()
    assert reflector.wait_synced(10)
    wait_for(lambda: reflector._watched)
    started = time.monotonic()
    reflector.stop()
    assert reflector._ended.is_set()
    assert time.monotonic() - started < 1
    reflector.stop()


def test_goes_on_where_a_broken_stream_ended(
    client: Client, namespace: str, relays: Callable[[], Relay], plane: Plane, wait_for: WaitFor
) -> None:
    """What happened while the line was cut is told afterwards, each change once, without another list."""
    relay, story = relays(), Story()
    reflector = Reflector(at(plane, relay.port), CONFIG_MAPS, namespace=namespace)
    reflector.add_handler(story)
    reflector.start()
    assert reflector.wait_synced(10)
    create(client, namespace, "a")
    wait_for(lambda: "a" in story.known)
    relay.connected = False
    create(client, namespace, "b")
    client.merge_patch(CONFIG_MAPS, "b", {"data": {"x": "1"}}, namespace)
    client.delete(CONFIG_MAPS, "a", namespace)
    relay.connected = True
    wait_for(lambda: len(story.told) >= 4)
    assert story.told[1:] == [("b", "added"), ("b", "changed"), ("a", "deleted")]
    assert (reflector.relists, equal(reflector, client, namespace)) == (0, True)
    reflector.stop()


@pytest.mark.slow
def test_nothing_is_lost_when_the_api_server_is_another(
    client: Client,
    namespace: str,
    relays: Callable[[], Relay],
    start_anew: Callable[[], int],
    plane: Plane,
    wait_for: WaitFor,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It ends in the middle of a stream of changes: who reads that is told each once.

    Who was cut off before, and comes with a version that is compacted, gets a 410 from a new API server: it remembers
    nothing from before its start. He is told the differences only, an object that was replaced as two changes.
    """
    for name in ("stays", "changes", "goes", "replaced"):
        create(client, namespace, name)
    early, late = relays(), relays()
    cut, near, writer = Story(), Story(), at(plane, late.port)
    returning = follow(at(plane, early.port), namespace, cut)
    staying = follow(at(plane, late.port), namespace, near)
    for each in (returning, staying):
        each._backoff = Backoff(0.1, 0.5, random.random)  # soon there again
    told = len(cut.told)
    early.connected = False
    client.merge_patch(CONFIG_MAPS, "changes", {"data": {"x": "1"}}, namespace)
    for name in ("goes", "replaced"):
        client.delete(CONFIG_MAPS, name, namespace)
    create(client, namespace, "replaced")
    names = [f"n{number}" for number in range(STREAM)]
    with ThreadPoolExecutor(4) as pool:
        written = pool.map(lambda name: create(writer, namespace, name), names)
        wait_for(lambda: sum(name in near.known for name in names) > STREAM // 6)
        late.connected = False
        compact(plane)
        late.target = early.target = start_anew()
        late.connected = True
        list(written)
    wait_for(lambda: equal(staying, client, namespace), what="all that was written")
    assert sorted(name for name, what in near.told if what == "added" and name in names) == sorted(names)
    early.connected = True
    wait_for(lambda: returning.relists == 1 and equal(returning, client, namespace), what="another list")
    assert "410" in capsys.readouterr().out
    missed = [("changes", "changed"), ("goes", "deleted"), ("replaced", "added"), ("replaced", "deleted")]
    assert sorted(cut.told[told:]) == sorted([*missed, *((name, "added") for name in names)])
    create(client, namespace, "later")
    wait_for(lambda: ("later", "added") in cut.told and ("later", "added") in near.told)
    returning.stop()
    staying.stop()


def test_many_objects_come_in_pages(client: Client, namespace: str) -> None:
    """All of them once, in growing pages of one resource version; and a reflector holds them all."""
    names = {f"n{number}" for number in range(MANY)}
    for name in names:
        create(client, namespace, name)
    pages = list(client.pages(CONFIG_MAPS, namespace, first=FIRST))
    assert [len(page) for page in pages] == [FIRST, 10 * FIRST, MANY - 11 * FIRST]
    assert len({page.metadata.resource_version for page in pages}) == 1
    listed = [item.metadata.name for page in pages for item in page]
    assert (set(listed), len(listed)) == (names, MANY)
    reflector = Reflector(client, CONFIG_MAPS, namespace=namespace)
    reflector.start()
    assert reflector.wait_synced(30)
    assert len(reflector.store) == MANY
    reflector.stop()


def test_a_kind_that_may_be_absent_is_one_of_which_there_are_none(client: Client, wait_for: WaitFor) -> None:
    """An API server of another version does not know it; of any other kind that is a failure."""
    unknown = replace(CONFIG_MAPS, group="resource.k8s.io", version="v9", plural="resourceslices")
    free, strict = Reflector(client, unknown, may_be_absent=True), Reflector(client, unknown)
    free.start()
    strict.start()
    try:
        wait_for(lambda: free.synced)
        assert list(free.store.keys()) == []
        assert not strict.synced
    finally:
        free.stop()
        strict.stop()
