"""A picture brought to life: the planner's state and plugins, on which cycles can be run and changes tried."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from msgspec.structs import replace

from extender.explain.clusterdump import ClusterDump, state_of
from extender.planner.actions.allocate import wants_nodes
from extender.planner.cycle import parts_of, run_cycle
from extender.planner.framework import config
from extender.planner.framework.answers import Causes
from extender.planner.framework.registry import Action
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import RECOVERY_S, CycleInputs, take
from extender.planner.scaleup.requests import newest
from extender.planner.state.gangs import GangView
from extender.planner.topology.hypernodes import HyperNodeTree
from muster.api.kubernetes.autoscaling import PROVISIONING_REQUESTS
from muster.api.kubernetes.core import PODS, Node, Pod
from muster.api.muster.gang import gang_of


class WhatIf:
    """The cluster of a picture. Every cycle is new; what `tried_*` changes is undone when it ends.

    `recovery_s` is what the extender of that cluster has as its recoveryTimeout.
    """

    def __init__(self, dump: ClusterDump, *, recovery_s: float = RECOVERY_S) -> None:
        self.dump = dump
        self.now = dump.taken_at
        self._provisioning_served = True if dump.has(PROVISIONING_REQUESTS) else None
        self.state = state_of(dump)
        self.state.refresh()
        self.recovery_s = recovery_s
        self._config = config.parse(dump.scheduler_config)
        _, self._plugins = parts_of(self._config)
        self._causes = Causes()  # one for all cycles, as plugins keep codes from one to the next
        self._hyper_nodes = HyperNodeTree()
        self._pods_of: dict[str, list[Pod]] = {}
        for pod in dump.of(PODS):
            if gang := gang_of(pod.metadata):
                self._pods_of.setdefault(f"{pod.metadata.namespace}/{gang}", []).append(pod)

    def cycle(self) -> Session:
        """What the planner would decide now."""
        actions, _ = parts_of(self._config)  # new ones: what actions remember is of a cluster without the trial
        return self._run(actions)

    def session(self) -> Session:
        """The cluster as it is, with the plugins' opinions and without any decision."""
        return self._run(())

    def _run(self, actions: Sequence[Action]) -> Session:
        inputs = CycleInputs(
            snapshot=take(self.state),
            now=self.now,
            causes=self._causes,
            hyper_nodes=self._hyper_nodes,
            provisioning=newest(self.dump.of(PROVISIONING_REQUESTS)) if self._provisioning_served else {},
            provisioning_served=self._provisioning_served,
            recovery_s=self.recovery_s,
        )
        return run_cycle(inputs, actions, self._plugins)

    def waiting(self, session: Session) -> list[GangView]:
        """Gangs that wait for nodes, in the order in which they are tried."""
        return session.ordered_gangs([gang for gang in session.snapshot.gangs if waits(session, gang)])

    def pods_of(self, key: str) -> list[Pod]:
        """The pods of a gang."""
        return self._pods_of.get(key, [])

    @contextmanager
    def tried_nodes(self, nodes: list[Node]) -> Iterator[None]:
        """Has these nodes be as they are given here for a while; new names are added."""
        before = {name: column for name, column in self.state.nodes.index.items() if name in _names(nodes)}
        originals = {name: self.state.nodes.nodes[column] for name, column in before.items()}
        for node in nodes:
            self.state.on_node(originals.get(node.metadata.name), node)
        try:
            yield
        finally:
            for node in nodes:
                self.state.on_node(node, originals.get(node.metadata.name))

    @contextmanager
    def tried_without(self, gangs: list[str], pods: list[Pod]) -> Iterator[None]:
        """Has these gangs, and these pods of no gang, be gone for a while."""
        groups = [self.state.groups[key] for key in gangs]
        placements = [self.state.placements[key] for key in gangs if key in self.state.placements]
        removed = [pod for key in gangs for pod in self.pods_of(key)] + pods
        for group in groups:  # over, and not gone: a gang that comes back would be younger than it was
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


def waits(session: Session, gang: GangView) -> bool:
    """Whether the gang has not started and has nothing."""
    if gang.started or gang.active or gang.group.status.phase == "Completed":
        return False
    return gang.group.status.phase in {"", "Pending"} or wants_nodes(session, gang)


def _names(nodes: list[Node]) -> set[str]:
    return {node.metadata.name for node in nodes}
