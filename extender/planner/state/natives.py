"""The gangs among native PodGroups, of objects alone: what a state that is told of them takes for a gang. Pure."""

from collections.abc import Iterable, Sequence

from extender.planner.state.state import State
from muster.api.kubernetes.core import Namespace, Pod
from muster.api.kubernetes.scheduling import CompositePodGroup, NativePodGroup, Workload
from muster.api.volcano.scheduling import PodGroup


def natives_of(
    natives: Sequence[NativePodGroup],
    pods: Iterable[Pod],
    *,
    composites: Iterable[CompositePodGroup],
    workloads: Iterable[Workload],
    namespaces: Iterable[Namespace],
) -> list[PodGroup]:
    """Return those of the native PodGroups that are gangs of Muster's, as the planner takes them by these pods."""
    if not natives:
        return []
    state = State()
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
