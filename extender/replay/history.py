"""Reader of the workloads and changes in a recording.

The history contains the recorded gangs, with their arrivals and their members' running times, and all changes of other
objects.

In a replay, a member runs as long as it did in its last recorded run, from its binding to its end. A member that was
still running at the end of the recording is *censored*: its full running time is unknown, so it runs until the end of
each replay.
"""

from collections.abc import Iterable
from typing import Any

from extender.explain.clusterdump import READ
from extender.record import lines
from extender.replay.workloads import History, ReplayedChange
from extender.simulate.members import SimulatedPod, SimulatedWorkload
from muster.api import names
from muster.api.kubernetes.core import PODS, Pod
from muster.api.kubernetes.meta import Object, readable_time
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS
from muster.api.muster.checkpoint import checkpoint_of
from muster.api.muster.gang import native_gang
from muster.api.muster.placement import PLACEMENTS
from muster.api.names import DEFAULT_QUEUE
from muster.api.volcano.batch import JOBS, Job
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup
from muster.workloads.table import gang_of, slot_of

_PODS, _JOBS, _GROUPS = PODS.full_name, JOBS.full_name, POD_GROUPS.full_name
_NATIVE, _PLACEMENTS = NATIVE_POD_GROUPS.full_name, PLACEMENTS.full_name
_OF_GANGS = frozenset({_PODS, _JOBS, _GROUPS, _NATIVE, _PLACEMENTS})
_ONE_EVICTION_S = 5.0
"""Time, in seconds, within which evictions of several pods of a gang count as one eviction."""
_WHOLE_SECOND_S = 1.0
_EVICTS = frozenset({"evict", "repair", "make-room"})


def history_of(recording: Iterable[lines.AnyLine]) -> History:
    """Read a whole recording. Raises ValueError for a recording that never contains the whole cluster."""
    reader = _Reader()
    for line in recording:
        reader.read_line(line)
    history = reader.history
    if history is None or not history.since_s:
        raise ValueError("the recording ends before the whole cluster was known: it is too short to replay")
    history.before = [change for change in history.before if not reader.of_gang(change)]
    history.changes = [change for change in history.changes if not reader.of_gang(change)]
    return history


class _Reader:
    def __init__(self) -> None:
        self.history: History | None = None
        self._session, self._head_s = "", 0.0
        self._objects: dict[str, dict[str, Any]] = {kind: {} for kind in READ}
        self._gangs: dict[str, SimulatedWorkload] = {}
        """Maps a PodGroup's key to the PodGroup's current gang."""
        self._jobs: dict[str, Job] = {}
        """Maps the UID of a Volcano Job to the Job."""
        self._pods_of: dict[str, dict[str, Pod]] = {}
        """Maps a gang to its pods, keyed by pod; pods may be recorded before their PodGroup."""
        self._by_uid: dict[str, SimulatedPod] = {}
        """Maps a pod's UID to the pod's member of the gang, because the pod's slot may become known later."""
        self._evicted: set[str] = set()
        """UIDs of pods whose eviction has been counted."""
        self._members: set[str] = set()
        """Keys of all pods that ever belonged to a gang."""
        self._among: set[tuple[str, str]] | None = None
        """Kind and key of each object read so far from the list at the start of a file; None after this list."""

    def read_line(self, line: lines.AnyLine) -> None:
        """Read one line."""
        if isinstance(line, lines.Head):
            self._head(line)
        history = self.history
        if history is None:
            return
        if line.at:
            history.until_s = max(history.until_s, line.at)
        match line:
            case lines.KnownLine(kind=kind, object=text) | lines.Put(kind=kind, object=text) if kind in self._objects:
                self._put(line.at or self._head_s, kind, lines.unpacked(kind, text))
            case lines.GoneLine(kind=kind, key=key) if kind in self._objects:
                self._gone(line.at, kind, key)
            case lines.ObjectsEndLine():
                self._whole(line.at)
            case lines.ConfigLine(at=at, text=text):
                history.configs.append((at, text))
            case _:
                self._more(history, line)

    def _more(self, history: History, line: lines.AnyLine) -> None:
        match line:
            case lines.Cycle(at=at, decided=decided):
                self._count(at, decided)
            case lines.Lost(changes=changes):
                history.lost += changes

    def of_gang(self, change: ReplayedChange) -> bool:
        """Return True for a change of a pod that was ever a member of a gang."""
        return change.kind == _PODS and change.key in self._members

    def _head(self, head: lines.Head) -> None:
        if self.history is None:
            self.history = History(head)
        elif head.session != self._session and head.config != self._config():
            self.history.configs.append((head.at, head.config))
        self._session, self._head_s = head.session, head.at
        self._among = set()

    def _config(self) -> str:
        assert self.history is not None  # noqa: S101 - set once a file has begun
        return self.history.configs[-1][1] if self.history.configs else self.history.head.config

    def _whole(self, at: float) -> None:
        """Process the end of the list of objects with which a file begins."""
        if self._among is None:
            return
        for kind, objects in self._objects.items():
            for key in [key for key in objects if (kind, key) not in self._among]:
                self._gone(at, kind, key)
        self._among = None
        if self.history is not None and not self.history.since_s:
            self._settle(self.history, at)

    def _settle(self, history: History, at: float) -> None:
        """Record the objects that exist at the beginning of the recording."""
        history.since_s = at
        for kind, objects in self._objects.items():
            if kind not in _OF_GANGS or kind == _PODS:
                history.before += [ReplayedChange(at, kind, key, each) for key, each in objects.items()]
        for workload in history.workloads:
            workload.ran_before = workload.is_there = workload.running >= workload.minimum
            workload.started_s = at if workload.ran_before else None
            workload.placement = self._objects[_PLACEMENTS].get(workload.key)
            if workload.ran_before:
                pods = {pod.metadata.uid: pod for pod in self._pods_of.get(workload.key, {}).values()}
                for member in workload.members.values():
                    pod = pods.get(member.uid)
                    member.at_start = pod if pod is not None and pod.spec.node_name else None
                workload.group = self._objects[workload.kind].get(workload.group.metadata.key, workload.group)

    def _put(self, at: float, kind: str, item: Object) -> None:
        key = item.metadata.key
        if self._among is not None:
            self._among.add((kind, key))
        known = self._objects[kind].get(key)
        if known is not None and known.metadata.uid != item.metadata.uid:
            self._gone(at, kind, key)
        elif known == item:
            return
        self._objects[kind][key] = item
        if isinstance(item, Job):
            self._job(item)
        elif kind in {_GROUPS, _NATIVE}:
            self._group(at, kind, item)
        elif isinstance(item, Pod):
            self._any_pod(at, item)
        elif kind not in _OF_GANGS:
            self._changed(ReplayedChange(at, kind, key, item))

    def _gone(self, at: float, kind: str, key: str) -> None:
        item = self._objects[kind].pop(key, None)
        if item is None:
            return
        if kind in {_GROUPS, _NATIVE}:
            gang = self._gangs.pop(_gang_key(kind, item), None)
            if gang is not None:
                gang.left_s = at
                for member in gang.members.values():
                    if member.since_s is not None and member.ended_s is None:
                        member.ended_s = at
        elif isinstance(item, Pod):
            of = _gang_of(item)
            self._pods_of.get(of, {}).pop(key, None)
            self._changed(ReplayedChange(at, kind, key, None))
            if of in self._gangs:
                self._pod_gone(at, self._gangs[of], item)
        elif kind not in _OF_GANGS:
            self._changed(ReplayedChange(at, kind, key, None))

    def _any_pod(self, at: float, pod: Pod) -> None:
        """Read a pod of any kind; `of_gang` recognizes pods of gangs later, because a PodGroup may follow its pods."""
        of = _gang_of(pod)
        self._changed(ReplayedChange(at, _PODS, pod.metadata.key, pod))
        if of:
            self._pods_of.setdefault(of, {})[pod.metadata.key] = pod
        if of in self._gangs:
            self._pod(at, self._gangs[of], pod)

    def _changed(self, change: ReplayedChange) -> None:
        if self.history is not None and self.history.since_s:
            self.history.changes.append(change)

    def _job(self, job: Job) -> None:
        self._jobs[job.metadata.uid] = job
        for gang in self._gangs.values():
            owner = gang.group.metadata.controller
            if owner is not None and owner.uid == job.metadata.uid and gang.job is None:
                gang.job = job

    def _group(self, at: float, kind: str, item: Any) -> None:
        key = _gang_key(kind, item)
        if key in self._gangs:
            return
        owner = item.metadata.controller
        came = readable_time(item.metadata.creation_timestamp)
        before = self.history is not None and not self.history.since_s
        gang = SimulatedWorkload(key, kind, item, came if before and came else at, _queue(item), minimum=_minimum(item))
        gang.job = self._jobs.get(owner.uid) if owner else None
        self._gangs[key] = gang
        if self.history is not None:
            self.history.workloads.append(gang)
        for pod in self._pods_of.get(key, {}).values():
            self._pod(at, gang, pod)

    def _pod(self, at: float, gang: SimulatedWorkload, pod: Pod) -> None:
        """Read a pod of a gang: a new member, the successor of a member, or a changed member."""
        self._members.add(pod.metadata.key)
        name: object = slot_of(pod.metadata) or pod.metadata.name
        member = self._by_uid.get(pod.metadata.uid) or gang.members.get(name)
        if member is None and isinstance(name, str):
            vacant = next((key for key, each in gang.members.items() if each.vacant), None)
            if vacant is not None:
                member = gang.members[name] = gang.members.pop(vacant)
        if member is None:
            member = gang.members[name] = SimulatedPod(pod, at, pod.metadata.uid)
        elif member.uid != pod.metadata.uid:
            member.uid, member.node, member.since_s, member.ended_s = pod.metadata.uid, "", None, None
            member.vacant = False
        self._by_uid[pod.metadata.uid] = member
        self._follow(at, gang, member, pod)

    def _follow(self, at: float, gang: SimulatedWorkload, member: SimulatedPod, pod: Pod) -> None:
        if pod.spec.node_name and not member.node:
            member.node, member.since_s = pod.spec.node_name, _since_s(pod, at)
            if gang.started_s is None and gang.running >= gang.minimum:
                gang.started_s = at
        if member.since_s is not None and member.ended_s is None and (pod.finished or pod.metadata.deletion_timestamp):
            member.ended_s = max(at, member.since_s)
            member.vacant = not pod.finished
        saved = checkpoint_of(pod.metadata.annotations.get(names.CHECKPOINT))
        if saved is not None and member.since_s is not None and saved.at > member.since_s:
            ran = saved.at - member.since_s
            if ran not in gang.checkpoints:
                gang.checkpoints.append(ran)

    def _pod_gone(self, at: float, gang: SimulatedWorkload, pod: Pod) -> None:
        for member in gang.members.values():
            if member.uid == pod.metadata.uid:
                member.vacant = member.vacant or not pod.finished
                if member.since_s is not None and member.ended_s is None:
                    member.ended_s = at

    def _count(self, at: float, decided: Iterable[tuple[str, ...]]) -> None:
        """Count evictions of gangs once, although each cycle repeats an eviction's decision until the pods are gone."""
        for verb, gang, *more in decided:
            if verb not in _EVICTS:
                continue
            workload = self._gangs.get(more[0] if verb == "make-room" else gang)
            pod = self._objects[_PODS].get(more[-1])
            if workload is None or pod is None or not pod.spec.node_name or pod.metadata.uid in self._evicted:
                continue
            self._evicted.add(pod.metadata.uid)
            workload.evictions += at > workload.evicted_s + _ONE_EVICTION_S
            workload.evicted_s = at


def _minimum(item: Any) -> int:
    return max(item.spec.min_member, 1) if isinstance(item, PodGroup) else 1


def _queue(item: Any) -> str:
    named = item.spec.queue if isinstance(item, PodGroup) else item.metadata.labels.get(names.QUEUE)
    return named or DEFAULT_QUEUE


def _gang_of(pod: Pod) -> str:
    """Return the key of the gang that a pod names; empty for other pods."""
    gang = gang_of(pod)
    return f"{pod.metadata.namespace}/{gang}" if gang else ""


def _gang_key(kind: str, item: Any) -> str:
    meta = item.metadata
    return meta.key if kind == _GROUPS else f"{meta.namespace}/{native_gang(meta.name)}"


def _since_s(pod: Pod, at: float) -> float:
    """Return the time when a pod was bound: the recorded time, or the time in the pod's condition if it is earlier.

    The times of conditions are rounded down to seconds, so a running time computed from such times is up to a second
    too long.
    """
    scheduled = pod.status.condition("PodScheduled")
    since = scheduled.last_transition_time if scheduled and scheduled.status == "True" else None
    bound = readable_time(since) or readable_time(pod.status.start_time)
    return at if bound is None or at - bound < _WHOLE_SECOND_S else bound
