"""`muster ps -w` goes on when a PodGroup of either kind changes."""

from queue import SimpleQueue
from typing import Any, cast

import pytest
from builders import pod_group

from gangs.rows import RowSources
from muster.api.base import Resource
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from muster.kube.errors import APIError, Forbidden, Gone, NotFound, Unreachable
from musterctl.commands import ps
from musterctl.commands.ps import wait_for_news
from musterctl.output.gangtable import Shown

VERSIONS = {POD_GROUPS: "3", NATIVE_POD_GROUPS: "5"}


class Stream:
    """A watch: gives what was put, then stays silent until it is closed."""

    def __init__(self, *events: Any) -> None:
        self.events: SimpleQueue[Any] = SimpleQueue()
        self.closed = False
        for event in events:
            self.events.put(event)

    def __iter__(self) -> "Stream":
        return self

    def __next__(self) -> tuple[str, None]:
        event = self.events.get()
        if event is None:
            raise StopIteration
        if isinstance(event, APIError):
            raise event
        return event, None

    def close(self) -> None:
        """As that of a client."""
        self.closed = True
        self.events.put(None)


class Api:
    """Opens these watches; an error is raised in place of one."""

    def __init__(self, volcano: Any, native: Any) -> None:
        self.watches: dict[Resource[Any], Any] = {POD_GROUPS: volcano, NATIVE_POD_GROUPS: native}
        self.opened: list[Stream] = []

    def watch(self, kind: Resource[Any], namespace: str | None, *, resource_version: str) -> Stream:
        """As a client."""
        assert (namespace, resource_version) == ("ns", VERSIONS[kind])
        if isinstance(self.watches[kind], APIError):
            raise self.watches[kind]
        self.opened.append(self.watches[kind])
        return self.opened[-1]


def waited(volcano: Any, native: Any) -> None:
    """Waits for news, after which all watches are closed."""
    api: Any = Api(volcano, native)
    try:
        wait_for_news(api, "ns", VERSIONS)
    finally:
        assert all(each.closed for each in api.opened)


@pytest.mark.parametrize("first", [0, 1])
def test_a_change_of_either_kind_is_news(first: int) -> None:
    """While the other is silent."""
    streams = [Stream("BOOKMARK"), Stream("BOOKMARK")]
    streams[first] = Stream("BOOKMARK", "MODIFIED")
    waited(*streams)


def test_so_is_the_end_of_a_watch() -> None:
    """Servers end them every few minutes, and forget versions."""
    waited(Stream(), Stream(None))
    waited(Stream(Gone("too old")), Stream())
    waited(Stream(), Gone("too old"))


@pytest.mark.parametrize("error", [Forbidden("no"), NotFound("no")])
def test_native_groups_that_may_not_be_watched_are_left_out(error: APIError) -> None:
    """The others are watched all the same; without those there is nothing to wait for."""
    waited(Stream("ADDED"), error)
    with pytest.raises(type(error)):
        waited(error, Stream())


def test_an_error_ends_the_wait() -> None:
    """With what the API server said, or why it could not be asked."""
    with pytest.raises(Unreachable):
        waited(Stream(), Stream(Unreachable("the stream broke")))


def test_changes_are_gangs_that_are_another_than_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most once a second; of a list that shows some of them, also those that leave it."""
    versions = {POD_GROUPS: "3"}
    looks = [
        RowSources(versions, groups=[pod_group(name, phase=phase) for name, phase in each.items()])
        for each in ({"a": "Running", "b": "Running"}, {"a": "Running", "b": "Unknown"}, {"a": "Completed"}, {})
    ]
    slept: list[float] = []
    monkeypatch.setattr(ps, "wait_for_news", lambda _, *asked: slept.append(asked == ("ns", versions)))
    monkeypatch.setattr(ps, "read_all", lambda *_: looks.pop(0))
    monkeypatch.setattr(ps.time, "sleep", slept.append)
    found = ps.changes(cast("Client", None), Shown("ns", "table"), looks.pop(0))
    told = [[(row.name, row.state) for row in next(found)] for _ in range(3)]
    assert told == [[("b", "Degraded")], [("a", "Completed"), ("b", "Gone")], []]
    assert slept == [True, 1.0] * 3
