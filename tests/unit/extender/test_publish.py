"""What the planner runs with is published when it changes, and again now and then."""

from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from extender.configfile import ConfigFile
from extender.publish import AGAIN_S, ConfigPublisher
from extender.settings import ExtenderSettings
from muster.api.muster.configuration import PublishedConfig
from muster.kube.errors import Unreachable

SUSPECTS = ExtenderSettings(suspect_conditions=("XidError=True", "-KernelDeadlock=True")).fault_rules.told
GOOD = "actions: enqueue\n"
BAD = "actions: alocate\n"


class Client:
    """Takes patches of the ConfigMap."""

    def __init__(self) -> None:
        self.data: list[dict[str, str]] = []
        self.down = False

    def merge_patch(self, _resource: object, name: str, body: dict[str, Any], namespace: str) -> None:
        """Note the data."""
        assert (namespace, name) == ("muster-system", "muster-planner")
        if self.down:
            raise Unreachable("no answer")
        self.data.append(body["data"])


class AtOnce:
    """`Writes` that run when they are started."""

    def start(self, _lane: object, _what: str, _key: str, write: Any) -> None:
        """Run it."""
        write()


class World:
    """A file, its publisher, and a clock."""

    def __init__(self, file: Path) -> None:
        file.write_text(GOOD)
        self.file = file
        self.now = 1_000.0
        self.client: Any = Client()
        self.config = ConfigFile(file)
        writes: Any = AtOnce()
        self.publisher = ConfigPublisher(
            self.client, "muster-system", self.config, writes, suspects=SUSPECTS, wall_s=lambda: self.now
        )

    def says(self, text: str) -> None:
        """Another file, which is looked at, and a cycle."""
        self.file.write_text(text)
        self.config.look()
        self.publisher.write()

    @property
    def told(self) -> PublishedConfig:
        """The ConfigMap as it was written last."""
        return PublishedConfig(data=self.client.data[-1])


@pytest.fixture
def world(tmp_path: Path) -> World:
    """With a good file."""
    return World(tmp_path / "conf")


def test_a_change_is_published_once(world: World) -> None:
    """And the same again after a minute: another replica may have led meanwhile."""
    for _ in range(2):
        world.publisher.write()
    assert (len(world.client.data), world.told.text, world.told.answer_to(GOOD)) == (1, GOOD, "")
    assert world.told.answer_to("") is None
    world.now += AGAIN_S
    world.publisher.write()
    assert len(world.client.data) == 2
    world.says("")
    assert (world.told.text, world.told.answer_to("")) == ("", "")


def test_a_refused_file_is_told_with_its_reason(world: World) -> None:
    """What is used stays what it was."""
    world.says(BAD)
    assert world.told.text == GOOD
    assert "there is no action 'alocate'" in (world.told.answer_to(BAD) or "")
    world.says(GOOD)
    assert (world.told.text, world.told.answer_to(GOOD)) == (GOOD, "")


def test_what_cannot_be_written_is_tried_again_later(world: World) -> None:
    """Planning goes on; a new text is tried at once."""
    world.client.down = True
    with capture_logs() as lines:
        world.publisher.write()
        world.now += AGAIN_S
        world.publisher.write()
    assert [line["event"] for line in lines] == ["the configuration is not published"], "once"
    world.client.down = False
    world.publisher.write()
    assert world.client.data == []
    world.now += AGAIN_S
    world.publisher.write()
    assert world.told.text == GOOD


def test_what_suspects_nodes_is_told_whole(world: World) -> None:
    """With what the settings add to the known list and take from it; an older extender's ConfigMap says nothing."""
    world.publisher.write()
    told = world.told.suspects
    assert told == SUSPECTS
    assert "XidError=True" in told.conditions
    assert "ReadonlyFilesystem=True" in told.conditions
    assert "KernelDeadlock=True" not in told.conditions
    for text in (None, "", "[]", "{"):
        assert PublishedConfig(data={} if text is None else {"suspects.json": text}).suspects is None


def test_nothing_published_is_no_default() -> None:
    """A ConfigMap that no extender has written says nothing."""
    for empty in (PublishedConfig(), PublishedConfig(data=None)):
        assert (empty.text, empty.answer_to("")) == (None, None)
