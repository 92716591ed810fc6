"""The gang of a workload: the pods that start together, and the number that exists from the beginning."""

from collections.abc import Mapping
from typing import Any

from muster.resources.vector import Vector, add, scale
from muster.runtime.info import Info, PodSet
from muster.runtime.plan import Gang
from muster.runtime.settings import ELASTIC
from muster.workloads.worlds import needed


def members(info: Info) -> list[PodSet]:
    """The pod sets whose pods start together."""
    return [pod_set for pod_set in together(info) if pod_set.count]


def together(info: Info) -> list[PodSet]:
    """The members, also those without pods now: all pod sets but those that must be complete before others begin."""
    before = {name for pod_set in info.pod_sets for name, status in pod_set.after.items() if status == "Complete"}
    initializers = {"dataset-initializer", "model-initializer"}
    return [pod_set for pod_set in info.pod_sets if pod_set.role not in initializers and pod_set.name not in before]


def gang(info: Info, plugin: str, details: Mapping[str, Any] | None = None) -> Gang:
    """The gang of a workload.

    A pod that waits until others are ready does not exist while the gang is placed; if it counted in the minimum, the
    gang would never start. Of elastic pods the minimum counts. Limits stand in for missing requests.
    """
    inside = members(info)
    there = {pod_set.name for pod_set in inside}
    minimum, resources = 0, Vector()
    for pod_set in inside:
        if not any(name in there for name in pod_set.after):
            count = _needed(info, pod_set)
            minimum += count
            resources = add(resources, scale(pod_set.requests, count))
    return Gang(plugin, tuple(pod_set.name for pod_set in inside), minimum, resources, details or {})


def _needed(info: Info, pod_set: PodSet) -> int:
    elastic = info.setting(ELASTIC)
    return needed(pod_set.count, elastic.text if elastic and pod_set.role == "trainer" else None)
