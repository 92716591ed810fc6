"""Reads what rows of gangs are made of. What a user may not read, or a cluster does not have, is left out."""

from collections.abc import Callable
from typing import Any, TypeVar

from muster.api.base import Resource
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.core import NODES, PODS
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup
from muster.kube.client import Client
from muster.kube.errors import Forbidden, NotFound
from musterctl.cluster import failing_as
from musterctl.gangs.forecast import Cluster
from musterctl.gangs.rows import Objects

T = TypeVar("T")


def read(client: Client, namespace: str | None) -> Objects:
    """Return the objects of one namespace, or of all; Failed if not even PodGroups may be listed."""
    version, groups = "", list[PodGroup]()
    with failing_as("list", client, POD_GROUPS):
        for page in client.pages(POD_GROUPS, namespace):
            groups += page
            version = page.metadata.resource_version
    return Objects(
        version=version,
        groups=groups,
        pods=may_list(client, PODS, namespace),
        placements=may_list(client, PLACEMENTS, namespace),
        jobs=may_list(client, JOBS, namespace),
        train_jobs=may_list(client, TRAIN_JOBS, namespace),
    )


def read_cluster(client: Client, objects: Objects, *, everything: bool) -> Cluster | None:
    """Return the whole cluster, of which these are `everything` or one namespace; None if it may not be read."""
    nodes = may_list(client, NODES)
    if nodes is None or (not everything and may_list(client, POD_GROUPS) is None):
        return None
    whole = objects if everything else read(client, None)
    return None if whole.pods is None else Cluster(whole, nodes)


def may_list(client: Client, resource: Resource[T], namespace: str | None = None, **selectors: Any) -> list[T] | None:
    """Return the objects of a kind; None if the user may not list them, or the cluster does not know the kind."""
    try:
        return client.list(resource, namespace, **selectors)
    except (Forbidden, NotFound):
        return None


def unread(objects: Objects) -> list[str]:
    """Return the kinds that rows are made without, for a hint."""
    asked: dict[str, Callable[[Objects], object]] = {
        "pods": lambda of: of.pods,
        "jobs": lambda of: of.jobs,
    }
    return [kind for kind, of in asked.items() if of(objects) is None]
