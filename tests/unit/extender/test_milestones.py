"""How long gangs take: each step once, from the submission on, by who leads; and what queues have."""

from dataclasses import dataclass, field

import pytest
from builders import placement as a_placement
from msgspec.structs import replace
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import REGISTRY

from extender.milestones import Milestones
from muster.api.kubernetes.meta import ObjectMeta, format_time
from muster.api.kubernetes.scheduling import NativePodGroup
from muster.api.muster.placement import Placement, PlacementSpec, PlacementStatus
from muster.api.muster.placementnotes import PlacementContent
from muster.api.volcano.scheduling import PodGroup, PodGroupSpec, PodGroupStatus, Queue, QueueStatus
from muster.process.tracing import ROOT, SPANS, trace_id

NOW = 1_800_000_000.0
STAGES = ("planned", "bound", "running")


def counts() -> dict[str, tuple[float, float]]:
    """How many gangs have reached each stage so far, and after how many seconds in all."""
    found = {}
    for stage in STAGES:
        told = [REGISTRY.get_sample_value(f"muster_gang_seconds_{what}", {"stage": stage}) for what in ("count", "sum")]
        found[stage] = (told[0] or 0.0, told[1] or 0.0)
    return found


@dataclass
class World:
    """A clock, who leads, and what was counted since the beginning."""

    now: float = NOW
    leads: bool = True
    before: dict[str, tuple[float, float]] = field(default_factory=counts)

    def __post_init__(self) -> None:
        self.milestones = Milestones(active=lambda: self.leads, wall_s=lambda: self.now)

    def told(self) -> dict[str, float]:
        """The stages that were counted, and the seconds until then."""
        now = counts()
        changed = [stage for stage in STAGES if now[stage] != self.before[stage]]
        return {stage: round(now[stage][1] - self.before[stage][1], 3) for stage in changed}


def group(created_s: float = NOW, running: int = 0, succeeded: int = 0) -> PodGroup:
    """A gang of four."""
    meta = ObjectMeta(name="g", uid="u", creation_timestamp=format_time(created_s))
    status = PodGroupStatus(running=running, succeeded=succeeded)
    return PodGroup(metadata=meta, spec=PodGroupSpec(min_member=4), status=status)


def placement(phase: str, created_s: float = NOW) -> Placement:
    """The gang's."""
    return a_placement("g", namespace="", gang_uid="u", phase=phase, created=format_time(created_s))


def test_each_step_is_counted_once() -> None:
    """From the moment on in which the gang was seen; a reservation is no plan, and too few members do not run."""
    world = World()
    tell = world.milestones
    tell.group(None, group())
    world.now += 0.25
    tell.placement(None, placement("Reserved"))
    assert world.told() == {}
    world.now += 0.25
    tell.placement(placement("Reserved"), placement("Planned"))
    world.now += 1
    for _ in range(2):
        tell.placement(placement("Planned"), placement("Bound"))
    world.now += 1
    tell.group(group(), group(running=3))
    assert world.told() == {"planned": 0.5, "bound": 1.5}
    tell.group(group(), group(running=3, succeeded=1))
    tell.group(group(), group(running=4))
    assert world.told() == {"planned": 0.5, "bound": 1.5, "running": 2.5}


def test_what_is_noted_in_a_podgroup_counts_too() -> None:
    """As an object would."""
    world = World()
    before, planned, bound = group(), noted_in(group(), "Planned"), noted_in(group(), "Bound")
    world.milestones.group(None, before)
    world.now += 0.25
    world.milestones.group(before, planned)
    world.milestones.group(planned, planned)
    world.now += 1
    world.milestones.group(planned, bound)
    assert world.told() == {"planned": 0.25, "bound": 1.25}
    again = World()
    again.milestones.group(None, noted_in(group(created_s=NOW - 100), "Bound"))
    assert again.told() == {}


def noted_in(group: PodGroup, phase: str) -> PodGroup:
    """The same with a placement."""
    spec, status = PlacementSpec(pod_group_uid=group.metadata.uid), PlacementStatus(phase=phase)
    note = PlacementContent(spec=spec, status=status).as_note()
    return replace(group, metadata=replace(group.metadata, annotations={"muster.dev/placement": note}))


def test_a_restart_counts_nothing_again() -> None:
    """Caches are filled with what had happened before; what comes then counts from the creation on."""
    world = World()
    world.milestones.group(None, group(created_s=NOW - 100))
    world.milestones.placement(None, placement("Planned", created_s=NOW - 90))
    assert world.told() == {}
    world.milestones.placement(placement("Planned"), placement("Bound", created_s=NOW - 90))
    assert world.told() == {"bound": 100.0}
    again = World()
    again.milestones.group(None, group(created_s=NOW - 100, running=4))
    assert again.told() == {}


@pytest.mark.parametrize(("ago_s", "counted_s"), [(0.0, 0.0), (1.9, 0.0), (2.0, 2.0), (100.0, 100.0)])
def test_a_gang_counts_from_its_creation_unless_it_was_seen_to_come(ago_s: float, counted_s: float) -> None:
    """API servers write whole seconds: of one that has just come the moment at which it was seen is more exact."""
    world = World(now=NOW + ago_s)
    world.milestones.group(None, group(created_s=NOW))
    world.milestones.placement(placement("Reserved"), placement("Planned"))
    assert world.told() == {"planned": counted_s}
    again = World(now=NOW + ago_s)
    again.milestones.group(None, group(created_s=NOW))
    again.milestones.placement(None, placement("Planned", created_s=NOW))
    assert again.told() == ({} if ago_s >= 2 else {"planned": 0.0})


def test_a_native_group_is_submitted_as_one_of_volcanos() -> None:
    """It reaches nothing of itself; its placement is an object."""
    world = World()
    native = NativePodGroup(metadata=ObjectMeta(name="g", namespace="ns", uid="u", creation_timestamp=format_time(NOW)))
    world.milestones.native(None, native)
    world.now += 1
    world.milestones.placement(None, placement("Planned"))
    assert world.told() == {"planned": 1.0}
    world.milestones.native(native, None)
    assert not world.milestones._gangs


def test_who_stands_by_counts_nothing() -> None:
    """Nor later, when it leads: another one has."""
    world = World(leads=False)
    world.milestones.group(None, group())
    world.milestones.placement(None, placement("Planned"))
    world.leads = True
    world.milestones.placement(placement("Planned"), placement("Binding"))
    assert world.told() == {}


def test_a_gang_that_is_gone_is_forgotten() -> None:
    """One of the same name is another one; nothing is kept."""
    world = World()
    world.milestones.group(None, group())
    world.milestones.placement(None, placement("Planned"))
    world.milestones.group(group(), None)
    world.milestones.placement(placement("Planned"), placement("Bound"))
    assert world.told() == {"planned": 0}
    assert not world.milestones._gangs


def amount(resource: str, what: str) -> float | None:
    """What is told of a queue."""
    labels = {"queue": "research", "resource": resource, "what": what}
    return REGISTRY.get_sample_value("muster_queue_resources", labels)


def test_queues() -> None:
    """In cores, bytes and pieces; what is gone is not told any more, and what nobody can read neither."""
    world = World()
    status = QueueStatus(allocated={"cpu": "1500m", "nvidia.com/gpu": "3"}, deserved={"memory": "1Ki"})
    first = Queue(metadata=ObjectMeta(name="research"), status=status)
    world.milestones.queue(None, first)
    assert (amount("cpu", "allocated"), amount("nvidia.com/gpu", "allocated")) == (1.5, 3)
    assert amount("memory", "deserved") == 1024
    second = Queue(metadata=first.metadata, status=QueueStatus(allocated={"cpu": "2"}, deserved={"memory": "much"}))
    world.milestones.queue(first, second)
    assert (amount("cpu", "allocated"), amount("nvidia.com/gpu", "allocated")) == (2, None)
    assert amount("memory", "deserved") is None
    world.milestones.queue(second, None)
    assert amount("cpu", "allocated") is None


@pytest.mark.parametrize("leads", [True, False])
def test_queues_are_told_by_all(*, leads: bool) -> None:
    """A gauge is no count."""
    world = World(leads=leads)
    queue = Queue(metadata=ObjectMeta(name="research"), status=QueueStatus(allocated={"pods": "7"}))
    world.milestones.queue(None, queue)
    assert amount("pods", "allocated") == 7
    world.milestones.queue(queue, None)


def test_steps_are_spans_of_the_workload() -> None:
    """With the times that are counted, and the whole way as the span that the others hang on."""
    exporter = InMemorySpanExporter()
    SPANS.send("extender", SimpleSpanProcessor(exporter))
    try:
        world = World()
        world.milestones.group(None, group())
        world.now += 1
        world.milestones.placement(None, placement("Planned"))
        world.milestones.placement(placement("Planned"), placement("Bound"))
        world.now += 2
        world.milestones.group(group(), group(running=4))
    finally:
        SPANS.stop()
    spans = {span.name: ((span.end_time or 0) - (span.start_time or 0)) / 1e9 for span in exporter.get_finished_spans()}
    assert spans == {"planned": 1, "bound": 1, "running": 3, ROOT: 3}
    assert {span.context.trace_id for span in exporter.get_finished_spans()} == {trace_id("u")}
