"""The smallest gang of pods that are not a Volcano Job's: how many of them must start together."""

from muster.api import names
from muster.api.core import Pod
from muster.api.limits import PODS, whole_number
from muster.api.meta import Object
from muster.workloads.table import gang_rules


def min_member(pod: Pod, owner: Object | None) -> int:
    """How many pods must start together: as annotated, else all that a framework's owner has at a time, else 1.

    Never more than the owner has at a time: it may have been scaled down since, or say what its JobSet says. `owner` is
    the pod's controller, where it can be read.
    """
    most = _at_once(pod, owner)
    for meta in (owner.metadata, pod.metadata) if owner else (pod.metadata,):
        for key in (names.MIN_MEMBER, names.VOLCANO_GROUP_MIN_MEMBER):
            least = whole_number(meta.annotations.get(key), PODS.value)
            if least:
                return min(least, most or least)
    return most if most and owner and shaped(pod, owner) else 1


def _at_once(pod: Pod, owner: Object | None) -> int | None:
    """The most pods that there are at a time, where the kind of the owner says so."""
    rules = gang_rules(pod.metadata.controller)
    return rules.at_once(owner) if owner and rules and rules.at_once else None


def shaped(pod: Pod, owner: Object) -> bool:
    """Whether the webhook shapes these pods for a framework."""
    return names.FRAMEWORK in owner.metadata.labels or names.FRAMEWORK in pod.metadata.labels
