"""The effects of decisions on a simulated cluster, in the order in which `extender.commit` carries them out."""

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from extender import placementcontent as content
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.state.state import PlannerState
from extender.planner.timing import arrival_s
from extender.simulate.cluster import SimulatedCluster
from extender.simulate.members import annotated_pod
from muster.api import names
from muster.api.kubernetes.core import PODS
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.placement import PLACEMENTS, Placement
from muster.api.muster.placementnotes import PlacementContent

_PODS, _PLACEMENTS = PODS.full_name, PLACEMENTS.full_name
_ARRIVE_S = 600.0
"""Seconds within which members arrive once their nodes are free; in a simulation, all arrive at once."""


def placement_after(known: Placement | None, place: decisions.Place, session: Session) -> Placement:
    """Return a gang's placement after a cycle that places the gang; `known` is the existing Placement of its name."""
    gang = place.gang
    deadline_s = max(session.now, place.waits_until) + arrival_s(place.new_slots)
    remembered = session.snapshot.remembered.get(gang.key, ())
    wanted = content.placed(place, content.of_gang(known, gang), deadline_s=deadline_s, remembered=remembered)
    return replace(_new(gang), spec=wanted.spec, status=wanted.status)


def count_failures(state: PlannerState, session: Session) -> None:
    """Count failures of members as `extender.placements` does; in a simulation, no watch reports failures."""
    for avoid in session.decided(decisions.Avoid):
        state.failures.remember(avoid.gang.key, avoid.avoided or ())
        state.failures.forget(avoid.gang.key, [pod.uid for pod in avoid.counted])


class SimulatedEffects:
    """The effects of planning cycles on one simulated cluster."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster

    def carry_out(self, session: Session) -> None:
        """Apply all decisions of a cycle."""
        for act in (self._close, self._avoid, self._place, self._room, self._keep, self._reserve, self._enqueue):
            act(session)
        for release in session.decided(decisions.Release):
            self._release(release)
        self._evictions(session)
        self._notices(session)

    def _placement(self, key: str) -> Placement | None:
        return self._cluster.world.state.placement_of(key)

    def _write_placement(self, known: Placement, wanted: PlacementContent) -> None:
        self._apply(replace(known, spec=wanted.spec, status=wanted.status))

    def _apply(self, placement: Placement) -> None:
        meta = replace(placement.metadata, resource_version=str(self._cluster.version()))
        self._cluster.world.apply(_PLACEMENTS, replace(placement, metadata=meta))

    def _change(self, key: str, change: Callable[[Placement], PlacementContent]) -> None:
        known = self._placement(key)
        if known is not None:
            self._write_placement(known, change(known))

    def _close(self, session: Session) -> None:
        for close in session.decided(decisions.ClosePlacement):
            wanted = content.closed(close, now=session.now, avoided=session.avoided.get(close.gang.key, ()))
            self._change(close.gang.key, lambda _, wanted=wanted: wanted)  # type: ignore[misc]
            playing = self._cluster.gangs.get(close.gang.key)
            if close.phase == "Bound" and playing is not None and playing.started_s is None:
                playing.started_s = self._cluster.now
                playing.first_start_s = self._cluster.now if playing.first_start_s is None else playing.first_start_s
                self._cluster.phase(playing, "Running")
            self._cluster.touched = True

    def _avoid(self, session: Session) -> None:
        for avoid in session.decided(decisions.Avoid):
            if avoid.avoided is not None:
                self._change(avoid.gang.key, partial(content.avoiding, avoid))
        count_failures(self._cluster.world.state, session)

    def _place(self, session: Session) -> None:
        for place in session.decided(decisions.Place):
            known = self._cluster.world.objects[_PLACEMENTS].get(place.gang.group.metadata.key)
            self._apply(placement_after(known, place, session))
            self._cluster.touched = True

    def _room(self, session: Session) -> None:
        for there in session.decided(decisions.RoomIsThere):
            deadline_s = self._cluster.now + _ARRIVE_S
            self._change(there.gang.key, partial(content.with_room, there, deadline_s=deadline_s))
            self._cluster.touched = True

    def _keep(self, session: Session) -> None:
        for keep in session.decided(decisions.KeepSpares):
            self._change(keep.gang.key, partial(content.with_spares, keep))

    def _reserve(self, session: Session) -> None:
        for unreserve in session.decided(decisions.Unreserve):
            self._change(unreserve.gang.key, partial(content.unreserved, unreserve))
        for reserve in session.decided(decisions.Reserve):
            known = self._placement(reserve.gang.key) or _new(reserve.gang)
            self._write_placement(known, content.reserved(reserve, PlacementContent.content_of(known)))

    def _enqueue(self, session: Session) -> None:
        for enqueue in session.decided(decisions.AdmitGang):
            playing = self._cluster.gangs.get(enqueue.gang.key)
            if playing is not None:
                self._cluster.phase(playing, "Inqueue")

    def _release(self, release: decisions.Release) -> None:
        playing = self._cluster.gangs.get(release.gang.key)
        run = playing.runs.get(release.pod.name) if playing is not None else None
        if playing is not None and run is not None and run.pod.metadata.uid == release.pod.uid and run.since_s is None:
            self._cluster.bind(playing, run, release.node, release.epoch)
            self._cluster.touched = True

    def _evictions(self, session: Session) -> None:
        gone: dict[str, list[str]] = {}
        for evict in session.decided(decisions.Evict):
            gone.setdefault(evict.gang.key, []).append(evict.pod.name)
        for repair in session.decided(decisions.EvictForFaults):
            gone.setdefault(repair.gang.key, []).extend(pod.name for pod in repair.pods)
        for room in session.decided(decisions.MakeRoom):
            for victim, pod in room.victims:
                gone.setdefault(victim.key, []).append(pod.name)
        for key, pods in gone.items():
            self._cluster.evict(key, pods)

    def _notices(self, session: Session) -> None:
        for notice in session.decided(decisions.SendNotice):
            self._note(notice, {names.EVICT_AT: notice.evict_at, names.EVICT_FOR: notice.queue})
        for stay in session.decided(decisions.WithdrawNotice):
            self._note(stay, dict.fromkeys((names.EVICT_AT, names.EVICT_FOR, names.EVICT_READY)))

    def _note(self, about: decisions.SendNotice | decisions.WithdrawNotice, annotations: dict[str, str | None]) -> None:
        playing = self._cluster.gangs.get(about.gang.key)
        run = playing.runs.get(about.pod.name) if playing is not None else None
        if run is not None:
            run.pod = annotated_pod(run.pod, self._cluster.version(), annotations)
            self._cluster.world.apply(_PODS, run.pod)


def _new(gang: GangView) -> Placement:
    """Return an empty placement for a gang."""
    meta = gang.group.metadata
    return Placement(metadata=ObjectMeta(name=meta.name, namespace=meta.namespace, uid=f"placement-{gang.uid}"))
