"""A small cluster with gangs that run and gangs that ask for their room."""

from typing import Any

from extender_world import World, of

from extender.planner.actions.allocate import Allocate
from extender.planner.actions.displace import Preempt
from extender.planner.actions.enqueue import Enqueue
from extender.planner.framework.decisions import MakeRoom, Place
from extender.planner.framework.registry import Action
from extender.planner.framework.session import Session
from muster.api.kubernetes.core import PriorityClass
from muster.api.kubernetes.meta import LabelSelector, ObjectMeta, format_time
from muster.api.kubernetes.quota import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from muster.api.muster.placement import Placement, PlacementSpec, PlacementStatus


class Cluster(World):
    """Nodes of 8 GPUs, and two priority classes."""

    may_fail = False

    def __init__(self, nodes: int = 2, *, checked: bool = True) -> None:
        super().__init__(checked=checked)
        self.nodes(nodes)
        self.actions: list[Action] = [Preempt()]
        for name, value, policy in (("low", 1, ""), ("high", 10, ""), ("meek", 10, "Never")):
            meta = ObjectMeta(name=name, uid=name)
            self.state.on_priority_class(None, PriorityClass(metadata=meta, value=value, preemption_policy=policy))

    def runs(self, name: str, pods: int, gpus: int = 8, first: int = 0, **more: Any) -> str:
        """A gang that runs, as many pods per node as fit."""
        requests = {"nvidia.com/gpu": gpus}
        key = self.gang(name, {"worker": (pods, requests)}, phase="Running", **{"priority_class": "low"} | more)
        for rank in range(pods):
            self.pod(key, "worker", rank, requests, node=f"node-{first + rank * gpus // 8}", phase="Running")
        return key

    def asks(self, name: str, pods: int, gpus: int = 8, priority_class: str = "high", **more: Any) -> str:
        """A gang that waits, its pods gated."""
        requests = {"nvidia.com/gpu": gpus}
        key = self.gang(name, {"worker": (pods, requests)}, priority_class=priority_class, **more)
        self.members(key, pods, requests, gated=True)
        return key

    def cycle(self) -> Session:
        """One cycle with the actions under test; placements are written."""
        session = self.session(self.progress, Enqueue(), Allocate(), *self.actions)
        for place in of(session, Place):
            self.place(place)
        return session

    def label_pods(self, start: str, **labels: str) -> None:
        """Labels on all pods whose names begin so, such as those of a gang."""
        for pod in [pod for pod in self.state.pod_objects.values() if f"{pod.metadata.name}-".startswith(f"{start}-")]:
            self.change(pod, labels=labels)

    def ends(self, gang: str, rank: int) -> None:
        """A pod succeeds."""
        self.change(self.state.pod_objects[f"uid-{gang}-worker-{rank}"], status={"phase": "Succeeded"})

    def annotate(self, key: str, name: str, value: str) -> None:
        """An annotation on a PodGroup."""
        self.change(self.state.groups[key], annotations={name: value})

    def budget(self, name: str, *, allowed: int, **labels: str) -> None:
        """A disruption budget of pods with these labels (all, without any) that lets so many go now."""
        spec = PodDisruptionBudgetSpec(selector=LabelSelector(match_labels=labels))
        status = PodDisruptionBudgetStatus(disruptions_allowed=allowed)
        self.state.on_budget(None, PodDisruptionBudget(metadata=self.meta(name), spec=spec, status=status))

    def started(self, key: str, age_s: float) -> None:
        """A gang that runs started so long ago."""
        gang = self.view(key)
        status = PlacementStatus(phase="Bound", started=True, started_at=format_time(self.now - age_s))
        placement = Placement(
            metadata=self.meta(gang.group.metadata.name), spec=PlacementSpec(pod_group_uid=gang.uid), status=status
        )
        self.state.on_placement(None, placement)


def victims(session: Session) -> set[str]:
    """Names of the pods that go."""
    return {pod.name for room in of(session, MakeRoom) for _, pod in room.victims}
