"""The gang that a user names, and its pods in rank order. Pure."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from gangs.row import GangRow
from gangs.rows import RowSources, gang_name
from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.api.muster.gang import Slot
from muster.api.muster.states import ENDED
from muster.workloads.table import slot_of

_DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
_FIRST = ("launcher", "master", "chief", "leader", "head")
"""Names of pod sets that are listed first, because they contain rank 0; other pod sets are in alphabetical order."""
_NEAR = 5


class UnknownGangError(ValueError):
    """Raised if a user's name for a gang matches no gang or several gangs; the message is shown to the user."""


def named(rows: Sequence[GangRow], text: str, namespace: str, kind: str = "") -> GangRow:
    """Return the gang of the workload `NAME` or `KIND/NAME` (the output of `kubectl get -o name`).

    Gangs that have not ended are preferred. Raises UnknownGangError with a list of the existing names.
    """
    before, slash, name = text.rpartition("/")
    asked = before.partition(".")[0].lower() if slash else kind.lower()
    found = [row for row in rows if name in {row.name, row.gang} and asked in {"", row.kind.lower()}]
    found = [row for row in found if row.reference == text] or found
    found = [row for row in found if row.state not in ENDED] or found
    workloads = {row.reference for row in found}
    if len(workloads) > 1:
        raise UnknownGangError(f"{text} is the name of {' and '.join(sorted(workloads))}: name one")
    if found:
        return max(found, key=lambda row: row.created)
    what = f"there is no {kind or 'gang'} {text} in namespace {namespace}"
    there = sorted({row.name for row in rows if not kind or row.kind == kind})
    near = get_close_matches(name, there, n=_NEAR) or there[:_NEAR]
    more = f" and {len(there) - _NEAR} more" if near == there[:_NEAR] and len(there) > _NEAR else ""
    raise UnknownGangError(f"{what}; there is {', '.join(near)}{more}" if near else f"{what}, and no other gang")


def members(objects: RowSources, row: GangRow) -> list[Pod]:
    """Return the pods of a gang in rank order; if a Job has started several times, only the pods of the last start.

    Pods of initializers come last.
    """
    mine = [pod for pod in objects.pods or () if pod.metadata.namespace == row.namespace and _is_of(pod, row)]
    youngest: dict[Slot | str, Pod] = {}
    for pod in sorted(mine, key=lambda pod: pod.metadata.creation_timestamp or ""):
        youngest[slot_of(pod.metadata) or pod.metadata.name] = pod
    return sorted(youngest.values(), key=_rank)


def by_rank(pods: Iterable[Pod]) -> dict[int, Pod]:
    """Return a mapping from ranks in the gang to pods, in the order of `members`.

    The ranks of a pod set follow the ranks of the previous pod set. A pod without an index gets the next rank.
    """
    found: dict[int, Pod] = {}
    start, pod_set = 0, ""
    for pod in pods:
        slot, following = slot_of(pod.metadata), max(found, default=-1) + 1
        if slot is not None and slot.pod_set != pod_set:
            start, pod_set = following, slot.pod_set
        found[start + slot.rank if slot else following] = pod
    return found


def container_of(pod: Pod, wanted: str | None = None) -> str:
    """Return the container for logs: the requested container, else the annotated default, else the first one."""
    there = [container.name for container in (*pod.spec.containers, *pod.spec.init_containers)]
    if wanted is not None and wanted not in there:
        raise UnknownGangError(f"pod {pod.metadata.name} has no container {wanted}; it has {', '.join(there)}")
    named = pod.metadata.annotations.get(_DEFAULT_CONTAINER, "")
    return wanted or (named if named in there else there[0])


def begun(pods: Iterable[Pod]) -> list[Pod]:
    """Return the pods that have been started, and may therefore have a log."""
    return [pod for pod in pods if pod.status.phase in {"Running", "Succeeded", "Failed"}]


def _is_of(pod: Pod, row: GangRow) -> bool:
    if row.gang:
        return gang_name(pod) == row.gang
    return pod.metadata.labels.get(names.JOB_NAME) == row.name  # of a Volcano Job, whose PodGroup is deleted at its end


def _rank(pod: Pod) -> tuple[bool, bool, str, int, str]:
    slot = slot_of(pod.metadata) or Slot("", 0)
    helps = slot.pod_set.endswith("initializer")
    return helps, slot.pod_set not in _FIRST, slot.pod_set, slot.rank, pod.metadata.name
