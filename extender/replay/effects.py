"""The effects of decisions on a simulated cluster, in the order in which `extender.commit` carries them out."""

from typing import Any

import msgspec
from msgspec.structs import replace

from extender import placementstatus
from extender.explain.clusterdump import kind_name
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.replay.members import annotated_pod
from extender.replay.placed import changed_by, placed
from extender.replay.playing import Cluster
from muster.api import names
from muster.api.kubernetes.core import PODS
from muster.api.kubernetes.meta import format_time
from muster.api.muster.placement import PLACEMENTS, Placement

_PODS, _PLACEMENTS = kind_name(PODS), kind_name(PLACEMENTS)
_ARRIVE_S = 600.0
"""Time for members to come once the room is there; here they come at once."""


class Effects:
    """Carries the decisions of cycles out on one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def carry_out(self, session: Session) -> None:
        """Let all decisions of a cycle take effect."""
        for act in (self._close, self._avoid, self._place, self._room, self._keep, self._reserve, self._enqueue):
            act(session)
        for release in session.decided(decisions.Release):
            self._release(release)
        self._evictions(session)
        self._notices(session)

    def _placement(self, key: str) -> Placement | None:
        return self._cluster.told.state.placement_of(key)

    def _write(self, key: str, spec: dict[str, Any], status: dict[str, Any], *, new: Placement | None = None) -> None:
        """Merge fields into a placement, as its writer patches them."""
        known = new or self._placement(key)
        if known is None:
            return
        merged = changed_by(known, spec, status, str(self._cluster.version()))
        self._cluster.told.tell(_PLACEMENTS, merged)

    def _close(self, session: Session) -> None:
        for close in session.decided(decisions.ClosePlacement):
            avoided = session.avoided.get(close.gang.key, ())
            spec = {}
            if close.pod_sets is not None:
                spec = {"epoch": close.gang.next_epoch(), "podSets": msgspec.to_builtins(close.pod_sets)}
            self._write(close.gang.key, spec, placementstatus.closed(close, now=session.now, avoided=avoided))
            playing = self._cluster.gangs.get(close.gang.key)
            if close.phase == "Bound" and playing is not None and playing.started_s is None:
                playing.started_s = self._cluster.now
                playing.first_start_s = self._cluster.now if playing.first_start_s is None else playing.first_start_s
                self._cluster.phase(playing, "Running")
            self._cluster.touched = True

    def _avoid(self, session: Session) -> None:
        failures = self._cluster.told.state.failures
        for avoid in session.decided(decisions.Avoid):
            if avoid.avoided is not None:
                self._write(avoid.gang.key, {}, {"avoided": msgspec.to_builtins(list(avoid.avoided))})
            failures.remember(avoid.gang.key, avoid.avoided or ())
            failures.forget(avoid.gang.key, [pod.uid for pod in avoid.counted])

    def _place(self, session: Session) -> None:
        for place in session.decided(decisions.Place):
            known = self._cluster.told.objects[_PLACEMENTS].get(place.gang.group.metadata.key)
            remembered = session.snapshot.remembered.get(place.gang.key, ())
            new = placed(place, known, remembered, now=self._cluster.now, version=str(self._cluster.version()))
            self._cluster.told.tell(_PLACEMENTS, new)
            self._cluster.touched = True

    def _room(self, session: Session) -> None:
        for there in session.decided(decisions.RoomIsThere):
            known = self._placement(there.gang.key)
            if known is not None:
                over = {
                    "victims": [],
                    "victimsReason": "",
                    "notices": [],
                    "deadline": format_time(self._cluster.now + _ARRIVE_S),
                }
                spec = {"podSets": msgspec.to_builtins(there.pod_sets), **over}
                self._write(there.gang.key, spec, placementstatus.room_is_there(known, there))
                self._cluster.touched = True

    def _keep(self, session: Session) -> None:
        for keep in session.decided(decisions.KeepSpares):
            self._write(keep.gang.key, {"spares": msgspec.to_builtins(keep.spares)}, {})

    def _reserve(self, session: Session) -> None:
        for unreserve in session.decided(decisions.Unreserve):
            self._write(unreserve.gang.key, {"podSets": []}, placementstatus.unreserved(unreserve))
        for reserve in session.decided(decisions.Reserve):
            known = self._placement(reserve.gang.key)
            epoch = known.spec.epoch if known else reserve.gang.next_epoch()
            meta = reserve.gang.group.metadata
            new = known or Placement(metadata=replace(meta, uid=f"placement-{meta.uid}", annotations={}))
            spec = {
                "podGroupUID": reserve.gang.uid, "epoch": epoch, "podSets": msgspec.to_builtins(reserve.pod_sets),
            }  # fmt: skip
            self._write(reserve.gang.key, spec, placementstatus.reserved(reserve), new=new)

    def _enqueue(self, session: Session) -> None:
        for enqueue in session.decided(decisions.Enqueue):
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
        for repair in session.decided(decisions.Repair):
            gone.setdefault(repair.gang.key, []).extend(pod.name for pod in repair.pods)
        for room in session.decided(decisions.MakeRoom):
            for victim, pod in room.victims:
                gone.setdefault(victim.key, []).append(pod.name)
        for key, pods in gone.items():
            self._cluster.evict(key, pods)

    def _notices(self, session: Session) -> None:
        for tell in session.decided(decisions.TellNotice):
            self._note(tell, {names.EVICT_AT: tell.evict_at, names.EVICT_FOR: tell.queue})
        for stay in session.decided(decisions.WithdrawNotice):
            self._note(stay, dict.fromkeys((names.EVICT_AT, names.EVICT_FOR, names.EVICT_READY)))

    def _note(self, about: decisions.TellNotice | decisions.WithdrawNotice, said: dict[str, str | None]) -> None:
        playing = self._cluster.gangs.get(about.gang.key)
        run = playing.runs.get(about.pod.name) if playing is not None else None
        if run is not None:
            run.pod = annotated_pod(run.pod, self._cluster.version(), said)
            self._cluster.told.tell(_PODS, run.pod)
