"""Scores of nodes by density, GPUs and preferred pod affinity.

The scores of all plugins are added. As in KAI-Scheduler, the plugin with the largest range of scores decides, and
plugins with smaller ranges of scores break ties.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from extender.planner.framework.hooks import Scores
from extender.planner.framework.registry import PlainPlugin, refuse_arguments
from extender.planner.framework.session import Session
from extender.planner.state.podclass import PodClass
from muster.resources.gpus import is_gpu
from muster.resources.vector import GPU, WHOLE

DENSITY = 9.0
"""Highest score of the placement strategies binpack and spread."""
RESOURCE_TYPE = 10.0
AVAILABILITY = 100.0
GPU_DENSITY = 1_000.0
TOPOLOGY = 10_000.0
KUBERNETES = 100_000.0
"""Highest score of Kubernetes' own preferences, such as preferred affinity."""
STRATEGIES = ("binpack", "spread")


def binpack(free: NDArray[np.int64], total: NDArray[np.int64]) -> Scores:
    """Return scores from 9 for the node with the least free capacity to 0 for the node with the most free capacity."""
    known = free[total > 0]
    if not len(known) or known.max() == known.min():
        return np.zeros(len(free))
    low, high = int(known.min()), int(known.max())
    scores: Scores = np.where(total > 0, DENSITY * (1 - (free - low) / (high - low)), 0.0)
    return scores


def spread(free: NDArray[np.int64], total: NDArray[np.int64]) -> Scores:
    """Return scores from 9 for an empty node to 0 for a full node."""
    scores: Scores = np.where(total > 0, DENSITY * free / np.maximum(total, 1), 0.0)
    return scores


class NodeScore(PlainPlugin):
    """Base class of plugins that score nodes."""

    def on_session_open(self, session: Session) -> None:
        """Register the score of nodes."""
        session.hooks.node_order.add(partial(self._scores, session))

    def _scores(self, session: Session, cls: PodClass) -> Scores:
        raise NotImplementedError


class NodePlacement(NodeScore):
    """Score for full nodes (binpack, the default) or empty nodes (spread); argument `gpu` is for pods with GPUs."""

    name = "nodeplacement"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments, ("cpu", "gpu"))
        self._strategies = {"cpu": "binpack", "gpu": "binpack"} | dict(arguments)
        for resource, strategy in self._strategies.items():
            if strategy not in STRATEGIES:
                raise ValueError(f"plugin {self.name!r}: {resource} is {strategy!r}; valid: {', '.join(STRATEGIES)}")

    def _scores(self, session: Session, cls: PodClass) -> Scores:
        resource = GPU if cls.requests.get(GPU) else "cpu"
        row = session.snapshot.axis.get(resource)
        if row is None:
            return np.zeros(len(session.snapshot.nodes))
        strategy = binpack if self._strategies["gpu" if resource == GPU else "cpu"] == "binpack" else spread
        return strategy(session.snapshot.free[row], session.snapshot.allocatable[row])


class GpuPack(NodeScore):
    """Score for nodes with the fewest free GPUs, and the most used GPU; it outweighs other density plugins."""

    name = "gpupack"
    _score = staticmethod(binpack)
    _fullest = 1.0

    def on_session_open(self, session: Session) -> None:
        """Register scores of nodes and GPUs for pods with GPUs."""
        super().on_session_open(session)
        session.hooks.gpu_order.add(lambda _cls, _column, used: used * (self._fullest * DENSITY / WHOLE))

    def _scores(self, session: Session, cls: PodClass) -> Scores:
        row = session.snapshot.axis.get(GPU)
        if not cls.requests.get(GPU) or row is None:
            return np.zeros(len(session.snapshot.nodes))
        return self._score(session.snapshot.free[row], session.snapshot.allocatable[row]) * (GPU_DENSITY / DENSITY)


class GpuSpread(GpuPack):
    """Score that prefers nodes with the most free GPUs, and the least used GPU of a node."""

    name = "gpuspread"
    _score = staticmethod(spread)
    _fullest = -1.0


class GpuSharingOrder(NodeScore):
    """Score for pods that share GPUs: prefers nodes where a partly used GPU has enough free capacity for the pod."""

    name = "gpusharingorder"

    def _scores(self, session: Session, cls: PodClass) -> Scores:
        nodes = np.zeros(len(session.snapshot.nodes), dtype=np.int64)
        if cls.gpu is None:
            return nodes.astype(np.float64)
        return np.where(session.snapshot.devices.room(cls.gpu, nodes) > 0, GPU_DENSITY, 0.0)


class ResourceType(NodeScore):
    """Score for pods without GPUs: prefers nodes that have neither whole GPUs nor MIG devices."""

    name = "resourcetype"

    def _scores(self, session: Session, cls: PodClass) -> Scores:
        gpus = [name for name in session.snapshot.axis if is_gpu(name)]
        if cls.gpu is not None or any(cls.requests.get(name) for name in gpus) or not gpus:
            return np.zeros(len(session.snapshot.nodes))
        rows = [session.snapshot.axis[name] for name in gpus]
        return np.where((session.snapshot.allocatable[rows] == 0).all(axis=0), RESOURCE_TYPE, 0.0)


class NodeAvailability(NodeScore):
    """Score that prefers nodes with free capacity to nodes whose capacity is still being freed."""

    name = "nodeavailability"

    def _scores(self, session: Session, cls: PodClass) -> Scores:
        return np.where(session.room(cls) > 0, AVAILABILITY, 0.0)


class PodAffinityScore(NodeScore):
    """Score by preferred pod (anti-)affinity: weight times matching pods per domain, at most `KUBERNETES`."""

    name = "podaffinity"

    def _scores(self, session: Session, cls: PodClass) -> Scores:
        return self.shares(session, cls) * KUBERNETES

    def shares(self, session: Session, cls: PodClass) -> Scores:
        """Return scores from 1 for nodes that meet the most preferences to 0 for nodes that meet the fewest."""
        sums = np.zeros(len(session.snapshot.nodes))
        for wish in cls.neighbours.preferences:
            counts = session.snapshot.pod_counts.get(wish.query.mark)
            if counts is None:
                continue
            codes, number = session.labels.of(wish.topology_key)
            pods = np.bincount(codes[codes >= 0], weights=counts[codes >= 0], minlength=number)
            sums += np.where(codes >= 0, np.append(pods, 0.0)[codes], 0.0) * wish.weight
        low, high = sums.min(initial=0.0), sums.max(initial=0.0)
        return (sums - low) / (high - low) if high > low else sums * 0.0
