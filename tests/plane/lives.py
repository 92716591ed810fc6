"""What became of every gang of a storm, life by life: told from what watches saw.

A life is one PodGroup: a Job that is restarted gets another one of the same name. Which life a pod is of, and what
came before what, the resource versions say, as etcd counts objects of all kinds together; watches of several kinds are
not in step with each other. How long something lasted is told by the clock of whoever watched.
"""

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

from muster.api import names
from muster.api.kubernetes.core import PODS, Pod
from muster.api.kubernetes.meta import parse_time
from muster.api.kubernetes.pod_problems import DISRUPTED
from muster.api.muster.gang import Slot
from muster.api.muster.placement import PLACEMENTS, Placement
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup
from muster.kube.client import Client
from muster.kube.reflector import Reflector
from muster.workloads.table import gang_of, slot_of


@dataclass(frozen=True, slots=True)
class Seen:
    """One change of an object, as a watch told it."""

    version: int
    """Its resource version; of one that is gone no less than what its watch had told before."""
    moment: float
    """Seconds since the epoch."""
    item: Any
    gone: bool = False


@dataclass(slots=True)
class Member:
    """One pod of a gang."""

    slot: Slot | None
    job_version: str = ""
    """Of its Job when it was made; a restart of the whole Job counts it on."""
    node: str = ""
    """Where it is bound; empty until it is."""
    done: bool = False
    """It has succeeded, which counts for its gang for ever."""
    over: bool = False
    """It has failed, is being deleted, or is gone."""

    @property
    def holds(self) -> bool:
        """It holds a node for its gang."""
        return bool(self.node) and not self.done and not self.over


@dataclass(slots=True)
class Asked:
    """A placement for which pods of other gangs had to go."""

    victims: frozenset[str]
    starts_before: int
    """How often the gang had started by then."""
    given_up: str = ""


@dataclass(slots=True)
class Promise:
    """That a gang of a queue starts then, once those have ended who held its nodes when that was said."""

    at: float
    holders: set[str]
    """UIDs of those who still hold them."""
    free_at: float
    """When the last of them ended."""

    def ended(self, uid: str, moment: float) -> None:
        """A pod holds no node any more."""
        if uid in self.holders:
            self.holders.remove(uid)
            self.free_at = moment

    def late_s(self, moment: float) -> float:
        """By how much a start at this moment is late: slow machines keep pods for longer than anybody knew."""
        return moment - max(self.at, moment if self.holders else self.free_at)


@dataclass(slots=True)
class GangLife:
    """One PodGroup, from its creation on."""

    name: str
    queue: str
    minimum: int
    members: dict[str, Member] = field(default_factory=dict)
    whole: bool = False
    starts: list[float] = field(default_factory=list)
    half_since: float | None = None
    half_s: float = 0.0
    """The longest time for which some members held nodes, and too few had got one."""
    asked: dict[int, Asked] = field(default_factory=dict)

    def look(self, moment: float) -> bool:
        """After something of a member has changed; True if the gang has just started."""
        taken = len({one.slot for one in self.members.values() if one.done or one.holds})
        holds = any(one.holds for one in self.members.values())
        starts = taken >= self.minimum and not self.whole
        self.starts += [moment] * starts
        self.whole = taken >= self.minimum or (self.whole and holds)
        if holds and taken < self.minimum:
            self.half_since = moment if self.half_since is None else self.half_since
        else:
            self.end(moment)
        return starts

    def end(self, moment: float) -> None:
        """It is not half placed any more, or nobody looks any more."""
        if self.half_since is not None:
            self.half_s, self.half_since = max(self.half_s, moment - self.half_since), None


@dataclass(slots=True)
class Story:
    """All of it."""

    lives: list[GangLife] = field(default_factory=list)
    evicted: set[str] = field(default_factory=set)
    """UIDs of pods that the Eviction API let go."""
    evicted_late: int = 0
    """How many of them had succeeded before."""
    run_again: list[str] = field(default_factory=list)
    """Those that were made anew, in the same life of their gang, although their slot's work had been done.

    A pod of a later version of its Job is of a later life, although its PodGroup has not been seen: a watch that had to
    list again tells of a PodGroup with the version of its last change.
    """
    late: dict[str, float] = field(default_factory=dict)
    """Queue → by how many seconds a gang of it started later than was promised to it, at the worst; see `Promise`."""
    promises: int = 0

    @property
    def asked(self) -> list[Asked]:
        """All placements that named victims."""
        return [one for life in self.lives for one in life.asked.values()]

    def in_vain(self) -> dict[str, int]:
        """Gangs for which pods were evicted and which did not start after that, and how many pods."""
        found: dict[str, int] = {}
        for life in self.lives:
            for asked in life.asked.values():
                count = len(asked.victims & self.evicted)
                if count and len(life.starts) <= asked.starts_before:
                    found[life.name] = found.get(life.name, 0) + count
        return found

    def half_placed(self) -> tuple[float, str]:
        """The longest time for which a gang held nodes and was not whole, and its name."""
        return max(((life.half_s, life.name) for life in self.lives), default=(0.0, ""))


class _Teller:
    """Tells the story change by change, in the order of their versions."""

    def __init__(self) -> None:
        self.story = Story()
        self.promised: dict[str, Promise] = {}
        """Queue → the earliest promise since a gang of it has started."""
        self._latest: dict[str, GangLife] = {}
        self._by_uid: dict[str, GangLife] = {}
        self._of_pod: dict[str, GangLife] = {}

    def group(self, seen: Seen) -> None:
        group: PodGroup = seen.item
        if group.metadata.uid not in self._by_uid:
            life = GangLife(group.metadata.name, group.spec.queue, group.spec.min_member)
            self.story.lives.append(life)
            self._by_uid[group.metadata.uid] = self._latest[group.metadata.name] = life

    def placement(self, seen: Seen) -> None:
        placement: Placement = seen.item
        spec, status = placement.spec, placement.status
        life = self._by_uid.get(spec.pod_group_uid)
        if life is None or seen.gone:
            return
        others = frozenset(victim.uid for victim in spec.victims if victim.gang != life.name)
        if others:
            life.asked.setdefault(spec.epoch, Asked(others, len(life.starts)))
        if status.phase == "Abandoned" and spec.epoch in life.asked:
            life.asked[spec.epoch].given_up = status.message
        at = parse_time(status.expected_at) if status.phase == "Reserved" else None
        if at is not None:
            self.story.promises += 1
            known = self.promised.get(life.queue)
            if known is None or at < known.at:
                nodes = {run.node for pod_set in spec.pod_sets for run in pod_set.runs}
                self.promised[life.queue] = Promise(at, self._holders(nodes), seen.moment)

    def pod(self, seen: Seen) -> None:
        pod: Pod = seen.item
        uid = pod.metadata.uid
        told_to_go = any(one.type == DISRUPTED and one.status == "True" for one in pod.status.conditions)
        first = told_to_go and uid not in self.story.evicted
        if first:
            self.story.evicted.add(uid)
        life = self._of_pod.get(uid) or self._latest.get(gang_of(pod) or "")
        if life is None:
            return
        self._of_pod[uid] = life
        if uid not in life.members:
            made = Member(slot_of(pod.metadata), pod.metadata.annotations.get(names.JOB_VERSION, ""))
            if any(
                one.done and (one.slot, one.job_version) == (made.slot, made.job_version)
                for one in life.members.values()
            ):
                self.story.run_again.append(f"{pod.metadata.name} ({uid}) of {life.name}, version {seen.version}")
            life.members[uid] = made
        member = life.members[uid]
        self.story.evicted_late += first and member.done
        member.node = member.node or pod.spec.node_name
        member.done = member.done or pod.status.phase == "Succeeded"
        ends = pod.status.phase == "Failed" or pod.metadata.deletion_timestamp is not None
        member.over = member.over or seen.gone or ends
        if not member.holds:
            for promise in self.promised.values():
                promise.ended(uid, seen.moment)
        if life.look(seen.moment):
            self.kept(life.queue, seen.moment)

    def _holders(self, nodes: set[str]) -> set[str]:
        members = (item for life in self.story.lives for item in life.members.items())
        return {uid for uid, member in members if member.holds and member.node in nodes}

    def kept(self, queue: str, moment: float) -> None:
        """A gang of the queue starts, or the story ends."""
        promise = self.promised.pop(queue, None)
        if promise is not None:
            late_s = promise.late_s(moment)
            self.story.late[queue] = max(self.story.late.get(queue, late_s), late_s)


def told(log: Iterable[Seen], until: float) -> Story:
    """The story of a log, which need not be in order; `until` is when it ended, in seconds since the epoch."""
    teller = _Teller()
    tell = {PodGroup: teller.group, Placement: teller.placement, Pod: teller.pod}
    for seen in sorted(log, key=lambda seen: seen.version):
        tell[type(seen.item)](seen)
    for life in teller.story.lives:
        life.end(until)
    for queue in list(teller.promised):
        teller.kept(queue, until)
    return teller.story


class Recorder:
    """Keeps every change of the PodGroups, Placements and pods of a namespace."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._log: list[Seen] = []
        self._lock = threading.Lock()
        self._reflectors = [self._reflector(client, res, namespace) for res in (POD_GROUPS, PLACEMENTS, PODS)]

    def _reflector(self, client: Client, resource: Any, namespace: str) -> Reflector[Any]:
        reflector = Reflector(client, resource, namespace=namespace)
        last = 0

        def changed(old: Any, new: Any) -> None:
            nonlocal last
            item, version = new or old, int((new or old).metadata.resource_version)
            last = max(last, version)
            with self._lock:
                self._log.append(Seen(last if new is None else version, time.time(), item, gone=new is None))

        reflector.add_handler(changed)
        return reflector

    def __enter__(self) -> Self:
        for reflector in self._reflectors:
            reflector.start()
            assert reflector.wait_synced(10)
        return self

    def __exit__(self, *_: object) -> None:
        for reflector in self._reflectors:
            reflector.stop()

    def story(self) -> Story:
        """What has happened until now."""
        with self._lock:
            log = list(self._log)
        return told(log, time.time())
