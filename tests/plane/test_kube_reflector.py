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
from dataclasses import replace
from typing import Any

import pytest

from muster.api.kubernetes.core import CONFIG_MAPS, NAMESPACES
from muster.api.kubernetes.meta import Object
from muster.kube.client import Client
from muster.kube.config import load_config
from muster.kube.errors import AlreadyExists, APIError, Backoff
from muster.kube.reflector import Reflector
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane

WaitFor = Callable[..., Any]


@pytest.fixture(scope="module")
def own_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """Etcd and an API server that these tests may disturb."""
    with Plane(tmp_path_factory.mktemp("plane"), ("etcd", "kube-apiserver"), bound=True) as plane:
        yield plane


@pytest.fixture
def client(own_plane: Plane) -> Iterator[Client]:
    """A client of that plane."""
    client = own_plane.client()
    yield client
    client.close()


@pytest.fixture
def home(client: Client, request: pytest.FixtureRequest) -> str:
    """A namespace for this test."""
    name: str = request.node.name.replace("_", "-")[:60].rstrip("-")
    client.create(NAMESPACES, {"metadata": {"name": name}})
    return name


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
    """Hands bytes on between clients and the API server, until the line is cut."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
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
            far = socket.create_connection(self._target)
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
def relay(own_plane: Plane) -> Iterator[Relay]:
    """A line to the API server that can be cut."""
    relay = Relay(own_plane.state.ports["kube-apiserver"])
    yield relay
    relay.close()


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


def test_tells_changes_as_they_happen(client: Client, home: str, wait_for: WaitFor) -> None:
    """SamplePod what is there, then every change, with the old object; the store is always ahead of the handlers."""
    client.create(CONFIG_MAPS, {"metadata": {"name": "before"}}, home)
    story = Story()
    reflector = Reflector(client, CONFIG_MAPS, namespace=home)
    reflector.add_handler(story)
    reflector.add_handler(fails)
    reflector.start()
    assert reflector.wait_synced(10)
    assert reflector.synced
    assert story.told == [("before", "added")]
    client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, home)
    client.merge_patch(CONFIG_MAPS, "a", {"data": {"x": "1"}}, home)
    client.delete(CONFIG_MAPS, "a", home)
    client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, home)
    wait_for(lambda: len(story.told) == 5)
    assert [what for name, what in story.told if name == "a"] == ["added", "changed", "deleted", "added"]
    assert equal(reflector, client, home)
    with pytest.raises(RuntimeError, match=r"before start\(\)"):
        reflector.add_handler(story)
    reflector.stop()


def test_stops_in_the_middle_of_a_watch(client: Client, home: str, wait_for: WaitFor) -> None:
    """At once, although nothing happens on the stream; and a second time without harm."""
    reflector = Reflector(client, CONFIG_MAPS, namespace=home)
    reflector.start()
    assert reflector.wait_synced(10)
    wait_for(lambda: reflector._watched)
    started = time.monotonic()
    reflector.stop()
    assert reflector._ended.is_set()
    assert time.monotonic() - started < 1
    reflector.stop()


def test_goes_on_where_a_broken_stream_ended(
    client: Client, home: str, relay: Relay, own_plane: Plane, wait_for: WaitFor
) -> None:
    """What happened while the line was cut is told afterwards, each change once, without another list."""
    config = load_config(own_plane.kubeconfig)
    far = Client(replace(config, server=f"https://127.0.0.1:{relay.port}"))
    story = Story()
    reflector = Reflector(far, CONFIG_MAPS, namespace=home)
    reflector.add_handler(story)
    reflector.start()
    assert reflector.wait_synced(10)
    create(client, home, "a")
    wait_for(lambda: "a" in story.known)
    relay.connected = False
    create(client, home, "b")
    client.merge_patch(CONFIG_MAPS, "b", {"data": {"x": "1"}}, home)
    client.delete(CONFIG_MAPS, "a", home)
    relay.connected = True
    wait_for(lambda: len(story.told) >= 4)
    assert story.told[1:] == [("b", "added"), ("b", "changed"), ("a", "deleted")]
    assert (reflector.relists, equal(reflector, client, home)) == (0, True)
    reflector.stop()


def test_lists_again_when_its_version_was_compacted(
    client: Client,
    home: str,
    relay: Relay,
    own_plane: Plane,
    wait_for: WaitFor,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The watch answers 410; only the differences are told, an object that was replaced as two changes."""
    for name in ("stays", "changes", "goes", "replaced"):
        create(client, home, name)
    config = load_config(own_plane.kubeconfig)
    far = Client(replace(config, server=f"https://127.0.0.1:{relay.port}"))
    story = Story()
    reflector = Reflector(far, CONFIG_MAPS, namespace=home)
    reflector.add_handler(story)
    reflector.start()
    assert reflector.wait_synced(10)
    reflector._backoff = Backoff(0.1, 0.5, random.random)  # soon there again after the restart
    told = len(story.told)
    relay.connected = False
    client.merge_patch(CONFIG_MAPS, "changes", {"data": {"x": "1"}}, home)
    client.delete(CONFIG_MAPS, "goes", home)
    client.delete(CONFIG_MAPS, "replaced", home)
    create(client, home, "replaced")
    create(client, home, "comes")
    compact(own_plane)
    # The API server remembers recent changes itself; a new one remembers nothing from before its start.
    own_plane.part("kube-apiserver").kill()
    own_plane.part("kube-apiserver").start()
    own_plane.wait_ready("kube-apiserver")
    relay.connected = True
    wait_for(lambda: reflector.relists == 1 and equal(reflector, client, home), timeout_s=60)
    assert sorted(story.told[told:]) == [
        ("changes", "changed"), ("comes", "added"), ("goes", "deleted"), ("replaced", "added"), ("replaced", "deleted"),
    ]  # fmt: skip
    assert "410" in capsys.readouterr().out
    create(client, home, "later")
    wait_for(lambda: ("later", "added") in story.told)
    reflector.stop()


def test_survives_a_restart_of_the_api_server(client: Client, home: str, own_plane: Plane, wait_for: WaitFor) -> None:
    """Killed in the middle of a stream of changes: nothing is lost, nothing is told twice."""
    story = Story()
    reflector = Reflector(client, CONFIG_MAPS, namespace=home)
    reflector.add_handler(story)
    reflector.start()
    assert reflector.wait_synced(10)
    names = [f"n{number}" for number in range(300)]
    with ThreadPoolExecutor(4) as pool:
        written = pool.map(lambda name: create(own_plane.client(), home, name), names)
        wait_for(lambda: len(story.known) > 50)
        own_plane.part("kube-apiserver").kill()
        own_plane.part("kube-apiserver").start()
        own_plane.wait_ready("kube-apiserver")
        list(written)
    wait_for(lambda: equal(reflector, client, home), timeout_s=60)
    told = [name for name, what in story.told if what == "added" and name in names]
    assert sorted(told) == sorted(names)
    reflector.stop()


def test_ten_thousand_objects_come_in_pages(client: Client, home: str) -> None:
    """All of them once, in pages of one resource version; and a reflector holds them all."""
    objects = 10_000
    bodies = [b'{"metadata":{"name":"n%d"},"data":{"x":"%d"}}' % (number, number) for number in range(objects)]
    path = CONFIG_MAPS.path(home)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda body: client.request("POST", path, body=body), bodies))
    pages = list(client.pages(CONFIG_MAPS, home, first=500))
    assert [len(page) for page in pages] == [500, 5000, 4500]
    assert len({page.metadata.resource_version for page in pages}) == 1
    assert {item.metadata.name for page in pages for item in page} == {f"n{number}" for number in range(objects)}
    reflector = Reflector(client, CONFIG_MAPS, namespace=home)
    reflector.start()
    assert reflector.wait_synced(30)
    assert len(reflector.store) == objects
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
