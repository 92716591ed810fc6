"""Content (spec and status) of placements after each decision, for `extender.placements` and for replays.

Each function derives the complete new content from the previous content. Failed attempts and nodes that rejected a
member are stored in the status, so that they survive a restart of the planner.
"""

from collections.abc import Collection, Sequence
from math import ceil

from msgspec.structs import replace

from extender.planner import reasons
from extender.planner.actions.avoidance import is_remembered
from extender.planner.actions.progress import AVOID_S
from extender.planner.framework.decisions import (
    Avoid,
    ClosePlacement,
    KeepSpares,
    Place,
    Reserve,
    RoomIsThere,
    Unreserve,
)
from extender.planner.state.gangphase import once_whole
from extender.planner.state.gangs import GangView
from extender.planner.timing import MAX_PLACEMENT_DELAY_S
from extender.planner.victims.notices import latest_end
from muster.api.kubernetes.meta import format_time, readable_time
from muster.api.muster.placement import AvoidedNode, Placement, PlacementSpec, PlacementStatus, Victim
from muster.api.muster.placementnotes import PlacementContent
from muster.api.muster.reason import NOTHING, Reason
from muster.resources.delays import doubled_s

BACK_OFF_S = 10.0
"""Seconds before a gang whose pods were not created in time is placed again; doubled at each failure."""
MADE_ROOM = 16
"""Maximum number of evicted gangs that a placement lists."""


def of_gang(known: Placement | None, gang: GangView) -> PlacementContent:
    """Return the content of a gang's placement; empty if `known` belongs to an earlier PodGroup of this name."""
    return PlacementContent.content_of(known if known is not None and known.spec.pod_group_uid == gang.uid else None)


def placed(
    place: Place, before: PlacementContent, *, deadline_s: float, remembered: Sequence[AvoidedNode] = ()
) -> PlacementContent:
    """Return a gang's new placement; `remembered` has the nodes that an earlier PodGroup of this name avoided.

    The placement's deadline is given in seconds since the epoch.
    """
    gang, known, why = place.gang, before.spec if place.gang.started else PlacementSpec(), _waits_for(place)
    home = gang.group.metadata.namespace
    spec = replace(
        before.spec,
        pod_group_uid=gang.uid,
        epoch=place.epoch,
        deadline=format_time(deadline_s),
        pod_sets=place.pod_sets,
        spares=known.spares if place.spares is None else place.spares,
        borrows=known.borrows if place.borrows is None else place.borrows,
        victims=[
            Victim(pod.name, "" if pod.namespace == home else pod.namespace, pod.uid, victim.group.metadata.name)
            for victim, pod in place.victims
        ],
        victims_reason=str(place.victims_reason),
        victims_why=place.victims_reason.data,
        notices=list(place.notices),
    )
    status = replace(
        before.status,
        phase="Planned",
        bound=gang.taken,
        planned=gang.taken + place.new_slots,
        started=gang.started,
        message=str(why),
        why=why.data,
        expected_at="",
        reserved_at="",
    )
    if not gang.started:
        status = replace(status, started_at="", started_with=None)
    if gang.placement is None and remembered:
        status.avoided = list(remembered)
    return PlacementContent(spec=spec, status=status)


def closed(close: ClosePlacement, *, now: float, avoided: Collection[str]) -> PlacementContent:
    """Return the content of an ended placement; `avoided` has the nodes that recently rejected a member."""
    gang, before = close.gang, PlacementContent.content_of(close.gang.placement)
    started = gang.started or close.phase == "Bound"
    status = replace(
        before.status,
        phase=close.phase,
        bound=gang.taken,
        started=started,
        started_at=_started_at(gang, now) if started else "",
        started_with=gang.started_with() if started else None,
        message=close.message,
        why=None if close.phase == "Bound" else close.why.data,  # a bound placement needs no reason
        avoided=avoided_by(gang, now=now, avoided=avoided),
    )
    _count_attempts(status, close, now)
    spec = before.spec
    if close.pod_sets is not None:
        spec = replace(spec, epoch=gang.next_epoch(), pod_sets=close.pod_sets)
    return PlacementContent(spec=spec, status=status)


def avoided_by(gang: GangView, *, now: float, avoided: Collection[str]) -> list[AvoidedNode]:
    """Return the nodes that the gang avoids: remembered nodes, and nodes that just rejected a member (`avoided`)."""
    known = {each.node: each for each in gang.placement.status.avoided} if gang.placement else {}
    kept = {node: each for node, each in known.items() if node in avoided or is_remembered(each, now)}
    for node in avoided:
        each = kept.get(node, AvoidedNode(node=node))
        if (readable_time(each.until) or 0.0) <= now:
            kept[node] = replace(each, until=format_time(now + AVOID_S))
    return [kept[node] for node in sorted(kept)]


def avoiding(avoid: Avoid, known: Placement) -> PlacementContent:
    """Return the placement with the nodes that the gang avoids from now on."""
    return PlacementContent(spec=known.spec, status=replace(known.status, avoided=list(avoid.avoided or ())))


def with_spares(keep: KeepSpares, known: Placement) -> PlacementContent:
    """Return the placement of a running gang with its changed spare slots."""
    return PlacementContent(spec=replace(known.spec, spares=keep.spares), status=known.status)


def with_room(there: RoomIsThere, known: Placement, *, deadline_s: float) -> PlacementContent:
    """Return the placement after its victims have ended, with a new deadline; it still lists the victims' gangs."""
    gangs = dict.fromkeys(map(known.gang_key, known.spec.victims))
    why = reasons.placements.remade(seconds=there.remade_s) if there.remade_s else NOTHING
    spec = replace(known.spec, deadline=format_time(deadline_s), pod_sets=there.pod_sets)
    spec = replace(spec, victims=[], victims_reason="", victims_why=None, notices=[])
    status = replace(known.status, message=str(why), why=why.data, made_room=list(gangs)[:MADE_ROOM])
    return PlacementContent(spec=spec, status=status)


def binding(known: Placement, bound: int) -> PlacementContent:
    """Return the placement in phase Binding, in which members are being bound; `bound` members are already bound."""
    return PlacementContent(spec=known.spec, status=replace(known.status, phase="Binding", bound=bound))


def reserved(reserve: Reserve, before: PlacementContent) -> PlacementContent:
    """Return the placement that reserves nodes for a waiting gang."""
    gang = reserve.gang
    epoch = gang.placement.spec.epoch if gang.placement else gang.next_epoch()
    status = replace(
        before.status,
        phase="Reserved",
        bound=gang.taken,
        planned=sum(run.count for pod_set in reserve.pod_sets for run in pod_set.runs if run.node),
        expected_at="" if reserve.expected_at is None else format_time(ceil(reserve.expected_at)),
        reserved_at=format_time(reserve.since),
        message=reserve.message,
        why=reserve.why.data,
    )
    spec = replace(before.spec, pod_group_uid=gang.uid, epoch=epoch, pod_sets=reserve.pod_sets)
    return PlacementContent(spec=spec, status=status)


def unreserved(unreserve: Unreserve, known: Placement) -> PlacementContent:
    """Return the placement of a gang whose reservation has ended."""
    why = unreserve.why
    status = replace(known.status, phase="Abandoned", planned=0, expected_at="", message=str(why), why=why.data)
    return PlacementContent(spec=replace(known.spec, pod_sets=[]), status=status)


def _waits_for(place: Place) -> Reason:
    until = latest_end(place.notices)
    ends = format_time(until) if until else ""
    return reasons.placements.waits_for_victims(len(place.victims), ends) if place.victims else NOTHING


def _started_at(gang: GangView, now: float) -> str:
    """Return the gang's start time, which stays the same while at least one member is bound to a node."""
    known = gang.placement.status.started_at if gang.placement and once_whole(gang.placement) else ""
    return known or format_time(ceil(now))


def _count_attempts(status: PlacementStatus, close: ClosePlacement, now: float) -> None:
    """Count a failed attempt if pods did not arrive or victims could not be evicted; after a success, reset the counts.

    Existing pods that were not bound in time may merely have been late. Therefore the next attempt is not delayed, but
    for a while no gang is evicted in favour of this gang.
    """
    bound = close.phase == "Bound"
    if close.in_vain:
        status.attempts += 1
        late = close.why.code == reasons.placements.NOT_BOUND
        tries = status.attempts - late
        status.not_before = format_time(now + back_off_s(tries)) if tries else ""
        if late:
            status.no_evictions_before = format_time(now + back_off_s(status.attempts))
    elif bound or close.gang.has_pods:
        status.attempts, status.not_before = 0, ""
    if close.evicted_in_vain:
        status.evictions_in_vain += 1
        status.no_evictions_before = format_time(now + back_off_s(status.evictions_in_vain))
    elif bound:
        status.evictions_in_vain, status.no_evictions_before = 0, ""


def back_off_s(attempts: int) -> float:
    """Return the delay in seconds before the gang's next placement, after this number of failed attempts."""
    return doubled_s(BACK_OFF_S, attempts - 1, MAX_PLACEMENT_DELAY_S)
