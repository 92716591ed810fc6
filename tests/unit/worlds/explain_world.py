"""A snapshot of a small cluster, for tests of what is explained."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from extender_world import GPU8, World
from state_oracle import RememberingState

from extender.explain.clusterdump import ClusterDump
from extender.explain.find import explain
from extender.explain.report import GangReport, PodReport
from extender.explain.text import lines_of
from extender.explain.whatif import WhatIf
from extender.planner.memory import Memory, PublishedInputs
from extender.planner.state.feed import FEED
from muster.api.muster.node_faults import DEFAULT_RULES
from muster.api.muster.placement import Placement


class ToldState(RememberingState):
    """Remembers the objects that it was told of, as the API server would."""

    def __init__(self) -> None:
        super().__init__()
        self.told: dict[str, dict[str, Any]] = {fed.resource.full_name: {} for fed in FEED}

    def __getattribute__(self, name: str) -> Any:
        method = super().__getattribute__(name)
        fed = next((fed for fed in FEED if fed.apply.__name__ == name), None)
        if fed is None:
            return method

        def tell(old: Any, new: Any) -> Any:
            objects = self.told[fed.resource.full_name]
            if new is None:
                objects.pop(old.metadata.key, None)
            else:
                objects[new.metadata.key] = new
            return method(old, new)

        return tell


class ExplainWorld(World):
    """A World whose objects can be looked at with `explain`."""

    def __init__(self) -> None:
        super().__init__()
        self.state: ToldState = ToldState()
        self.queue("default")

    @property
    def inputs(self) -> PublishedInputs:
        """What the extender has published besides its configuration."""
        arrived = {uid: tuple(slots) for uid, slots in self.arrived.items()}
        memory = Memory(arrived, self.refusals, tuple(self.gone_nodes))
        return PublishedInputs(self.timing, memory, dict(self.state.failures.remembered))

    def dump(self) -> ClusterDump:
        """Everything there is, now."""
        objects = {kind: list(items.values()) for kind, items in self.state.told.items()}
        return ClusterDump(self.now, objects=objects, suspects={"": DEFAULT_RULES.published}, inputs={"": self.inputs})

    def explain(self, name: str, kind: str = "gang") -> Any:
        """The report of an object in namespace `ns`."""
        return report_of(self.dump(), name, kind)

    def gang_report(self, name: str) -> GangReport:
        """The report of a gang."""
        return self.explain(name)

    def pod_report(self, name: str) -> PodReport:
        """The report of a pod."""
        return self.explain(name, "pod")

    def runs(
        self,
        name: str,
        number: int,
        requests: dict[str, Any] = GPU8,
        first_node: int = 0,
        *,
        since: float | None = None,
        **gang: Any,
    ) -> str:
        """A gang that runs, one pod on each node from `first_node`."""
        key = self.gang(name, {"worker": (number, requests)}, phase="Running", **gang)
        nodes = [f"node-{first_node + rank}" for rank in range(number)]
        self.members(key, number, requests, node=nodes, phase="Running", since=since)
        return key


def report_of(dump: ClusterDump, name: str, kind: str = "gang") -> Any:
    """The report of an object of a dump in namespace `ns`."""
    return explain(WhatIf(dump), kind, name, "ns")


def by_label(report: Any, now: float) -> dict[str, str]:
    """The lines of a report as they are shown."""
    return {line.label: line.text for line in lines_of(report, now)}


@dataclass(frozen=True)
class Case:
    """A cluster, and what is said about the gang `a` in it."""

    build: Callable[[ExplainWorld], None]
    cause: str
    words: tuple[str, ...] = ()
    """Parts of the summary."""
    lost: tuple[tuple[str, int], ...] = ()
    """Words of each cause and the number of nodes lost to it."""
    nearest: str = ""
    helps: tuple[str, ...] = ()
    """Beginnings of the suggestions."""


class Cases(dict[str, Case]):
    """Cases by name; as a decorator it makes one of a function that builds the cluster."""

    def __call__(
        self, cause: str, **said: Any
    ) -> Callable[[Callable[[ExplainWorld], None]], Callable[[ExplainWorld], None]]:
        """Add the case of the function, by its name."""

        def added(build: Callable[[ExplainWorld], None]) -> Callable[[ExplainWorld], None]:
            self[build.__name__] = Case(build, cause, **said)
            return build

        return added

    def check(self, name: str) -> None:
        """Compare cause, sentence, nodes per cause, nearest miss and what would help."""
        case, world = self[name], ExplainWorld()
        case.build(world)
        report = world.gang_report("a")
        assert report.cause == case.cause, report.summary
        for words in case.words:
            assert words in report.summary
        if case.lost or case.nearest:
            assert report.shortage is not None
            assert case.lost in {(), tuple((cause.words, cause.nodes) for cause in report.shortage.causes)}
            assert case.nearest in {"", report.shortage.nearest}
        for suggestion, relief in zip(case.helps, report.relief, strict=False):
            assert relief.sentence.startswith(suggestion)
        assert len(report.relief) >= len(case.helps)


def placed(
    world: ExplainWorld, *, name: str = "a", members: int = 2, gpus: int = 8, epoch: int | None = None
) -> tuple[str, Placement]:
    """A gang with a placement that is being carried out."""
    key = world.gang(name, {"worker": (members, {"nvidia.com/gpu": gpus})})
    world.plan()
    placement = world.state.placements[key]
    if epoch is not None:
        placement.spec.epoch = epoch
    return key, placement
