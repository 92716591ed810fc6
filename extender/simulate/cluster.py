"""Simulated cluster, in which gangs arrive, and pods run until the end of their running time or an eviction."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import heappush
from itertools import count
from typing import Any

from msgspec.structs import replace

from extender.explain.clusterdump import READ
from extender.planner.scaleup.requests import newest
from extender.planner.state.feed import FEED
from extender.planner.state.podshape import pin_of
from extender.planner.state.state import PlannerState
from extender.simulate.members import SimulatedPod, SimulatedWorkload, ended_pod, members_of, running_pod, waiting_pod
from muster.api import names
from muster.api.kubernetes.autoscaling import PROVISIONING_REQUESTS
from muster.api.kubernetes.core import PODS, Pod
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, PodGroupStatus

_PODS, _GROUPS, _JOBS, _PLACEMENTS = PODS.full_name, POD_GROUPS.full_name, JOBS.full_name, PLACEMENTS.full_name

_FED = {fed.resource.full_name: fed for fed in FEED}


class RecordedState:
    """The planner's state, with all objects in it by kind and key."""

    def __init__(self, state: PlannerState) -> None:
        self.state = state
        self.objects: dict[str, dict[str, Any]] = {kind: {} for kind in READ}

    def apply(self, kind: str, item: Any) -> None:
        """Pass an object to the state, in the same way as a watch does."""
        known = self.objects[kind].get(item.metadata.key)
        if known is not None and known.metadata.uid != item.metadata.uid:
            self.forget(kind, item.metadata.key)
            known = None
        self.objects[kind][item.metadata.key] = item
        if kind in _FED:
            _FED[kind].apply(self.state, known, item)

    def forget(self, kind: str, key: str) -> None:
        """Remove a known object from the state."""
        known = self.objects[kind].pop(key, None)
        if known is not None and kind in _FED:
            _FED[kind].apply(self.state, known, None)

    def requests(self) -> Mapping[str, Any]:
        """Return a mapping from a gang's UID to the gang's newest ProvisioningRequest."""
        return newest(self.objects[PROVISIONING_REQUESTS.full_name].values())


@dataclass(slots=True)
class SimulatedRun:
    """One member in the simulation."""

    member: SimulatedPod
    runs_s: float | None
    """The member's running time, in seconds; None for a member that does not end within the simulation."""
    pod: Pod
    since_s: float | None = None
    ended: bool = False


@dataclass(slots=True)
class Playing:
    """One gang in the simulation, and what has happened to it."""

    workload: SimulatedWorkload
    came_s: float
    runs: dict[str, SimulatedRun] = field(default_factory=dict)
    """Maps the name of a pod to the simulated run of the pod's member."""
    life: int = 0
    first_start_s: float | None = None
    started_s: float | None = None
    """Start of the gang's current run; None while the gang waits."""
    ended_s: float | None = None
    evictions: int = 0
    done_s: float = 0.0
    """Running time, in seconds, up to the gang's last checkpoint; this work is not lost."""
    gave_up: bool = False
    """True if the gang was deleted before it started, because the same happened in the recording."""


class SimulatedCluster:
    """A cluster at the simulated time `now`, and the future events in the order of their times."""

    def __init__(self, world: RecordedState, usual_s: Callable[[SimulatedWorkload], float | None], now: float) -> None:
        """Begin at `now`; `usual_s` returns the running time of a gang that never ran (None: until the end)."""
        self.world = world
        self._usual_s = usual_s
        self.now = now
        self.gangs: dict[str, Playing] = {}
        """Maps a PodGroup's key to the PodGroup's current gang."""
        self.all: list[Playing] = []
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.touched = False
        """True if a change since the last cycle could lead to another decision."""
        self._order = count()
        self._versions = count(1_000_000_000)

    def at(self, at: float, act: Callable[[], None]) -> None:
        """Schedule a call of `act`; calls at the same time run in the order in which they were scheduled."""
        heappush(self.events, (at, next(self._order), act))

    def version(self) -> int:
        """Return the resourceVersion of the next written object."""
        return next(self._versions)

    def come(self, workload: SimulatedWorkload, came: float) -> None:
        """Add a gang at its arrival; it waits, unless it exists from the beginning with a recorded state."""
        playing = self.gangs[workload.key] = Playing(workload, came)
        self.all.append(playing)
        group = workload.group
        self.world.apply(
            workload.kind, _as_it_came(group) if workload.kind == _GROUPS and not workload.is_there else group
        )
        if workload.job is not None:
            self.world.apply(_JOBS, workload.job)
        for member in members_of(workload).values():
            self._member(playing, member)
        if workload.is_there and workload.placement is not None:
            self.world.apply(_PLACEMENTS, workload.placement)
        if workload.ran_before:
            playing.started_s = self.now
        if workload.left_s is not None:
            self.at(workload.left_s, lambda: self._left(playing))

    def _member(self, playing: Playing, member: SimulatedPod) -> None:
        workload = playing.workload
        run = SimulatedRun(member, self._runs_s(workload, member), member.pod)
        playing.runs[member.pod.metadata.name] = run
        if workload.is_there and member.at_start is not None:
            self._as_it_is(playing, run, member.at_start)
        elif workload.job is not None or member.created_s <= self.now:
            self._gate(playing, run)
        else:
            self.at(member.created_s, lambda: self._gate(playing, run))

    def _runs_s(self, workload: SimulatedWorkload, member: SimulatedPod) -> float | None:
        """Return a member's running time; None, until the simulation's end, if the member's end was not recorded."""
        return member.runs_s if member.runs_s is not None or member.censored else self._usual_s(workload)

    def _as_it_is(self, playing: Playing, run: SimulatedRun, pod: Pod) -> None:
        """Create a member's pod in its recorded state: running on a node, expected on its pinned node, or waiting."""
        run.pod, run.ended = pod, pod.finished
        self.world.apply(_PODS, pod)
        if pod.spec.node_name:
            run.since_s = self.now
            self._end_later(playing, run, None if run.runs_s is None else (run.member.ended_s or 0.0) - self.now)
        elif (pin := pin_of(pod.metadata)) and not pod.spec.scheduling_gates:
            self.bind(playing, run, pin, None)

    def _gate(self, playing: Playing, run: SimulatedRun) -> None:
        """Create a member's pod again, with Muster's gate and a new UID."""
        if playing.ended_s is not None:
            return
        uid = f"{playing.workload.group.metadata.uid}/{run.member.pod.metadata.name}/{playing.life}"
        run.pod, run.since_s, run.ended = waiting_pod(run.member, uid, self.version(), self.now), None, False
        self.world.apply(_PODS, run.pod)
        self.touched = True

    def bind(self, playing: Playing, run: SimulatedRun, node: str, epoch: int | None) -> None:
        """Start a member on a node for its running time minus the work saved by the gang's last checkpoint."""
        run.pod = running_pod(run.pod, node, self.version(), self.now, epoch)
        run.since_s = self.now
        self.world.apply(_PODS, run.pod)
        self._end_later(playing, run, None if run.runs_s is None else max(run.runs_s - playing.done_s, 0.0))

    def _end_later(self, playing: Playing, run: SimulatedRun, in_s: float | None) -> None:
        uid = run.pod.metadata.uid
        if in_s is not None:
            self.at(self.now + in_s, lambda: self._end(playing, run, uid))

    def _end(self, playing: Playing, run: SimulatedRun, uid: str) -> None:
        """End a member, unless it has been evicted in the meantime; after the gang's last member, delete the gang."""
        if run.pod.metadata.uid != uid or run.ended or playing.ended_s is not None:
            return
        run.ended = True
        run.pod = ended_pod(run.pod, self.version())
        self.world.apply(_PODS, run.pod)
        if all(each.ended for each in playing.runs.values()):
            self._go(playing)

    def _left(self, playing: Playing) -> None:
        """Delete a gang that has not started, because its owner stopped waiting in the recording."""
        waits = playing.first_start_s is None and playing.started_s is None and playing.ended_s is None
        if waits and playing.workload.started_s is None:
            playing.gave_up = True
            self._go(playing)

    def _go(self, playing: Playing) -> None:
        playing.ended_s = self.now
        workload = playing.workload
        for run in playing.runs.values():
            self.world.forget(_PODS, run.pod.metadata.key)
        self.world.forget(_PLACEMENTS, workload.group.metadata.key if workload.kind == _GROUPS else workload.key)
        self.world.forget(workload.kind, workload.group.metadata.key)
        if workload.job is not None:
            self.world.forget(_JOBS, workload.job.metadata.key)
        if self.gangs.get(workload.key) is playing:
            del self.gangs[workload.key]

    def evict(self, key: str, pods: list[str]) -> None:
        """Evict the pods with the given names, which belong to one gang.

        A gang that falls below its minimum loses all its pods, and waits again.
        """
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
            self.world.forget(_PODS, run.pod.metadata.key)
        for run in hurt:
            self._gate(playing, run)

    def phase(self, playing: Playing, phase: str) -> None:
        """Write the phase of a gang's PodGroup."""
        workload = playing.workload
        group = self.world.objects[workload.kind].get(workload.group.metadata.key)
        if workload.kind == _GROUPS and group is not None and group.status.phase != phase:
            meta = replace(group.metadata, resource_version=str(self.version()))
            new = replace(group, metadata=meta, status=replace(group.status, phase=phase))
            self.world.apply(_GROUPS, new)
            self.touched = True


def _as_it_came(group: Any) -> Any:
    """Return a PodGroup as it was created: without status and without the annotation of a placement."""
    meta = group.metadata
    annotations = {key: text for key, text in meta.annotations.items() if key != names.PLACEMENT}
    return replace(group, metadata=replace(meta, annotations=annotations), status=PodGroupStatus(phase="Pending"))
