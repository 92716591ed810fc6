"""Node pools: disjoint parts of the nodes of a cluster, each planned by a pair of kube-scheduler and extender. Pure.

The name of a pool is the value of one label, on nodes, on root queues, and on PodGroups and Placements. The default
pool has no name, and what lacks the label is in it: a cluster without pools is all of it. The profile of its
kube-scheduler carries the name, so the scheduler of a pod, which cannot change, says which pair places it.
"""

import re
from typing import Final

from muster.api import names
from muster.api.kubernetes.meta import ObjectMeta

DEFAULT_POOL: Final = ""
LONGEST_NAME: Final = 40
"""Letters of a pool's name, which is a part of the names of its Deployment, its Lease and its pods."""
PREFIX: Final = f"{names.SCHEDULER}-"
"""Of the schedulers of all pools but the default one."""
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def is_pool_name(name: str) -> bool:
    """Return True if a pool can be called so: lower-case letters, digits and `-`, at most 40."""
    return len(name) <= LONGEST_NAME and _NAME.fullmatch(name) is not None


def scheduler_of_pool(pool: str) -> str:
    """Return the name of the pool's profile: `muster`, or `muster-NAME`."""
    return f"{PREFIX}{pool}" if pool else names.SCHEDULER


def pool_of_scheduler(scheduler: str) -> str | None:
    """Return the pool whose pair places the pods of this scheduler; None if it is none of Muster's."""
    if scheduler in names.SCHEDULERS:
        return DEFAULT_POOL
    return scheduler.removeprefix(PREFIX) if is_musters(scheduler) else None


def is_musters(scheduler: str) -> bool:
    """Return True if this is a profile of Muster's kube-scheduler, of any pool."""
    return scheduler in names.SCHEDULERS or (scheduler.startswith(PREFIX) and len(scheduler) > len(PREFIX))


def in_pool(scheduler: str, pool: str) -> str:
    """Return the name by which pods of the pool know this scheduler of Muster's: `volcano` stays in the default one."""
    return scheduler if pool_of_scheduler(scheduler) == pool else scheduler_of_pool(pool)


def pool_of(meta: ObjectMeta) -> str:
    """Return the pool that an object's own label names."""
    return meta.labels.get(names.NODE_POOL, DEFAULT_POOL)


def labels_of(pool: str) -> dict[str, str]:
    """Return the labels of an object of the pool: none for the default one."""
    return {names.NODE_POOL: pool} if pool else {}


def selector_of(pool: str) -> str:
    """Return the label selector of the pool's own objects; every object matches that of one pool at most."""
    return f"{names.NODE_POOL}={pool}" if pool else f"!{names.NODE_POOL}"


def lease_of(pool: str) -> str:
    """Return the name of the Lease of the pool's pair, by which one kube-scheduler of it leads."""
    return f"{names.SCHEDULER_LEASE}-{pool}" if pool else names.SCHEDULER_LEASE


def words(pool: str) -> str:
    """Return the pool as a sentence names it."""
    return f"node pool {pool!r}" if pool else "the default node pool"
