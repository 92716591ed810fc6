"""Which of the nodes that would do is the best: full or empty ones, with or without GPUs, near certain pods.

Scores of all plugins add up. Each has a magnitude: a plugin of a larger one decides, smaller ones break its ties, as in
KAI-Scheduler.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from extender.planner.framework.registry import PlainPlugin, refuse_arguments
from extender.planner.framework.session import Session
from extender.planner.plugins.pernode import Domains
from extender.planner.state.podclass import PodClass
from muster.resources.vector import GPU, WHOLE

DENSITY = 9.0
"""Most that a placement strategy (binpack, spread) gives."""
RESOURCE_TYPE = 10.0
AVAILABILITY = 100.0
GPU_DENSITY = 1_000.0
TOPOLOGY = 10_000.0
KUBERNETES = 100_000.0
"""Preferences that users wrote in Kubernetes' own terms (preferred affinity)."""
STRATEGIES = ("binpack", "spread")
Scores = NDArray[np.float64]


def binpack(free: NDArray[np.int64], total: NDArray[np.int64]) -> Scores:
    """9 for the node with the least free, 0 for the one with the most, in between by proportion."""
    known = free[total > 0]
    if not len(known) or known.max() == known.min():
        return np.zeros(len(free))
    low, high = int(known.min()), int(known.max())
    scores: Scores = np.where(total > 0, DENSITY * (1 - (free - low) / (high - low)), 0.0)
    return scores


def spread(free: NDArray[np.int64], total: NDArray[np.int64]) -> Scores:
    """9 for an empty node, 0 for a full one."""
    scores: Scores = np.where(total > 0, DENSITY * free / np.maximum(total, 1), 0.0)
    return scores


class NodePlacement(PlainPlugin):
    """Full nodes first (binpack, the default) or empty nodes first (spread).

    Arguments `cpu` and `gpu` choose it for pods without and with GPUs.
    """

    name = "nodeplacement"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments, ("cpu", "gpu"))
        self._strategies = {"cpu": "binpack", "gpu": "binpack"} | dict(arguments)
        for resource, strategy in self._strategies.items():
            if strategy not in STRATEGIES:
                raise ValueError(f"plugin {self.name!r}: {resource} is {strategy!r}; valid: {', '.join(STRATEGIES)}")

    def on_session_open(self, session: Session) -> None:
        """Registers the score, by the resource that is dearest to the pod: GPUs if it has any, else CPUs."""
        session.hooks.node_order.add(lambda cls: self._scores(session, cls))

    def _scores(self, session: Session, cls: PodClass) -> Scores:
        resource = GPU if cls.requests.get(GPU) else "cpu"
        row = session.snapshot.axis.get(resource)
        if row is None:
            return np.zeros(len(session.snapshot.nodes))
        free, total = session.snapshot.free[row], session.snapshot.allocatable[row]
        strategy = self._strategies["gpu" if resource == GPU else "cpu"]
        return binpack(free, total) if strategy == "binpack" else spread(free, total)


class GpuPack(PlainPlugin):
    """Nodes with the fewest free GPUs first, above all other densities; of their GPUs that one which is used most."""

    name = "gpupack"
    _score = staticmethod(binpack)
    _fullest = 1.0

    def on_session_open(self, session: Session) -> None:
        """Registers the scores; pods without GPUs have none."""
        session.hooks.node_order.add(lambda cls: self._scores(session, cls))
        session.hooks.gpu_order.add(lambda _cls, _column, used: used * (self._fullest * DENSITY / WHOLE))

    def _scores(self, session: Session, cls: PodClass) -> Scores:
        row = session.snapshot.axis.get(GPU)
        if not cls.requests.get(GPU) or row is None:
            return np.zeros(len(session.snapshot.nodes))
        return self._score(session.snapshot.free[row], session.snapshot.allocatable[row]) * (GPU_DENSITY / DENSITY)


class GpuSpread(GpuPack):
    """Nodes with the most free GPUs first; of their GPUs that one which is used least."""

    name = "gpuspread"
    _score = staticmethod(spread)
    _fullest = -1.0


class GpuSharingOrder(PlainPlugin):
    """Pods that share GPUs prefer nodes of which a GPU that is used in part has room for them."""

    name = "gpusharingorder"

    def on_session_open(self, session: Session) -> None:
        """Registers the score; pods that share nothing have none."""
        session.hooks.node_order.add(lambda cls: self._scores(session, cls))

    @staticmethod
    def _scores(session: Session, cls: PodClass) -> Scores:
        nodes, devices = len(session.snapshot.nodes), session.snapshot.devices
        if cls.gpu is None:
            return np.zeros(nodes)
        room = devices.room(cls.gpu, np.zeros(nodes, dtype=np.int64))
        scores: Scores = np.where(room > 0, GPU_DENSITY, 0.0)
        return scores


class ResourceType(PlainPlugin):
    """Pods that need no GPU prefer nodes that have none."""

    name = "resourcetype"

    def on_session_open(self, session: Session) -> None:
        """Registers the score; pods with GPUs have none."""
        session.hooks.node_order.add(lambda cls: self._scores(session, cls))

    @staticmethod
    def _scores(session: Session, cls: PodClass) -> Scores:
        row = session.snapshot.axis.get(GPU)
        if cls.requests.get(GPU) or row is None:
            return np.zeros(len(session.snapshot.nodes))
        scores: Scores = np.where(session.snapshot.allocatable[row] == 0, RESOURCE_TYPE, 0.0)
        return scores


class NodeAvailability(PlainPlugin):
    """Nodes where the pod fits now go before nodes where it would only fit on what is being freed."""

    name = "nodeavailability"

    def on_session_open(self, session: Session) -> None:
        """Registers the score; it is the same for all nodes with room."""
        session.hooks.node_order.add(lambda cls: np.where(session.room(cls) > 0, AVAILABILITY, 0.0))


class PodAffinity(PlainPlugin):
    """Preferred pod affinity and anti-affinity: nodes whose domain holds more of the pods that are wished for first.

    Sums weight times pods per domain, and scales the sum so that the best node gets the full magnitude. Counted are the
    pods that are there when the cycle begins; wishes of running pods about the new one are not.
    """

    name = "podaffinity"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        super().__init__(arguments)
        self._domains = Domains()  # lives from cycle to cycle

    def on_session_open(self, session: Session) -> None:
        """Registers the score; pods without such wishes have none."""
        session.hooks.node_order.add(lambda cls: self.shares(session, cls) * KUBERNETES)

    def shares(self, session: Session, cls: PodClass) -> Scores:
        """1 for nodes that meet most of the pod's wishes, 0 for those that meet the fewest; all 0 without wishes."""
        sums = np.zeros(len(session.snapshot.nodes))
        for wish in cls.neighbours.wishes:
            counts = session.snapshot.pod_counts.get(wish.query.mark)
            if counts is None:
                continue
            codes, number = self._domains.of(wish.topology_key, session.snapshot)
            pods = np.bincount(codes[codes >= 0], weights=counts[codes >= 0], minlength=number)
            sums += np.where(codes >= 0, np.append(pods, 0.0)[codes], 0.0) * wish.weight
        low, high = sums.min(initial=0.0), sums.max(initial=0.0)
        return (sums - low) / (high - low) if high > low else sums * 0.0
