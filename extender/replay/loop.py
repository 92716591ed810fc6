"""Lets the workloads of a recording come to the planner again, in simulated time: its decisions take effect.

A gang comes when it came, with all its pods gated. When the planner lifts their gates they run at once on their nodes,
each for as long as it ran then, and when the last has ended the gang goes. A gang that loses its minimum waits again as
a whole; its work up to its last checkpoint is done. What is no workload (nodes, queues, pods of others) changes when it
changed then.

Cycles run after each change until nothing more is decided, a second later (for the growth of gangs that have just
started), and ever more rarely as long as anything waits, for deadlines.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Any

import msgspec
from msgspec.structs import replace

from extender import placementstatus
from extender.explain.clusterdump import kind_name
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import take
from extender.record import lines
from extender.replay.figures import Meter
from extender.replay.history import Change, History, Member, Workload
from extender.replay.members import annotated_pod, ended_pod, members_of, running_pod, waiting_pod
from extender.replay.placed import changed_by, placed
from extender.replay.told import Planning, Told
from muster.api import names
from muster.api.kubernetes.core import PODS, Pod
from muster.api.kubernetes.meta import format_time
from muster.api.muster.placement import PLACEMENTS, Placement
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, PodGroupStatus

_PODS, _GROUPS, _JOBS, _PLACEMENTS = kind_name(PODS), kind_name(POD_GROUPS), kind_name(JOBS), kind_name(PLACEMENTS)
SOON_S = 1.0
TICK_S = 30.0
LONGEST_TICK_S = 240.0
"""Time between two cycles while nothing happens and gangs wait: it doubles from `TICK_S` on, as cycles are what a
replay costs. While a placement is carried out it stays short, for the times of notices."""
MOST_ROUNDS = 100
"""Cycles at one moment; more would be two decisions that undo each other."""


@dataclass(slots=True)
class Run:
    """One member in the replay."""

    member: Member
    runs_s: float | None
    """Time that it takes; None: it does not end within the recording."""
    pod: Pod
    since_s: float | None = None
    ended: bool = False


@dataclass(slots=True)
class Playing:
    """One gang in the replay, and what became of it."""

    workload: Workload
    came_s: float
    runs: dict[str, Run] = field(default_factory=dict)
    """By name of the pod."""
    life: int = 0
    first_start_s: float | None = None
    started_s: float | None = None
    """Start of its present life; None while it waits."""
    ended_s: float | None = None
    evictions: int = 0
    done_s: float = 0.0
    """Work that its last checkpoint has saved, in seconds."""
    gave_up: bool = False
    """It was deleted before it started, as then."""


class Loop:
    """One replay: `run` plays the history to its end."""

    def __init__(self, history: History, config: str | None, changed: Callable[[str, Any], Any]) -> None:
        """Take the recorded configuration or another one; `changed(kind, item)` changes objects as they are told.

        It returns None for an object that is not to be there. Raises ValueError for a configuration with mistakes.
        """
        head = history.head
        self._history = history
        self._config = config
        self._changed = changed
        self._told = Told(head)
        self._planning = Planning(head.config if config is None else config, head.settings)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._versions = count(1_000_000_000)
        self._tick_at: float | None = None
        self._pause_s = TICK_S
        self._touched = False
        self.now = history.since_s
        self.gangs: dict[str, Playing] = {}
        """The present gang of each key."""
        self.all: list[Playing] = []
        self.meter = Meter(self._told.state, history.since_s)
        self.cycles = 0

    def run(self, extra: list[Change] | None = None) -> "Loop":
        """Play all, with more changes at the beginning; return itself."""
        history = self._history
        for change in [*history.before, *(extra or [])]:
            self._change(change)
        for change in history.changes:
            self._at(change.at, lambda change=change: self._change(change))  # type: ignore[misc]
        if self._config is None:
            for at, text in history.configs:
                self._at(at, lambda text=text: self._planning.configure(text))  # type: ignore[misc]
        for workload in history.workloads:
            came = max(workload.came_s, history.since_s)
            if workload.left_s is None or workload.left_s > came:
                self._at(came, lambda workload=workload, came=came: self._come(workload, came))  # type: ignore[misc]
        while self._events and self._events[0][0] <= history.until_s:
            self._step()
        self.meter.go_on(history.until_s)
        self.now = history.until_s
        return self

    # -- time -------------------------------------------------------------------------------------------------------

    def _at(self, at: float, act: Callable[[], None]) -> None:
        heappush(self._events, (at, next(self._order), act))

    def _step(self) -> None:
        """Go on to the next moment at which something happens, and plan until nothing more is decided."""
        at = self._events[0][0]
        self.meter.go_on(at)
        self.now, ticks, ticked = at, self._tick_at == at, True
        while self._events and self._events[0][0] <= at:
            _, _, act = heappop(self._events)
            if act != self._tick:
                ticked = False
                act()
        if ticked and not ticks:
            return  # another cycle came before, and said when to look again
        self._tick_at = None
        for _ in range(MOST_ROUNDS):
            if not self._cycle():
                break
            ticked = False
        self._plan_tick(soon=not ticked)

    def _tick(self) -> None:
        """Nothing happens but that time has passed."""

    def _plan_tick(self, *, soon: bool) -> None:
        waits = any(playing.ended_s is None and playing.started_s is None for playing in self.gangs.values())
        active = any(gang.active or gang.incomplete for gang in self._told.state.gangs())
        if not (soon or waits or active):
            return
        self._pause_s = TICK_S if soon or active else min(2 * self._pause_s, LONGEST_TICK_S)
        self._tick_at = self.now + (SOON_S if soon else self._pause_s)
        self._at(self._tick_at, self._tick)

    def _version(self) -> int:
        return next(self._versions)

    # -- what happens to the cluster --------------------------------------------------------------------------------

    def _change(self, change: Change) -> None:
        item = change.item if change.item is None else self._changed(change.kind, change.item)
        if item is None:
            self._told.forget(change.kind, change.key)
        else:
            self._told.tell(change.kind, item)

    def _come(self, workload: Workload, came: float) -> None:
        """Let a gang come: waiting, or running on its nodes if it ran when the recording began."""
        group = self._changed(workload.kind, workload.group)
        if group is None:
            return
        playing = self.gangs[workload.key] = Playing(workload, came)
        self.all.append(playing)
        if workload.kind == _GROUPS and not workload.ran_before:
            group = _as_it_came(group)
        self._told.tell(workload.kind, group)
        if workload.job is not None:
            self._told.tell(_JOBS, workload.job)
        for member in members_of(workload).values():
            self._member(playing, member)
        if workload.ran_before:
            if workload.placement is not None:
                self._told.tell(_PLACEMENTS, workload.placement)
            playing.started_s = self.now
        if workload.left_s is not None:
            self._at(workload.left_s, lambda: self._left(playing))

    def _member(self, playing: Playing, member: Member) -> None:
        workload = playing.workload
        runs_s = member.runs_s
        if runs_s is None and not member.censored:
            runs_s = self._history.usual_s(workload)
        run = Run(member, runs_s, member.pod)
        playing.runs[member.pod.metadata.name] = run
        if workload.ran_before and member.at_start is not None:
            run.pod, run.since_s, run.ended = member.at_start, self.now, member.at_start.finished
            self._told.tell(_PODS, run.pod)
            self._end_later(playing, run, runs_s if runs_s is None else (member.ended_s or 0.0) - self.now)
        elif workload.job is not None or member.created_s <= self.now:
            self._gate(playing, run)
        else:
            self._at(member.created_s, lambda: self._gate(playing, run))

    def _gate(self, playing: Playing, run: Run) -> None:
        """Make the pod of a member anew: gated, with a UID of its own."""
        if playing.ended_s is not None:
            return
        uid = f"{playing.workload.group.metadata.uid}/{run.member.pod.metadata.name}/{playing.life}"
        run.pod, run.since_s, run.ended = waiting_pod(run.member, uid, self._version(), self.now), None, False
        self._told.tell(_PODS, run.pod)
        self._touched = True

    def _bind(self, playing: Playing, run: Run, node: str, epoch: int) -> None:
        run.pod = running_pod(run.pod, node, self._version(), self.now, epoch)
        run.since_s = self.now
        self._told.tell(_PODS, run.pod)
        self._end_later(playing, run, None if run.runs_s is None else max(run.runs_s - playing.done_s, 0.0))

    def _end_later(self, playing: Playing, run: Run, in_s: float | None) -> None:
        uid = run.pod.metadata.uid
        if in_s is not None:
            self._at(self.now + in_s, lambda: self._end(playing, run, uid))

    def _end(self, playing: Playing, run: Run, uid: str) -> None:
        """End a member, unless it was evicted meanwhile; with the last one the gang goes."""
        if run.pod.metadata.uid != uid or run.ended or playing.ended_s is not None:
            return
        run.ended = True
        run.pod = ended_pod(run.pod, self._version())
        self._told.tell(_PODS, run.pod)
        if all(each.ended for each in playing.runs.values()):
            self._go(playing)

    def _left(self, playing: Playing) -> None:
        """Delete a gang that was deleted then, as long as it has not started: its owner did not wait any longer."""
        waits = playing.first_start_s is None and playing.started_s is None and playing.ended_s is None
        if waits and playing.workload.started_s is None:
            playing.gave_up = True
            self._go(playing)

    def _go(self, playing: Playing) -> None:
        playing.ended_s = self.now
        workload = playing.workload
        for run in playing.runs.values():
            self._told.forget(_PODS, run.pod.metadata.key)
        self._told.forget(_PLACEMENTS, workload.group.metadata.key if workload.kind == _GROUPS else workload.key)
        self._told.forget(workload.kind, workload.group.metadata.key)
        if workload.job is not None:
            self._told.forget(_JOBS, workload.job.metadata.key)
        if self.gangs.get(workload.key) is playing:
            del self.gangs[workload.key]

    def _evict(self, key: str, pods: list[str]) -> None:
        """Take pods (by name) from a gang; under its minimum all go, and it waits again as a whole."""
        playing = self.gangs.get(key)
        if playing is None:
            return
        hurt = [run for name in pods if (run := playing.runs.get(name)) is not None and not run.ended]
        ran = [run for run in hurt if run.since_s is not None]
        if not hurt:
            return
        running = sum(run.since_s is not None for run in playing.runs.values())
        if ran and playing.started_s is not None and running - len(ran) < playing.workload.minimum:
            hurt = list(playing.runs.values())
            elapsed = self.now - playing.started_s + playing.done_s
            playing.done_s = max([saved for saved in playing.workload.checkpoints if saved <= elapsed], default=0.0)
            playing.started_s = None
        playing.life += 1
        playing.evictions += bool(ran)
        for run in hurt:
            self._told.forget(_PODS, run.pod.metadata.key)
        for run in hurt:
            self._gate(playing, run)

    # -- what the planner decides -----------------------------------------------------------------------------------

    def _cycle(self) -> bool:
        """Run a cycle and carry its decisions out; False if nothing changed that a further one could go on with."""
        self.cycles += 1
        snapshot = take(self._told.state)
        session = self._planning.run(snapshot, self._told, lines.Cycle(at=self.now, served=False))
        self._touched = False
        for act in (self._close, self._avoid, self._place, self._room, self._keep, self._reserve, self._enqueue):
            act(session)
        for release in session.decided(decisions.Release):
            self._release(release)
        self._evictions(session)
        self._notices(session)
        return self._touched

    def _placement(self, key: str) -> Placement | None:
        return self._told.state.placement_of(key)

    def _write(self, key: str, spec: dict[str, Any], status: dict[str, Any], *, new: Placement | None = None) -> None:
        """Merge fields into a placement, as its writer patches them."""
        known = new or self._placement(key)
        if known is None:
            return
        merged = changed_by(known, spec, status, str(self._version()))
        self._told.tell(_PLACEMENTS, merged)

    def _close(self, session: Session) -> None:
        for close in session.decided(decisions.ClosePlacement):
            avoided = session.avoided.get(close.gang.key, ())
            spec = {}
            if close.pod_sets is not None:
                spec = {"epoch": close.gang.next_epoch(), "podSets": msgspec.to_builtins(close.pod_sets)}
            self._write(close.gang.key, spec, placementstatus.closed(close, now=session.now, avoided=avoided))
            playing = self.gangs.get(close.gang.key)
            if close.phase == "Bound" and playing is not None and playing.started_s is None:
                playing.started_s = self.now
                playing.first_start_s = self.now if playing.first_start_s is None else playing.first_start_s
                self._phase(playing, "Running")
            self._touched = True

    def _avoid(self, session: Session) -> None:
        failures = self._told.state.failures
        for avoid in session.decided(decisions.Avoid):
            if avoid.avoided is not None:
                self._write(avoid.gang.key, {}, {"avoided": msgspec.to_builtins(list(avoid.avoided))})
            failures.remember(avoid.gang.key, avoid.avoided or ())
            failures.forget(avoid.gang.key, [pod.uid for pod in avoid.counted])

    def _place(self, session: Session) -> None:
        for place in session.decided(decisions.Place):
            known = self._told.objects[_PLACEMENTS].get(place.gang.group.metadata.key)
            remembered = session.snapshot.remembered.get(place.gang.key, ())
            new = placed(place, known, remembered, now=self.now, version=str(self._version()))
            self._told.tell(_PLACEMENTS, new)
            self._touched = True

    def _room(self, session: Session) -> None:
        for there in session.decided(decisions.RoomIsThere):
            known = self._placement(there.gang.key)
            if known is not None:
                over = {"victims": [], "victimsReason": "", "notices": [], "deadline": format_time(self.now + 600)}
                spec = {"podSets": msgspec.to_builtins(there.pod_sets), **over}
                self._write(there.gang.key, spec, placementstatus.room_is_there(known))
                self._touched = True

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
            playing = self.gangs.get(enqueue.gang.key)
            if playing is not None:
                self._phase(playing, "Inqueue")

    def _phase(self, playing: Playing, phase: str) -> None:
        workload = playing.workload
        group = self._told.objects[workload.kind].get(workload.group.metadata.key)
        if workload.kind == _GROUPS and group is not None and group.status.phase != phase:
            meta = replace(group.metadata, resource_version=str(self._version()))
            new = replace(group, metadata=meta, status=replace(group.status, phase=phase))
            self._told.tell(_GROUPS, new)
            self._touched = True

    def _release(self, release: decisions.Release) -> None:
        playing = self.gangs.get(release.gang.key)
        run = playing.runs.get(release.pod.name) if playing is not None else None
        if playing is not None and run is not None and run.pod.metadata.uid == release.pod.uid and run.since_s is None:
            self._bind(playing, run, release.node, release.epoch)
            self._touched = True

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
            self._evict(key, pods)

    def _notices(self, session: Session) -> None:
        for tell in session.decided(decisions.TellNotice):
            self._note(tell, {names.EVICT_AT: tell.evict_at, names.EVICT_FOR: tell.queue})
        for stay in session.decided(decisions.WithdrawNotice):
            self._note(stay, dict.fromkeys((names.EVICT_AT, names.EVICT_FOR, names.EVICT_READY)))

    def _note(self, about: decisions.TellNotice | decisions.WithdrawNotice, said: dict[str, str | None]) -> None:
        playing = self.gangs.get(about.gang.key)
        run = playing.runs.get(about.pod.name) if playing is not None else None
        if run is not None:
            run.pod = annotated_pod(run.pod, self._version(), said)
            self._told.tell(_PODS, run.pod)


def _as_it_came(group: Any) -> Any:
    """Return a PodGroup that the planner has not seen yet: without a status, and without the note of a placement."""
    meta = group.metadata
    annotations = {key: text for key, text in meta.annotations.items() if key != names.PLACEMENT}
    return replace(group, metadata=replace(meta, annotations=annotations), status=PodGroupStatus(phase="Pending"))
