"""Texts about the state of a gang: a full sentence, a text of at most ten words, and the gang's nodes. Pure."""

from collections.abc import Sequence
from typing import Any

from gangs.words import brief, nodes_text
from muster.api.grammar import and_more, many
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.pod_problems import first_failure, problems
from muster.api.muster.noderuns import slots_of
from muster.api.muster.placement import Placement
from muster.api.muster.states import ENDED, WAITING, State
from muster.api.volcano.scheduling import NO_ROOM, PodGroup, PodGroupCondition
from muster.resources.vector import PODS, amount_text

_NOT_REPLACED = "; there is no other pod in its place yet"


def nodes_of(pods: Sequence[Pod] | None, living: Sequence[Pod], placement: Placement | None, state: State) -> list[str]:
    """Return the nodes on which the pods run, or the planned nodes of a gang that is starting."""
    there = {pod.spec.node_name for pod in living if pod.spec.node_name}
    if placement is not None and (state == "Starting" or pods is None) and state not in WAITING:
        there |= {node for _, node in slots_of(placement)}
    return sorted(there)


def message_of(
    group: PodGroup, state: State, placement: Placement | None, living: Sequence[Pod], pods: Sequence[Pod] = ()
) -> str:
    """Return a sentence that explains why the gang waits, has failed or has another problem; otherwise empty."""
    if state == "Reserved" and placement is not None and placement.status.message:
        return placement.status.message
    if group.why_waiting:
        waits = [pod.metadata.name for pod in living if not pod.spec.node_name]
        who = f"pod {and_more(waits[0], len(waits))} waits: " if waits and state == "Degraded" else ""
        return who + group.why_waiting
    hindered = problems(living)
    if hindered and state not in ENDED:
        pod, what = hindered[0]
        return and_more(f"pod {pod.metadata.name}: {what.words}", len(hindered))
    bound, wanted = sum(bool(pod.spec.node_name) for pod in living), max(len(living), group.spec.min_member)
    return {
        "Starting": f"the gang has its nodes; {bound} of {many(wanted, 'pod')} bound",
        "Waiting": "the planner has not processed the gang yet",
        "Running": _replaced(group, living, pods),
        "Failed": failed_text(pods, group.status.ending or str(group.evicted))
        or f"{many(group.status.failed, 'pod')} failed",
    }.get(state, "")


def _replaced(group: PodGroup, living: Sequence[Pod], pods: Sequence[Pod]) -> str:
    """Return a text about the first failure in a running gang whose owner has not replaced the failed pods yet."""
    ended = sum(pod.status.phase == "Succeeded" for pod in pods)
    few = len(living) + ended < group.spec.min_member
    return f"{failed_text(pods, '')}{_NOT_REPLACED}" if few and first_failure(pods) else ""


def failed_text(pods: Sequence[Pod], ending: str) -> str:
    """Return why a gang failed: its first failed pod and, unless it names this pod, the message of its owner."""
    first = first_failure(pods)
    if first is None or f"pod {first[0].metadata.name} " in ending:
        return ending
    return f"{first[2]}; {ending}" if ending else first[2]


def needs_room(group: PodGroup) -> bool:
    """Return True for a gang that waits for capacity and would fit on an empty cluster."""
    waits = _waits_for_room(group)
    return waits is not None and _lacks(waits).get("kind") != "ever"


def reason_of(
    group: PodGroup, state: State, message: str, placement: Placement | None, living: Sequence[Pod],
    pods: Sequence[Pod] = (),
) -> str:  # fmt: skip
    """Return the reason for a gang's state in at most ten words, for a list."""
    if (state == "Failed" or message.endswith(_NOT_REPLACED)) and (first := first_failure(pods)):
        return brief(first[1])
    if state == "Reserved" and placement is not None:
        return f"room is reserved on {nodes_text(node for _, node in slots_of(placement))}"
    if waits := _waits_for_room(group):
        return _no_room(waits)
    hindered = problems(living)
    return brief(hindered[0][1].brief if hindered and not group.why_waiting else message)


def _waits_for_room(group: PodGroup) -> PodGroupCondition | None:
    condition = next((each for each in group.status.conditions if each.type == "Unschedulable"), None)
    return condition if condition is not None and condition.status == "True" and condition.reason == NO_ROOM else None


def _lacks(waits: PodGroupCondition) -> dict[str, Any]:
    """Return the data of the shortage that the planner has reported.

    The result is empty if the condition has only text, because an older version of Muster wrote it.
    """
    return waits.why.params if waits.why else {}


def _no_room(waits: PodGroupCondition) -> str:
    """Return a message about the missing capacity: the number of pods that do not fit, and the request of each pod."""
    match _lacks(waits):
        case {"kind": "ever"}:
            return "too large: even an empty cluster has too few resources"
        case {"lost": str(lost)}:
            return brief(f"no suitable node: {lost}")
        case {"pods": int(pods), "level": str(level)} if level:
            return brief(f"{many(pods, 'pod')} must be in one domain of level {level}")
        case {"pods": int(pods), "resource": str(resource), "amount": int(amount)}:
            each = f" of {amount_text(resource, amount)} {resource}" if resource not in {"", PODS} else ""
            return f"no room for {many(pods, 'pod')}{each}"
    return brief(waits.message)
