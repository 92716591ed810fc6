"""The sentence about the state of a gang, the same in ten words, and its nodes. Pure."""

from collections.abc import Sequence

from gangs.words import brief, nodes_words
from muster.api.grammar import many
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.pod_problems import problems
from muster.api.muster.placement import Placement, slots_of
from muster.api.muster.states import ENDED, WAITING, State
from muster.api.volcano.scheduling import NO_ROOM, PodGroup
from muster.resources.gpus import is_gpu
from muster.resources.pods import pod_requests
from muster.resources.vector import CPU, PODS, amount_words


def nodes_of(pods: Sequence[Pod] | None, living: Sequence[Pod], placement: Placement | None, state: State) -> list[str]:
    """Return the nodes of the pods; of a gang that starts, those of its placement."""
    there = {pod.spec.node_name for pod in living if pod.spec.node_name}
    if placement is not None and (state == "Starting" or pods is None) and state not in WAITING:
        there |= {node for _, node in slots_of(placement)}
    return sorted(there)


def message_of(group: PodGroup, state: State, placement: Placement | None, living: Sequence[Pod]) -> str:
    """Return why it waits or what is wrong, in a sentence; empty if nothing is."""
    if state == "Reserved" and placement is not None and placement.status.message:
        return placement.status.message
    if group.why_waiting:
        return group.why_waiting
    hindered = problems(living)
    if hindered and state not in ENDED:
        pod, what = hindered[0]
        more = f" (and {len(hindered) - 1} more)" if len(hindered) > 1 else ""
        return f"pod {pod.metadata.name}: {what.words}{more}"
    bound, wanted = sum(bool(pod.spec.node_name) for pod in living), max(len(living), group.spec.min_member)
    return {
        "Starting": f"it has its nodes; {bound} of {many(wanted, 'pod')} bound",
        "Waiting": "the planner has not looked at it yet",
        "Failed": group.status.ending or str(group.evicted) or f"{many(group.status.failed, 'pod')} failed",
    }.get(state, "")


def needs_room(group: PodGroup) -> bool:
    """Return True for a gang that waits for room which an empty cluster has."""
    return _waits_for_room(group) and not _never_fits(group.why_waiting)


def reason_of(group: PodGroup, state: State, message: str, placement: Placement | None, living: Sequence[Pod]) -> str:
    """Return the reason in at most ten words."""
    if state == "Reserved" and placement is not None:
        return f"room is reserved on {nodes_words(node for _, node in slots_of(placement))}"
    if _waits_for_room(group):
        return _no_room(group, message, living)
    hindered = problems(living)
    return brief(hindered[0][1].brief if hindered and not group.why_waiting else message)


def _waits_for_room(group: PodGroup) -> bool:
    told = next((each for each in group.status.conditions if each.type == "Unschedulable"), None)
    return told is not None and told.status == "True" and told.reason == NO_ROOM


def _never_fits(message: str) -> bool:
    return "empty cluster" in message


def _no_room(group: PodGroup, message: str, living: Sequence[Pod]) -> str:
    """Return the room that is missing, as one pod asks for it; what the sentence says where it is about more."""
    if _never_fits(message):
        return "too large: even an empty cluster has too little room"
    waiting = [pod for pod in living if not pod.spec.node_name]
    started = group.status.phase in {"Running", "Unknown"}
    count = len(waiting) if started else group.spec.min_member
    if "one domain" in message or not waiting or not count:
        return brief(_without_pod_set(message))
    try:
        asked = pod_requests(waiting[0].spec)
    except ValueError:
        return brief(_without_pod_set(message))
    of = next((name for name in sorted(asked) if is_gpu(name) and asked[name]), CPU if asked.get(CPU) else PODS)
    each = f" of {amount_words(of, asked[of])} {of}" if of != PODS else ""
    return f"no room for {many(count, 'pod')}{each}"


def _without_pod_set(message: str) -> str:
    """Return a sentence of the planner without the name of a pod set at its beginning."""
    name, colon, rest = message.partition(": ")
    return rest if colon and " " not in name else message
