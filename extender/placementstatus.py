"""Placement.status: its content; `extender.placements` writes it with the spec.

Each function returns the fields that change, as JSON. Attempts in vain and nodes that refused a member are in the
status, not in the planner's memory, so that they survive the planner.
"""

from collections.abc import Collection, Sequence
from math import ceil
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from extender.planner import reasons
from extender.planner.actions.avoidance import is_remembered
from extender.planner.actions.progress import AVOID_S
from extender.planner.framework.decisions import ClosePlacement, Place, Reserve, RoomIsThere, Unreserve
from extender.planner.state.gangs import GangView, once_whole
from extender.planner.victims.notices import latest_end
from muster.api.kubernetes.meta import format_time, readable_time
from muster.api.muster.placement import AvoidedNode, Placement, PlacementStatus
from muster.resources.delays import doubled_s

BACK_OFF_S = 10.0
"""Delay of the next placement of a gang whose pods were not created in time; doubled each time."""
MAX_BACK_OFF_S = 600.0
MADE_ROOM = 16
"""Gangs that are named of those that were evicted."""


def opened(place: Place, remembered: Sequence[AvoidedNode] = ()) -> dict[str, Any]:
    """Return the status of a new placement; `remembered` is what an earlier PodGroup of the name avoided."""
    gang = place.gang
    avoided = to_builtins(list(remembered)) if gang.placement is None and remembered else None
    return {
        "phase": "Planned",
        "bound": gang.taken,
        "planned": gang.taken + place.new_slots,
        "started": gang.started,
        "message": _waits_for(place),
        "expectedAt": "",
        "reservedAt": "",
        **({} if gang.started else {"startedAt": "", "startedWith": None}),
        **({"avoided": avoided} if avoided else {}),
    }


def closed(close: ClosePlacement, *, now: float, avoided: Collection[str]) -> dict[str, Any]:
    """Return the status at the end of a placement; `avoided` are the nodes that refused a member lately."""
    gang = close.gang
    started = gang.started or close.phase == "Bound"
    return {
        "phase": close.phase,
        "bound": gang.taken,
        "started": started,
        "startedAt": _started_at(gang, now) if started else "",
        "startedWith": _started_with(gang) if started else None,
        "message": close.message,
        "avoided": avoided_by(gang, now=now, avoided=avoided),
        **_attempts(gang, close, now),
        **_evictions(gang, close, now),
    }


def avoided_by(gang: GangView, *, now: float, avoided: Collection[str]) -> list[dict[str, Any]]:
    """Return the nodes that the gang leaves out, and those that are remembered; new ones refused a member just now."""
    known = {each.node: each for each in gang.placement.status.avoided} if gang.placement else {}
    kept = {node: each for node, each in known.items() if node in avoided or is_remembered(each, now)}
    for node in avoided:
        each = kept.get(node, AvoidedNode(node=node))
        if (readable_time(each.until) or 0.0) <= now:
            kept[node] = replace(each, until=format_time(now + AVOID_S))
    return [to_builtins(kept[node]) for node in sorted(kept)]


def room_is_there(placement: Placement, there: RoomIsThere) -> dict[str, Any]:
    """Return the status of a placement whose victims are gone; it stays known whose they were."""
    home = placement.metadata.namespace
    gangs = dict.fromkeys(f"{victim.namespace or home}/{victim.gang}" for victim in placement.spec.victims)
    words = reasons.placements.remade(seconds=there.remade_s) if there.remade_s else ""
    return {"message": words, "madeRoom": list(gangs)[:MADE_ROOM]}


def binding(bound: int) -> dict[str, Any]:
    """Return the status of a placement whose members are being bound, `bound` of them already."""
    return {"phase": "Binding", "bound": bound}


def reserved(reserve: Reserve) -> dict[str, Any]:
    """Return the status of a placement that reserves nodes for a waiting gang."""
    return {
        "phase": "Reserved",
        "bound": reserve.gang.taken,
        "planned": sum(run.count for pod_set in reserve.pod_sets for run in pod_set.runs if run.node),
        "expectedAt": "" if reserve.expected_at is None else format_time(ceil(reserve.expected_at)),
        "reservedAt": format_time(reserve.since),
        "message": reserve.message,
    }


def unreserved(unreserve: Unreserve) -> dict[str, Any]:
    """Return the status of a placement that reserves nothing any more."""
    return {"phase": "Abandoned", "planned": 0, "expectedAt": "", "message": unreserve.message}


def _waits_for(place: Place) -> str:
    until = latest_end(place.notices)
    told = format_time(until) if until else ""
    return reasons.placements.waits_for_victims(len(place.victims), told) if place.victims else ""


def _started_at(gang: GangView, now: float) -> str:
    """Return the start of the gang, which stays as long as a member has a node."""
    known = gang.placement.status.started_at if gang.placement and once_whole(gang.placement) else ""
    return known or format_time(ceil(now))


def _started_with(gang: GangView) -> dict[str, Any]:
    """Return the minimum at the start as a merge patch, which removes pod sets that are gone."""
    wanted, known = gang.started_with(), gang.placement.status.started_with if gang.placement else None
    gone = known.min_task_member.keys() - wanted.min_task_member.keys() if known else ()
    return {"minMember": wanted.min_member, "minTaskMember": {**dict.fromkeys(gone), **wanted.min_task_member}}


def _attempts(gang: GangView, close: ClosePlacement, now: float) -> dict[str, Any]:
    """Count an attempt in vain if the pods did not come; forget all once they did."""
    if not close.in_vain:
        return {"attempts": 0, "notBefore": ""} if close.phase == "Bound" or gang.has_pods else {}
    attempts = (gang.placement.status if gang.placement else PlacementStatus()).attempts + 1
    return {"attempts": attempts, "notBefore": format_time(now + back_off_s(attempts))}


def _evictions(gang: GangView, close: ClosePlacement, now: float) -> dict[str, Any]:
    if not close.evicted_in_vain:
        return {"evictionsInVain": 0, "noEvictionsBefore": ""} if close.phase == "Bound" else {}
    times = (gang.placement.status.evictions_in_vain if gang.placement else 0) + 1
    return {"evictionsInVain": times, "noEvictionsBefore": format_time(now + back_off_s(times))}


def back_off_s(attempts: int) -> float:
    """Return the delay of the next placement after so many attempts in vain, in seconds."""
    return doubled_s(BACK_OFF_S, attempts - 1, MAX_BACK_OFF_S)
