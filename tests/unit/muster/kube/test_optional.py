"""A kind that is another project's: nothing is asked for while it is not installed, and all is told while it is."""

from typing import Any

import pytest

from muster.api.base import Resource
from muster.api.kubernetes import extensions as api
from muster.api.kubernetes.meta import ObjectMeta, ReportedCondition
from muster.api.volcano.topology import TOPOLOGIES, Topology
from muster.kube import optional
from muster.kube.optional import PATIENCE_S, OptionalReflector
from muster.kube.store import ObjectStore


class Fake:
    """A reflector that knows what a test says."""

    made: list["Fake"]

    def __init__(self, _client: object, resource: Resource[Any], **options: Any) -> None:
        self.resource, self.options = resource, options
        self.store: ObjectStore[Any] = options.get("store") or ObjectStore()
        self.running = self.synced = False
        self.trouble: str | None = None
        self.made.append(self)

    def add_handler(self, handler: Any) -> None:
        """There is one."""
        self.tell = handler

    def start(self) -> None:
        """Begins."""
        self.running = True

    def stop(self) -> None:
        """Ends."""
        self.running = False

    def see(self, name: str) -> None:
        """There is a new object."""
        one = Topology(metadata=ObjectMeta(name=name))
        self.store.add_object(one)
        self.tell(None, one)


class World:
    """An optional reflector, `told` of what comes (+) and goes (-), and the fakes that it makes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        Fake.made = []
        self.now = 100.0
        monkeypatch.setattr(optional, "Reflector", Fake)
        monkeypatch.setattr("time.monotonic", lambda: self.now)
        self.told: list[str] = []
        client: Any = None
        self.one = OptionalReflector(client, TOPOLOGIES, self._note, longest_delay_s=7.0)

    def _note(self, old: Topology | None, new: Topology | None) -> None:
        self.told.append(f"+{new.metadata.name}" if new else f"-{old.metadata.name}" if old else "")

    def install(self, *versions: str, established: bool = True) -> None:
        """The CRD has these versions now; none means that it is gone."""
        conditions = [ReportedCondition(type="Established", status="True")] if established else None
        spec = api.DefinitionSpec(versions=[api.DefinitionVersion(name=each) for each in versions])
        new = api.CustomResourceDefinition(spec=spec, status=api.DefinitionStatus(conditions=conditions))
        Fake.made[0].tell(None, new if versions else None)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """It is watched whether the kind is there."""
    made = World(monkeypatch)
    made.one.start()
    return made


def test_only_the_definition_is_watched_before(world: World) -> None:
    """By its name; without a definition there are no objects."""
    [definition] = Fake.made
    assert (definition.resource, definition.running) == (api.DEFINITIONS, True)
    assert definition.options == {"field_selector": "metadata.name=topologies.kueue.x-k8s.io", "longest_delay_s": 7.0}
    world.install("v1beta2", established=False)
    assert (len(Fake.made), world.one.size) == (1, 0)
    definition.trouble = "it cannot be read"
    assert world.one.trouble == "it cannot be read"


def test_a_kind_that_comes_changes_and_goes(world: World) -> None:
    """Of another version all is told again; what an earlier watch still says comes too late."""
    world.install("v1beta1")
    world.install("v1beta1")
    old = Fake.made[-1]
    old.see("a")
    assert (len(Fake.made), old.resource.version, old.running, world.one.size) == (2, "v1beta1", True, 1)
    assert old.options["longest_delay_s"] == 7.0
    assert old.options["budget"].resource is old.resource, "tenants may create the objects"
    world.install("v1beta1", "v1beta2")
    new = Fake.made[-1]
    old.see("late")
    new.see("b")
    assert (new.resource.version, old.running, new.running, world.told) == ("v1beta2", False, True, ["+a", "-a", "+b"])
    world.install()
    assert (world.told[3:], new.running, world.one.size) == (["-b"], False, 0)
    world.install("v1beta2")
    world.one.stop()
    assert not any(each.running for each in Fake.made)


def test_a_start_waits_for_the_objects_but_not_for_ever(world: World) -> None:
    """E.g. while the conversion webhook of their owner is down."""
    definition = Fake.made[0]
    assert not world.one.synced
    definition.synced = True
    assert world.one.synced, "there is no such kind"
    world.now += PATIENCE_S
    world.install("v1beta2")
    assert not world.one.synced
    world.now += PATIENCE_S
    assert not world.one.synced
    world.now += 0.1
    assert world.one.synced
    world.now -= 1
    Fake.made[-1].synced = True
    assert world.one.synced


def test_one_that_was_not_started_is_not_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long ago."""
    made = World(monkeypatch)
    made.now += 2 * PATIENCE_S
    assert not made.one.synced
