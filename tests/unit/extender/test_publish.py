"""What the planner runs with is published when it changes, and again now and then."""

from pathlib import Path
from typing import Any

import pytest
from extender_world import World as Cluster
from structlog.testing import capture_logs

from extender.configfile import ConfigFile
from extender.planner.framework.inputs import CycleInputs
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import take_snapshot
from extender.planner.memory import PublishedInputs, published_inputs
from extender.planner.timing import Timing
from extender.publish import AGAIN_S, MEMORY_S, ConfigPublisher
from extender.settings import ExtenderSettings
from muster.api.muster.configuration import PublishedConfig
from muster.kube.errors import Unreachable

SUSPECTS = ExtenderSettings(suspect_conditions=("XidError=True", "-KernelDeadlock=True")).fault_rules.published
GOOD = "actions: enqueue\n"
BAD = "actions: alocate\n"
TIMING = Timing(growth_delay_s=600.0, staleness_grace_s=-1.0, fault_stop=0.25)


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
            self.client, "muster-system", self.config, writes, suspects=SUSPECTS, timing=TIMING,
            monotonic_s=lambda: self.now,
        )  # fmt: skip
        self.gone: frozenset[str] = frozenset()
        self.snapshot = take_snapshot(Cluster().state)

    def says(self, text: str) -> None:
        """Another file, which is looked at, and a cycle."""
        self.file.write_text(text)
        self.config.read_again()
        self.cycle()

    def cycle(self) -> None:
        """The end of a cycle."""
        self.publisher.write(Session(CycleInputs(snapshot=self.snapshot, now=self.now, gone=self.gone)))

    @property
    def inputs(self) -> PublishedInputs:
        """What is read of the ConfigMap as it was written last."""
        inputs, problems = published_inputs(self.client.data[-1])
        assert problems == []
        return inputs

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
        world.cycle()
    assert (len(world.client.data), world.told.text, world.told.answer_to(GOOD)) == (1, GOOD, "")
    assert world.told.answer_to("") is None
    world.now += AGAIN_S
    world.cycle()
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
        world.cycle()
        world.now += AGAIN_S
        world.cycle()
    assert [line["event"] for line in lines] == ["the configuration is not published"], "once"
    world.client.down = False
    world.cycle()
    assert world.client.data == []
    world.now += AGAIN_S
    world.cycle()
    assert world.told.text == GOOD


def test_what_suspects_nodes_is_told_whole(world: World) -> None:
    """With what the settings add to the known list and take from it; an older extender's ConfigMap says nothing."""
    world.cycle()
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


def test_what_the_process_remembers_is_published_now_and_then(world: World) -> None:
    """It changes with most cycles; what else has changed is published at once, and the memory with it."""
    world.cycle()
    assert (world.inputs.timing, world.inputs.memory.gone) == (TIMING, ())
    world.gone = frozenset({"b", "a"})
    world.now += MEMORY_S - 1
    world.cycle()
    assert len(world.client.data) == 1
    world.now += 1
    world.cycle()
    assert world.inputs.memory.gone == ("a", "b")
    world.gone = frozenset()
    world.says("")
    assert (len(world.client.data), world.inputs.memory.gone) == (3, ())
