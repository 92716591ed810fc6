"""The node pool to which pods and Volcano Jobs belong; these objects have no pool label."""

from collections.abc import Container

from muster.api.kubernetes.core import Pod
from muster.api.muster.pools import DEFAULT_POOL, pool_of_scheduler
from muster.api.volcano.batch import Job
from muster.volcano.tasks import scheduler_of
from muster.workloads.charges import marked
from muster.workloads.table import gang_of


def job_belongs(job: Job, pool: str) -> bool:
    """Return True for a Volcano Job whose gang belongs to the pool; the Job's scheduler cannot change."""
    return (pool_of_scheduler(scheduler_of(job.spec)) or DEFAULT_POOL) == pool


def pod_belongs(pod: Pod, pool: str, nodes: Container[str], groups: Container[str]) -> bool:
    """Return True for a pod of the pool's scheduler, and for any pod on one of the pool's `nodes`.

    A pod of another scheduler also belongs to the pool if it is in a gang of the pool; `groups` contains the pool's
    gangs. Pods with Muster's marker resources and pods without a node also belong to the default pool.
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
