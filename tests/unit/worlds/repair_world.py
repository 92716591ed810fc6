"""Builders of gangs that run, one member a node, for tests of repairs."""

from collections.abc import Mapping
from typing import Any

from extender_world import GPU8, World, of

from extender.planner.actions.repair import SETTLE_S, Repair
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from muster.api.muster.placement import (
    BorrowedSpares,
    NodeRun,
    NodeSpares,
    Placement,
    PlacementSpec,
    PlacementStatus,
    PodSetPlacement,
)

XID = {"SysLogsXIDError": "True"}


class RepairWorld(World):
    """A world whose gangs run, one member a node from node-0 on, and whose repairs remember earlier looks."""

    may_fail = False

    def __init__(self) -> None:
        super().__init__()
        self.repair = Repair()

    def runs(
        self, name: str, members: int, first: int = 0, *, least: int | None = None,
        labels: Mapping[str, str] | None = None, **said: str,
    ) -> str:  # fmt: skip
        """A gang that runs; what is `said` are annotations without their domain."""
        minimum = members if least is None else least
        key = self.gang(name, {"worker": (members, GPU8)}, min_member=minimum, min_task_member={"worker": minimum})
        annotations = {f"muster.dev/{word.replace('_', '-')}": text for word, text in said.items()}
        self.change(self.state.groups[key], annotations=annotations)
        for rank in range(members):
            self.member(key, rank, f"node-{first + rank}", labels=dict(labels or {}))
        return key

    def member(self, key: str, rank: int, node: str, **more: Any) -> None:
        """A member that runs."""
        self.pod(key, "worker", rank, GPU8, node=node, phase="Running", **more)

    def faults(self, *nodes: str, after: float = SETTLE_S) -> Session:
        """The cycle of repairs so long after these nodes have become suspect; their faults have settled by then."""
        for node in nodes:
            self.node(node, conditions=XID)
        self.look()
        return self.look(after)

    def replaced(self, node: str) -> decisions.Place:
        """A node becomes suspect, and the placement that follows from it is written."""
        [place] = of(self.faults(node), decisions.Place)
        self.place(place)
        return place  # type: ignore[no-any-return]  # decisions are told by their types

    def look(self, after: float = 0.0) -> Session:
        """A cycle of repairs alone, so many seconds later."""
        self.now += after
        return self.session(self.repair)


def placed(
    world: RepairWorld, name: str, members: int, first: int = 0, *, keeps: tuple[str, ...] = (),
    loans: tuple[BorrowedSpares, ...] = (), **said: str,
) -> str:  # fmt: skip
    """A gang that runs by its placement, with these spares, and these of others."""
    key = world.runs(name, members, first, **said)
    pod_set = PodSetPlacement("worker", [NodeRun(f"node-{first + rank}", 1) for rank in range(members)])
    uid = world.state.groups[key].metadata.uid
    spares = [NodeSpares("worker", node, 1) for node in keeps]
    spec = PlacementSpec(pod_group_uid=uid, pod_sets=[pod_set], spares=spares, borrows=list(loans))
    status = PlacementStatus(phase="Bound", bound=members, started=True)
    world.state.on_placement(None, Placement(metadata=world.meta(name), spec=spec, status=status))
    return key


def evicted(session: Session) -> list[str]:
    """The names of the pods that repairs evict."""
    return sorted(pod.name for repair in of(session, decisions.EvictForFaults) for pod in repair.pods)


def says(session: Session) -> list[str]:
    """What gangs are told that are not repaired."""
    return [why.message for why in of(session, decisions.Unschedulable)]
