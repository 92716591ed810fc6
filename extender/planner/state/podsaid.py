"""What a pod itself says that concerns Muster, in its annotations and labels; most pods say nothing."""

from msgspec import Struct

from extender.planner.state.podshape import pin_of
from muster.api import names
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.gang import Seat, epoch_of, gang_of, seat_of
from muster.resources import topology
from muster.resources.topology import PodTopology

KEYS = frozenset(
    (
        *(names.GROUP_NAME, names.GANG, names.COSCHEDULING_GROUP),
        *(names.TASK_SPEC, names.TASK_INDEX, names.MEMBER_INDEX, names.COMPLETION_INDEX, names.POD_INDEX),
        *(names.NODE, names.EPOCH, names.PODS_SAFE_TO_EVICT, names.SAFE_TO_EVICT),
        *(names.QUEUE_NAME, names.QUEUE, names.VOLCANO_QUEUE, names.PREEMPTABLE),
        *names.TOPOLOGY_KEYS,
        *names.KUEUE_TOPOLOGY_KEYS,
    )
)
"""Annotations and labels that are read here."""


class Said(Struct, frozen=True, gc=False):
    """What is told at the fields of `planner.state.podrecord.PodRecord`, where these are."""

    gang: str | None = None
    seat: Seat | None = None
    epoch: int | None = None
    pin: str = ""
    evictable: str = ""
    evictable_by_us: bool = False
    queue: str = ""
    preemptable: bool = True
    topology: PodTopology | None = None


NOTHING = Said()


def said_by(meta: ObjectMeta) -> Said:
    """What a pod says; known at once for those that carry none of the keys."""
    if KEYS.isdisjoint(meta.annotations) and KEYS.isdisjoint(meta.labels):
        return NOTHING
    return read(meta)


def read(meta: ObjectMeta) -> Said:
    """The same, from a look at each of the keys."""
    annotations, labels = meta.annotations, meta.labels
    gang = gang_of(meta)
    return Said(
        gang=f"{meta.namespace}/{gang}" if gang else None,
        seat=seat_of(meta),
        epoch=epoch_of(meta),
        pin=pin_of(meta),
        evictable=annotations.get(names.PODS_SAFE_TO_EVICT, ""),
        evictable_by_us=names.SAFE_TO_EVICT in annotations,
        queue=labels.get(names.QUEUE_NAME) or labels.get(names.QUEUE) or annotations.get(names.VOLCANO_QUEUE, ""),
        preemptable=preemptable(meta),
        topology=topology.of_pods(annotations, labels),
    )


def preemptable(meta: ObjectMeta) -> bool:
    """Whether a pod or PodGroup does not forbid that it is evicted to make room for others."""
    return "false" not in {meta.labels.get(names.PREEMPTABLE), meta.annotations.get(names.PREEMPTABLE)}
