"""The planner's state and plugins for a dump of the cluster, used to run cycles and to try changes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

from msgspec.structs import replace

from extender.explain.clusterdump import ClusterDump, state_of
from extender.planner import reasons
from extender.planner.cycle import Planning, parts_of
from extender.planner.framework import config
from extender.planner.framework.decisions import Decision, Unschedulable
from extender.planner.framework.registry import Action
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import take_snapshot
from extender.planner.memory import still_avoided
from extender.planner.queuepositions import waiting
from extender.planner.scaleup.requests import newest
from extender.planner.state.gangs import GangView
from muster.api.base import Resource
from muster.api.kubernetes.autoscaling import PROVISIONING_REQUESTS
from muster.api.kubernetes.core import PODS, Node, Pod
from muster.api.muster.reason import stored
from muster.workloads.table import gang_of


def written_reason(gang: GangView) -> Unschedulable | None:
    """Return the reason why a gang waits, from the PodGroup's condition; None if there is no such condition."""
    waits = gang.group.status.true_condition("Unschedulable")
    return Unschedulable(gang, waits.reason, stored(waits.why, waits.message)) if waits else None


def _as_written(decision: Decision) -> Decision:
    """Return the decision; for a gang that one cycle does not process, use the reason in its PodGroup."""
    later = isinstance(decision, Unschedulable) and decision.reason == reasons.pods.LATER
    return (written_reason(decision.gang) if later else None) or decision


class WhatIf:
    """The cluster of a dump with a planner; changes by `tried_*` are undone at the end of the `with` block.

    If `names_others` is true, messages may name everything in the dump.
    """

    def __init__(self, dump: ClusterDump, *, names_others: bool = True) -> None:
        self.dump = dump
        self._names_others = names_others
        self.now = dump.taken_at
        self._provisioning_served = True if dump.has(PROVISIONING_REQUESTS) else None
        self.state = state_of(dump)
        self.state.refresh()
        self.timing = dump.own_inputs.timing
        self._config = config.parse(dump.scheduler_config)
        self._planning = Planning(self._config, self.timing)
        self._decided: tuple[Session, list[GangView]] | None = None
        self._pods_of: dict[str, list[Pod]] = {}
        for pod in dump.objects_of(PODS):
            if gang := gang_of(pod):
                self._pods_of.setdefault(f"{pod.metadata.namespace}/{gang}", []).append(pod)

    def cycle(self) -> Session:
        """Run a cycle, and return its session with the decisions."""
        actions, _ = parts_of(self._config)  # new ones, because actions cache state between cycles
        return self._run(actions)

    def decided(self) -> tuple[Session, list[GangView]]:
        """Return the session of a cycle over the unchanged cluster, and the waiting gangs; run the cycle only once."""
        if self._decided is None:
            session = self.cycle()
            session.decisions = list(map(_as_written, session.decisions))
            self._decided = session, waiting(session)
        return self._decided

    def continue_planning(self) -> None:
        """Forget the last decisions, so that the next call of `decided` runs a cycle over the changed state."""
        self._decided = None

    def for_readers(self, *, names_others: bool) -> "WhatIf":
        """Return the same cluster for another user; if `names_others` is true, this user may see all names.

        Do not use the original and the returned object at the same time.
        """
        other = copy(self)
        other._names_others, other._decided = names_others, None  # noqa: SLF001 - it is a copy
        return other

    def session(self) -> Session:
        """Return a session of the plugins on the current cluster, without any decision."""
        return self._run(())

    def _run(self, actions: Sequence[Action]) -> Session:
        memory = self.dump.own_inputs.memory
        return self._planning.run(
            take_snapshot(self.state),
            self.now,
            actions,
            names_others=self._names_others,
            provisioning=newest(self.dump.objects_of(PROVISIONING_REQUESTS)) if self._provisioning_served else {},
            provisioning_served=self._provisioning_served,
            usage=self.dump.usage,
            arrived={uid: frozenset(slots) for uid, slots in memory.arrived.items()},
            avoided=still_avoided(memory.avoided, self.now),
            gone=frozenset(memory.gone),
        )

    def knows(self, resource: Resource[Any]) -> bool:
        """Return True if the dump has all objects of the kind."""
        return resource.full_name not in self.dump.unread

    def pods_of(self, key: str) -> list[Pod]:
        """Return the pods of a gang."""
        return self._pods_of.get(key, [])

    @contextmanager
    def tried_nodes(self, nodes: list[Node]) -> Iterator[None]:
        """Within the `with` block, replace the nodes with these names, or add missing nodes."""
        index, names = self.state.nodes.index, [node.metadata.name for node in nodes]
        originals = {name: self.state.nodes.nodes[index[name]] for name in names if name in index}
        for node in nodes:
            self.state.on_node(originals.get(node.metadata.name), node)
        try:
            yield
        finally:
            for node in nodes:
                self.state.on_node(node, originals.get(node.metadata.name))

    @contextmanager
    def tried_without(self, gangs: list[str], pods: list[Pod]) -> Iterator[None]:
        """Within the `with` block, remove the given gangs and the given pods without a gang."""
        groups = [self.state.groups[key] for key in gangs]
        placements = [self.state.placements[key] for key in gangs if key in self.state.placements]
        removed = [pod for key in gangs for pod in self.pods_of(key)] + pods
        for group in groups:  # the workload ends but is not deleted, because a re-created gang would be younger
            self.state.on_pod_group(group, replace(group, status=replace(group.status, phase="Completed")))
        for placement in placements:
            over = replace(placement, status=replace(placement.status, phase="Abandoned"))
            self.state.on_placement(placement, over)
        for pod in removed:
            self.state.on_pod(pod, None)
        try:
            yield
        finally:
            for pod in removed:
                self.state.on_pod(None, pod)
            for placement in placements:
                self.state.on_placement(None, placement)
            for group in groups:
                self.state.on_pod_group(None, group)
