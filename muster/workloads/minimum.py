"""The smallest gang of pods that are not a Volcano Job's: how many of them must start together."""

from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import Object
from muster.api.limits import PODS, whole_number
from muster.workloads.table import gang_rules
from muster.workloads.worlds import needed, world_size


def min_member(pod: Pod, owner: Object | None) -> int:
    """How many pods must start together: as annotated, else the world of a framework, else 1.

    Never more than there are at a time: the owner may have been scaled down since, or say what its JobSet says. `owner`
    is the pod's controller, where it can be read.
    """
    world = world_size(pod, owner)
    most = world or _at_once(pod, owner)
    metas = (owner.metadata, pod.metadata) if owner else (pod.metadata,)
    for meta in metas:
        for key in (names.MIN_MEMBER, names.VOLCANO_GROUP_MIN_MEMBER):
            least = whole_number(meta.annotations.get(key), PODS.value)
            if least:
                return min(least, most or least)
    if not (most and owner and shaped(pod, owner)):
        return 1
    elastic = pod.metadata.annotations.get(names.ELASTIC) or owner.metadata.annotations.get(names.ELASTIC)
    return needed(most, elastic)


def _at_once(pod: Pod, owner: Object | None) -> int | None:
    """The most pods that there are at a time, where the kind of the owner says so."""
    rules = gang_rules(pod.metadata.controller)
    return rules.at_once(owner) if owner and rules and rules.at_once else None


def shaped(pod: Pod, owner: Object) -> bool:
    """Whether the webhook shapes these pods for a framework."""
    return names.FRAMEWORK in owner.metadata.labels or names.FRAMEWORK in pod.metadata.labels
