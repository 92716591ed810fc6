"""A snapshot of a small cluster, for tests of what is explained."""

from typing import Any

from extender_world import RememberingState, World

from extender.explain.clusterdump import ClusterDump, kind_name
from extender.explain.find import explain
from extender.explain.report import GangReport, PodReport
from extender.explain.whatif import WhatIf
from extender.planner.memory import Memory, PublishedInputs
from extender.planner.state.feed import FEED
from muster.api.muster.node_faults import DEFAULT_RULES


class ToldState(RememberingState):
    """Remembers the objects that it was told of, as the API server would."""

    def __init__(self) -> None:
        super().__init__()
        self.told: dict[str, dict[str, Any]] = {kind_name(fed.resource): {} for fed in FEED}

    def __getattribute__(self, name: str) -> Any:
        method = super().__getattribute__(name)
        fed = next((fed for fed in FEED if fed.tell.__name__ == name), None)
        if fed is None:
            return method

        def tell(old: Any, new: Any) -> Any:
            objects = self.told[kind_name(fed.resource)]
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
        return ClusterDump(self.now, objects=objects, suspects={"": DEFAULT_RULES.told}, inputs={"": self.inputs})

    def explain(self, name: str, kind: str = "gang") -> GangReport | PodReport:
        """The report of an object in namespace `ns`."""
        return explain(WhatIf(self.dump()), kind, name, "ns")

    def gang_report(self, name: str) -> GangReport:
        """The report of a gang."""
        report = self.explain(name)
        assert isinstance(report, GangReport)
        return report

    def pod_report(self, name: str) -> PodReport:
        """The report of a pod."""
        report = self.explain(name, "pod")
        assert isinstance(report, PodReport)
        return report

    def runs(self, name: str, number: int, requests: dict[str, Any], first_node: int = 0) -> str:
        """A gang that runs, one pod on each node from `first_node`."""
        key = self.gang(name, {"worker": (number, requests)}, phase="Running")
        for rank in range(number):
            self.pod(key, "worker", rank, requests, node=f"node-{first_node + rank}", phase="Running")
        return key
