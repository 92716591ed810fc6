"""The kinds of objects that the planner reads, each with the method of the state that receives it.

The watches (`extender.cluster`), `muster explain` and `muster snapshot` all use this table of kinds.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from extender.planner.state.state import PlannerState
from muster.api.base import Resource
from muster.api.kubernetes.core import NAMESPACES, NODES, PODS, PRIORITY_CLASSES, Namespace, Pod
from muster.api.kubernetes.devices import (
    CLAIM_TEMPLATES,
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from muster.api.kubernetes.quota import BUDGETS, RESOURCE_QUOTAS
from muster.api.kubernetes.scheduling import (
    COMPOSITE_POD_GROUPS,
    NATIVE_POD_GROUPS,
    WORKLOADS,
    CompositePodGroup,
    NativePodGroup,
    Workload,
)
from muster.api.kubernetes.storage import CLAIMS, STORAGE_CLASSES, VOLUMES
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES, PodGroup
from muster.api.volcano.topology import HYPER_NODES, TOPOLOGIES


@dataclass(frozen=True, slots=True)
class Fed:
    """One kind of object; `apply(state, old, new)` passes a changed object to the state."""

    resource: Resource[Any]
    apply: Callable[[PlannerState, Any, Any], bool | None]
    optional: bool = False
    """True for a kind of another project; objects of the kind are not read if its CRD is not installed."""
    newer: bool = False
    """True for a Kubernetes kind that older API servers do not serve. The planner reads no objects of the kind from an
    older API server."""
    pooled: bool = False
    """True if a label of the objects names their node pool, and the API server selects objects by this label."""
    limited: bool = False
    """True if tenants create objects of the kind and can create large objects. Caches limit the memory that such
    objects use per namespace. Pods and claims have no such limit, because all pods and claims must be counted."""
    own: Callable[[Any, Any], bool] = lambda _old, _new: False
    """Function of the old and the new object. It returns True for a change that Muster itself has written and has
    already planned with."""


def _only_status(old: PodGroup | None, new: PodGroup | None) -> bool:
    """Return True if only the status of a PodGroup, which the extender writes, has changed."""
    if old is None or new is None:
        return False
    before, after = old.metadata, new.metadata
    kept = (before.uid, before.labels, before.annotations, before.deletion_timestamp, old.spec)
    return kept == (after.uid, after.labels, after.annotations, after.deletion_timestamp, new.spec)


FEED = (
    Fed(NODES, PlannerState.on_node, pooled=True),
    Fed(NAMESPACES, PlannerState.on_namespace),
    Fed(STORAGE_CLASSES, PlannerState.on_storage_class),
    Fed(VOLUMES, PlannerState.on_volume),
    Fed(CLAIMS, PlannerState.on_claim, limited=True),
    Fed(DEVICE_CLASSES, lambda state, *change: state.claimants.on_class(*change), newer=True),
    Fed(DEVICE_TAINT_RULES, lambda state, *change: state.claimants.on_rule(*change), newer=True),
    Fed(RESOURCE_SLICES, lambda state, *change: state.claimants.on_slice(*change), newer=True),
    Fed(CLAIM_TEMPLATES, lambda state, *change: state.claimants.on_template(*change), newer=True, limited=True),
    Fed(RESOURCE_CLAIMS, lambda state, *change: state.claimants.on_claim(*change), newer=True),
    Fed(PRIORITY_CLASSES, PlannerState.on_priority_class),
    Fed(BUDGETS, PlannerState.on_budget, limited=True),
    Fed(QUEUES, PlannerState.on_queue),
    Fed(RESOURCE_QUOTAS, PlannerState.on_resource_quota),
    Fed(HYPER_NODES, PlannerState.on_hyper_node),
    Fed(TOPOLOGIES, PlannerState.on_topology, optional=True),
    Fed(JOBS, PlannerState.on_job, limited=True),
    Fed(POD_GROUPS, PlannerState.on_pod_group, pooled=True, limited=True, own=_only_status),
    Fed(WORKLOADS, lambda state, *change: state.native.on_workload(*change), newer=True, limited=True),
    Fed(COMPOSITE_POD_GROUPS, lambda state, *change: state.native.on_composite(*change), newer=True, limited=True),
    Fed(NATIVE_POD_GROUPS, lambda state, *change: state.native.on_group(*change), newer=True, limited=True),
    Fed(PLACEMENTS, PlannerState.on_placement, pooled=True, own=lambda _, new: new is not None),
    Fed(PODS, PlannerState.on_pod),
)


def natives_of(
    natives: Sequence[NativePodGroup],
    pods: Iterable[Pod],
    *,
    composites: Iterable[CompositePodGroup],
    workloads: Iterable[Workload],
    namespaces: Iterable[Namespace],
) -> list[PodGroup]:
    """Return the native PodGroups that are gangs of Muster according to these pods, as the planner determines them."""
    if not natives:
        return []
    state = PlannerState()
    for composite in composites:
        state.native.on_composite(None, composite)
    for workload in workloads:
        state.native.on_workload(None, workload)
    for each in namespaces:
        state.on_namespace(None, each)
    for native in natives:
        state.native.on_group(None, native)
    for pod in pods:
        if pod.spec.scheduling_group is not None:
            state.on_pod(None, pod)
    return list(state.groups.values())
