"""Reader of the objects for lists of gangs.

Kinds that the user cannot read, or that the cluster does not serve, are omitted.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from gangs.forecast import ForecastCluster
from gangs.plainjobs import HELD_KINDS, is_held_by_user, refusals, wants_pods
from gangs.rows import RowSources
from muster.api.base import Resource
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.core import EVENTS, INDEXED_JOBS, NAMESPACES, NODES, PODS, Namespace, Pod
from muster.api.kubernetes.scheduling import COMPOSITE_POD_GROUPS, NATIVE_POD_GROUPS, WORKLOADS, NativePodGroup
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.flow import JOB_FLOWS
from muster.api.volcano.scheduling import EVICTED, POD_GROUPS, TOO_FEW_PODS, PodGroup
from muster.kube.client import Client
from muster.kube.errors import Forbidden, NotFound
from musterctl.cluster import failing_as, may_list, whole

T = TypeVar("T")


def read(client: Client, namespace: str | None) -> RowSources:
    """Return the objects of one namespace, or of all namespaces.

    Raise Failed if the user is not allowed to list PodGroups.
    """
    versions: dict[Resource[Any], str] = {}
    with failing_as("list", client, POD_GROUPS):
        groups = _listed(client, POD_GROUPS, namespace, versions)
    natives = list[NativePodGroup]()
    with suppress(Forbidden, NotFound):
        natives = _listed(client, NATIVE_POD_GROUPS, namespace, versions)
    pods = may_list(client, PODS, namespace)
    return RowSources(
        versions=versions,
        groups=[*groups, *native_gangs(client, namespace, natives, pods or ())],
        pods=pods,
        placements=may_list(client, PLACEMENTS, namespace),
        jobs=may_list(client, JOBS, namespace),
        train_jobs=may_list(client, TRAIN_JOBS, namespace),
    )


def read_all(client: Client, namespace: str | None) -> RowSources:
    """Return the objects that `read` returns, and also Jobs, JobFlows, held workloads, and reasons for missing pods."""
    objects = read(client, namespace)
    with suppress(Forbidden, NotFound):
        objects.plain_jobs = _listed(client, INDEXED_JOBS, namespace, objects.versions)
    objects.job_flows = may_list(client, JOB_FLOWS, namespace) or []
    for kind in HELD_KINDS:
        listed = may_list(client, whole(kind.resource), namespace) or ()
        objects.held += ((kind, each) for each in listed if is_held_by_user(kind, each))
    objects.namespaces = (may_list(client, NAMESPACES) or []) if namespace is None else _namespace(client, namespace)
    if any(map(_lacks_pods, objects.groups)) or any(map(wants_pods, objects.plain_jobs)):
        objects.refusals = refusals(may_list(client, EVENTS, namespace, field_selector="reason=FailedCreate") or ())
    return objects


def _lacks_pods(group: PodGroup) -> bool:
    """Return True for a gang that waits for pods of its owner."""
    conditions = group.status.conditions
    return any(each.status == "True" and each.reason in {TOO_FEW_PODS, EVICTED} for each in conditions)


def _listed(
    client: Client, resource: Resource[T], namespace: str | None, versions: dict[Resource[Any], str]
) -> list[T]:
    """Return the objects of a kind; store the resource version of the list in `versions`."""
    items = list[T]()
    for page in client.pages(resource, namespace):
        items += page
        versions[resource] = page.metadata.resource_version
    return items


def native_gangs(
    client: Client, namespace: str | None, natives: Sequence[NativePodGroup], pods: Iterable[Pod]
) -> list[PodGroup]:
    """Return the native PodGroups that the planner treats as gangs, converted to Muster's PodGroups.

    The planner's rules also depend on the pods.
    """
    if not natives:
        return []
    from extender.planner.api import natives_of  # noqa: PLC0415 - half of what `muster ps` imports; few have them

    return natives_of(
        natives,
        pods,
        composites=may_list(client, COMPOSITE_POD_GROUPS, namespace) or (),
        workloads=may_list(client, WORKLOADS, namespace) or (),
        namespaces=(may_list(client, NAMESPACES) or ()) if namespace is None else _namespace(client, namespace),
    )


def _namespace(client: Client, name: str) -> list[Namespace]:
    try:
        return [client.get(NAMESPACES, name)]
    except (Forbidden, NotFound):
        return []


def read_cluster(client: Client, objects: RowSources, *, everything: bool) -> ForecastCluster | None:
    """Return the objects of the whole cluster, which are `objects` themselves if `everything` is true.

    Return None if the user is not allowed to read the whole cluster.
    """
    nodes = may_list(client, NODES)
    if nodes is None or (not everything and may_list(client, POD_GROUPS) is None):
        return None
    whole = objects if everything else read(client, None)
    return None if whole.pods is None else ForecastCluster(whole, nodes)


def unread(objects: RowSources) -> list[str]:
    """Return the names of the kinds that the user is not allowed to read, for a hint."""
    asked: dict[str, Callable[[RowSources], object]] = {"pods": lambda of: of.pods, "jobs": lambda of: of.jobs}
    return [kind for kind, of in asked.items() if of(objects) is None]
