"""The node pools of a dump. A dump contains the whole cluster, but a cycle plans a single pool."""

import dataclasses
from typing import Any

from extender.explain.clusterdump import ClusterDump
from extender.planner.state.pooled import job_belongs, pod_belongs
from muster.api.kubernetes.core import NODES, PODS
from muster.api.muster.placement import PLACEMENTS
from muster.api.muster.pools import DEFAULT_POOL, pool_of, pool_of_scheduler
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.volcano.tasks import scheduler_of
from muster.workloads.owners import owner_names

_LABELLED: tuple[Any, ...] = (NODES, POD_GROUPS, PLACEMENTS)


def pools_of(dump: ClusterDump) -> list[str]:
    """Return the pools that have nodes, queues or gangs, the default pool first."""
    labelled = (each for kind in (*_LABELLED, QUEUES) for each in dump.objects_of(kind))
    return sorted({DEFAULT_POOL, *(pool_of(each.metadata) for each in labelled)})


def in_pool(dump: ClusterDump, pool: str) -> ClusterDump:
    """Return the part of a dump that the processes of a node pool watch, with the pool's configuration."""
    if pools_of(dump) == [pool]:
        return dump
    objects = dict(dump.objects)
    for kind in _LABELLED:
        objects[kind.full_name] = [each for each in dump.objects_of(kind) if pool_of(each.metadata) == pool]
    nodes = {node.metadata.name for node in objects[NODES.full_name]}
    groups = {group.metadata.key for group in objects[POD_GROUPS.full_name]}
    objects[JOBS.full_name] = [job for job in dump.objects_of(JOBS) if job_belongs(job, pool)]
    objects[PODS.full_name] = [pod for pod in dump.objects_of(PODS) if pod_belongs(pod, pool, nodes, groups)]
    config = dump.pool_configs.get(pool, dump.scheduler_config)
    return dataclasses.replace(dump, scheduler_config=config, objects=objects, pool=pool)


def pool_of_object(dump: ClusterDump, kind: str, name: str, namespace: str) -> str:
    """Return the node pool of the named `job`, `gang` or `pod`; the default pool if there is no such object."""
    if kind == "pod":
        pod = dump.pod(namespace, name)
        return pool_of_scheduler(pod.spec.scheduler_name) or DEFAULT_POOL if pod else DEFAULT_POOL
    for group in dump.objects_of(POD_GROUPS):
        if group.metadata.namespace == namespace and name in {group.metadata.name, *owner_names(group.metadata)}:
            return pool_of(group.metadata)
    for job in dump.objects_of(JOBS):
        if (job.metadata.namespace, job.metadata.name) == (namespace, name):
            return pool_of_scheduler(scheduler_of(job.spec)) or DEFAULT_POOL
    return DEFAULT_POOL
