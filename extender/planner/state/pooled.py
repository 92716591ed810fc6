"""Node pool of a pod or a Volcano Job without a label of its own. Pure."""

from collections.abc import Container

from muster.api.kubernetes.core import Pod
from muster.api.muster.pools import DEFAULT_POOL, pool_of_scheduler
from muster.api.volcano.batch import Job
from muster.volcano.tasks import scheduler_of
from muster.workloads.charges import marked
from muster.workloads.table import gang_of


def job_belongs(job: Job, pool: str) -> bool:
    """Return True for a Volcano Job whose gang is of the pool; its scheduler cannot change."""
    return (pool_of_scheduler(scheduler_of(job.spec)) or DEFAULT_POOL) == pool


def pod_belongs(pod: Pod, pool: str, nodes: Container[str], groups: Container[str]) -> bool:
    """Return True for a pod of the pool's scheduler, and for any on one of the pool's `nodes`.

    So is one of a foreign scheduler in a gang of the pool (`groups`: keys of those). In the default pool it is also one
    that asks Muster by its markers, or that has no node yet.
    """
    of, node = pool_of_scheduler(pod.spec.scheduler_name), pod.spec.node_name
    if of == pool or (node and node in nodes):
        return True
    if of is not None:
        return False
    gang = gang_of(pod)
    if gang and f"{pod.metadata.namespace}/{gang}" in groups:
        return True
    return pool == DEFAULT_POOL and (not node or marked(pod.spec))
