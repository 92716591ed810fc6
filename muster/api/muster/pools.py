"""Node pools: disjoint sets of a cluster's nodes, each with its own kube-scheduler and extender. Pure.

The name of a pool is the value of a label on nodes, root queues, PodGroups and Placements. The default pool has no name
and contains all objects without the label, so a cluster without pools has only this pool. The name of the pool is part
of the name of its kube-scheduler's profile. The `schedulerName` of a pod, which is immutable, therefore determines
which kube-scheduler and extender place the pod.
"""

import re
from typing import Final

from muster.api import names
from muster.api.kubernetes.meta import ObjectMeta

DEFAULT_POOL: Final = ""
LONGEST_NAME: Final = 40
"""Maximum length of a pool's name, which is a part of the names of its Deployment, Lease and pods."""
PREFIX: Final = f"{names.SCHEDULER}-"
"""Prefix of the schedulers of all pools except the default one."""
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def is_pool_name(name: str) -> bool:
    """Return True for a valid pool name: lower-case letters, digits and `-`, at most 40 characters."""
    return len(name) <= LONGEST_NAME and _NAME.fullmatch(name) is not None


def scheduler_of_pool(pool: str) -> str:
    """Return the name of the pool's profile: `muster`, or `muster-NAME`."""
    return f"{PREFIX}{pool}" if pool else names.SCHEDULER


def pool_of_scheduler(scheduler: str) -> str | None:
    """Return the node pool to which this scheduler name belongs; None for a scheduler other than Muster's."""
    if scheduler in names.SCHEDULERS:
        return DEFAULT_POOL
    return scheduler.removeprefix(PREFIX) if is_musters(scheduler) else None


def is_musters(scheduler: str) -> bool:
    """Return True if this scheduler name is a profile of Muster's kube-scheduler, of any pool."""
    return scheduler in names.SCHEDULERS or (scheduler.startswith(PREFIX) and len(scheduler) > len(PREFIX))


def in_pool(scheduler: str, pool: str) -> str:
    """Return the scheduler name for pods of the node pool; only the default pool also has the alias `volcano`."""
    return scheduler if pool_of_scheduler(scheduler) == pool else scheduler_of_pool(pool)


def pool_of(meta: ObjectMeta) -> str:
    """Return the node pool that an object's label names; "" for the default pool."""
    return meta.labels.get(names.NODE_POOL, DEFAULT_POOL)


def labels_of(pool: str) -> dict[str, str]:
    """Return the labels for an object of the node pool; none for the default pool."""
    return {names.NODE_POOL: pool} if pool else {}


def selector_of(pool: str) -> str:
    """Return the label selector of the pool's objects; every object matches the selector of at most one pool."""
    return f"{names.NODE_POOL}={pool}" if pool else f"!{names.NODE_POOL}"


def lease_of(pool: str) -> str:
    """Return the name of the Lease by which the pool's kube-schedulers elect their leader."""
    return f"{names.SCHEDULER_LEASE}-{pool}" if pool else names.SCHEDULER_LEASE


def words(pool: str) -> str:
    """Return the pool's name in the form in which sentences use it."""
    return f"node pool {pool!r}" if pool else "the default node pool"
