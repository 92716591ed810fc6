"""Passes that a silent webhook stops: one key is tried for all until it answers, and it is said once."""

from collections.abc import Callable

import msgspec
import pytest
from structlog.testing import capture_logs

from controller.worker import Worker
from muster.kube.errors import APIError, error_of, silent_webhook


def answer(message: str) -> bytes:
    """The body of an answer of the API server's."""
    return msgspec.json.encode({"kind": "Status", "reason": "InternalError", "message": message})


SILENT = answer(
    'Internal error occurred: failed calling webhook "queues.muster.dev": failed to call webhook: '
    'Post "https://w.n.svc:443/": connect: connection refused'
)
DENIED = answer('admission webhook "queues.muster.dev" denied the request: no')


class World:
    """A worker and its clock; the webhook is there or not."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.error: APIError | None = error_of(500, SILENT)
        self.tried: list[str] = []
        self.worker = Worker("queue", self._process, monotonic_s=lambda: self.now_s)

    def _process(self, key: str) -> None:
        self.tried.append(key)
        if self.error:
            raise self.error

    def turn(self) -> None:
        """Works on all keys that are due."""
        while key := self.worker.queue.get(0):
            self.worker.once(key)

    def pass_time(self, seconds: float) -> None:
        """Half a second at a time, with work in between."""
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            self.now_s += 0.5
            self.turn()


@pytest.fixture
def world() -> World:
    """Three keys that need a webhook, which does not answer."""
    one = World()
    for key in ("a", "b", "c"):
        one.worker.queue.add(key)
    return one


def test_one_key_is_tried_for_all(world: World) -> None:
    """The others wait, however many they are; they are done as soon as it gets through."""
    world.turn()
    assert world.tried == ["a", "b", "c"]
    world.pass_time(20)
    assert set(world.tried[3:]) == {"a"}
    assert len(world.tried) < 20
    world.error, world.tried = None, []
    world.pass_time(6)
    assert world.tried == ["a", "b", "c"]
    world.pass_time(60)
    assert len(world.tried) == 3


def test_it_is_tried_ever_more_rarely(world: World) -> None:
    """A webhook that stays away costs two tries a minute."""
    world.pass_time(900)
    before = len(world.tried)
    world.pass_time(300)
    assert 9 <= len(world.tried) - before <= 11


def test_a_first_start_says_it_once(world: World) -> None:
    """Without a warning, and again when it is over; a webhook that stays away is worth one."""
    with capture_logs() as logs:
        world.pass_time(119.0)
    assert [(each["log_level"], each["event"]) for each in logs] == [("info", "waiting for a webhook to answer")]
    with capture_logs() as logs:
        world.pass_time(600)
    assert [each["log_level"] for each in logs] == ["warning"]
    world.error = None
    with capture_logs() as logs:
        world.pass_time(60)
    assert [each["event"] for each in logs] == ["the webhook answers"]


def test_a_webhook_that_goes_away_is_warned_of(world: World) -> None:
    """At once, when the process has been there for a while."""
    world.error = None
    world.pass_time(121.0)
    world.error = error_of(500, SILENT)
    world.worker.queue.add("b")
    with capture_logs() as logs:
        world.turn()
    assert [(each["log_level"], each["webhook"]) for each in logs] == [("warning", "queues.muster.dev")]


@pytest.mark.parametrize("make", [lambda: error_of(400, DENIED), lambda: error_of(500, b"{}")])
def test_other_failures_are_each_keys_own(world: World, make: Callable[[], APIError]) -> None:
    """A webhook that refuses has answered; so has an API server that fails for another reason."""
    world.error = make()
    assert not silent_webhook(world.error)
    world.pass_time(3)
    assert {key: world.tried.count(key) for key in "abc"} == dict.fromkeys("abc", world.tried.count("a"))
    assert world.tried.count("a") > 1
