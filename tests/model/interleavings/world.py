"""The world: an API server, the extender, kube-scheduler, kubelets and users, and every step that can happen next.

A world is a value. `Rules.steps` lists what can happen in one; each step leads to another world. Watches tell at once,
unless the world's fault is a stale one; time passes only when nothing else happens, unless its fault is a slow one.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import msgspec

from interleavings.api import Api, Event, Request, Stored, kind_of
from interleavings.automaton import At, Automaton
from interleavings.extender import WITHOUT, Binding, ExtenderProcess
from interleavings.inputs import Answered, Bound, Cycle, Filtered, Rested, Time, Watched
from interleavings.process import Call
from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.core import NODES, PODS
from muster.api.muster.gang import Slot
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.errors import Unreachable

START_S = 1_800_000_000.0
GPU = "nvidia.com/gpu"


class Faults(NamedTuple):
    """How often each may still happen."""

    crash: int = 0
    scheduler_crash: int = 0
    lost: int = 0
    stale: int = 0
    node: int = 0
    slow: int = 0
    refuse: int = 0
    """kube-scheduler finds that a pod cannot run where it is planned: it knows more than the planner."""
    delete: int = 0
    """A user deletes a gang that has not ended."""
    controller_crash: int = 0
    controller_lost: int = 0
    pod: int = 0

    def __str__(self) -> str:
        """Those that may happen."""
        return ", ".join(f"{name} {left}" for name, left in self._asdict().items() if left) or "no fault"


class InFlight(NamedTuple):
    """A pod for which kube-scheduler has chosen a node; `called`: it has called bind."""

    pod: str
    uid: str
    node: str
    called: bool


@dataclass(frozen=True)
class World:
    """One moment."""

    api: Api
    extender: At
    now_s: float
    faults: Faults
    waits: int
    """How often time may still pass while nothing else happens."""
    life: int = 0
    """Lives of kube-scheduler before this one."""
    scheduling: tuple[InFlight, ...] = ()
    late: tuple[str, tuple[Event, ...]] | None = None
    """The kind of the stale watch, and what it has not told."""
    pending: tuple[str, ...] = ()
    """Gangs that are still to be submitted."""
    refused: tuple[tuple[str, str], ...] = ()
    """UID of a pod, and a node that kube-scheduler has refused for it."""
    deleted: tuple[str, ...] = ()
    """Gangs that were deleted."""
    ended: tuple[str, ...] = ()
    """Gangs that were removed when they had ended."""

    done: ClassVar[frozenset[tuple[str, Slot | None]]] = frozenset()
    """Not noted here: in a small world, no gang takes the place of a succeeded member of a Job that restarts."""

    @property
    def absent(self) -> tuple[str, ...]:
        """Gangs that are not there: yet, or any more."""
        return (*self.pending, *self.deleted, *self.ended)

    @cached_property
    def key(self) -> bytes:
        """What tells two worlds apart, in short: millions are kept."""
        return hashlib.blake2b(repr(self.parts).encode(), digest_size=16).digest()

    @property
    def parts(self) -> tuple[Any, ...]:
        """All that tells two worlds apart."""
        late = self.late and (self.late[0], tuple((event.stored.digest, event.gone) for event in self.late[1]))
        return (
            self.api.digest,
            self.extender.digest,
            self.now_s,
            self.faults,
            self.waits,
            self.life,
            self.scheduling,
            late,
            self.pending,
            self.refused,
            self.deleted,
            self.ended,
        )


class Step(NamedTuple):
    """Something that can happen: in words, and the world after it. `kind` groups steps for statistics."""

    kind: str
    words: str
    go: Callable[[], World]


@dataclass
class Scene:
    """What a world is made of: objects at the beginning, and those of each gang by name."""

    nodes: int = 3
    gangs: dict[str, int] = field(default_factory=lambda: {"a": 2, "b": 2})
    waits: int = 3
    gated: bool = True
    """Whether pods are held back by Muster's gate until they are planned."""
    lost: Sequence[str] | None = None
    """The nodes of which one may be lost; None: any."""
    in_turn: bool = False
    """For larger worlds: calls of one kind are answered as they were made, owners make their pods by their indexes,
    kube-scheduler takes them by their names and calls bind at once (unless it is to fail in between), users, owners and
    kubelets act while the planner rests, and a gang that has ended is removed before anything else happens. The smaller
    worlds go through all orders.
    """


class Rules:
    """What can happen, over one automaton of the extender."""

    def __init__(self, scene: Scene, make: Callable[[float], ExtenderProcess] = ExtenderProcess) -> None:
        self.scene = scene
        self.extender = Automaton(make, WITHOUT)

    def first(self, faults: Faults) -> World:
        """The world before anything has happened."""
        api, at = self._begin(Api({}, {}))
        return World(api, at, START_S, faults, self.scene.waits, pending=tuple(self.scene.gangs))

    def _begin(self, api: Api) -> tuple[Api, At]:
        """Nodes and the queue, and an extender that has seen them."""
        events: list[Event] = []
        for resource, content in first_objects(self.scene):
            api, _, told = api.create(resource, content, START_S)
            events += told
        at, _ = self.extender.step(self.extender.start(START_S), Watched(events))
        return api, at

    def steps(self, world: World) -> list[Step]:
        """Everything that can happen next; a step that everything else can follow alike comes alone."""
        alone = next((call for call in world.extender.open if _is_for_itself(call)), None)
        if alone is not None:
            return [Step("answer", f"the API server answers: {alone[0]}", lambda: self._answer(world, alone))]
        running = next(_of_whole_gangs(self, world), None)
        if running is not None:
            return [running]
        over = next((name for name in self.scene.gangs if self.scene.in_turn and _is_over(self, world, name)), None)
        if over is not None:
            return [Step("user", f"the ended gang {over} is removed", lambda: self._clear(world, over))]
        steps = [*self._of_extender(world), *self._of_scheduler(world)]
        if world.extender.may_cycle or not self.scene.in_turn:
            steps = [*self._of_users(world), *steps, *_of_kubelets(self, world)]
        return [*self._or_time(world, steps), *self._faults(world)]

    def _or_time(self, world: World, steps: list[Step]) -> list[Step]:
        """These steps; where none of them changes anything, that time passes."""
        quiet = not any(step.go().key != world.key for step in steps)
        if quiet and world.waits:
            return [Step("time", "31 s pass", lambda: self._time(_less(world), Rested(world.now_s + 31.0)))]
        return steps

    # Users.

    def _of_users(self, world: World) -> Iterator[Step]:
        if world.pending:
            name = world.pending[0]
            yield Step("user", f"a user submits gang {name}", lambda: self._submit(world, name))

    def _submit(self, world: World, name: str) -> World:
        api, events = world.api, []
        for resource, content in gang_objects(name, self.scene.gangs[name], gated=self.scene.gated):
            api, _, told = api.create(resource, content, world.now_s)
            events += told
        return self.told(_with(world, api=api, pending=world.pending[1:]), events)

    # The extender.

    def _of_extender(self, world: World) -> Iterator[Step]:
        for call in self._next_calls(world):
            yield Step("answer", f"the API server answers: {call[0]}", lambda call=call: self._answer(world, call))
        if world.extender.may_cycle:
            yield Step("cycle", "the extender begins a planning cycle", lambda: self._give(world, Cycle()))

    def _next_calls(self, world: World) -> Iterable[Call]:
        if not self.scene.in_turn:
            return world.extender.open
        first: dict[tuple[str, str], Call] = {}
        for call in world.extender.open:
            first.setdefault((call[0].verb, call[0].resource.plural), call)
        return first.values()

    def _answer(self, world: World, call: Call, *, lost: bool = False) -> World:
        api, answer, events = world.api.execute(call[0], world.now_s)
        if lost:
            answer = Unreachable("the connection has ended", reason="Ended", where="model")
        return self._give(self.told(_with(world, api=api), events), Answered(call, answer))

    def _give(self, world: World, given: Any) -> World:
        at, said = self.extender.step(world.extender, given)
        world = _with(world, extender=at)
        for what, call, _ in (each for each in said if each[0] == "bound"):
            del what
            uid, life = call
            if life == world.life:
                world = _with(world, scheduling=tuple(one for one in world.scheduling if one.uid != uid))
        return world

    def told(self, world: World, events: list[Event]) -> World:
        """The world after the watches have told of changes."""
        if world.late is not None:
            kind, waiting = world.late
            held = [event for event in events if kind_of(event.resource) == kind]
            events = [event for event in events if kind_of(event.resource) != kind]
            world = _with(world, late=(kind, (*waiting, *held)))
        return self._give(world, Watched(events)) if events else world

    # kube-scheduler.

    def _of_scheduler(self, world: World) -> Iterator[Step]:
        under_way = {one.uid for one in world.scheduling}
        for pod in world.api.all(PODS):
            if pod.meta["uid"] not in under_way and _to_schedule(pod):
                look = Step("filter", f"it looks for a node for {_name(pod)}", lambda pod=pod: self._filter(world, pod))
                yield look
                if self.scene.in_turn and look.go().key != world.key:
                    break
        for one in world.scheduling:
            if not one.called:
                yield Step("bind", f"it calls bind: {one.pod} on {one.node}", lambda one=one: self._bind(world, one))

    def _filter(self, world: World, pod: Stored) -> World:
        nodes = [node.meta["name"] for node in world.api.all(NODES) if _fits(world, pod, node)]
        nodes = [node for node in nodes if (pod.meta["uid"], node) not in world.refused]
        if not nodes:
            return world
        at, said = self.extender.step(world.extender, Filtered(pod, nodes))
        world = _with(world, extender=at)
        answer = next(each[1] for each in said if each[0] == "filtered")
        if isinstance(answer, str) or not answer:
            return world
        chosen = InFlight(_name(pod), pod.meta["uid"], answer[-1], called=False)
        world = _with(world, scheduling=tuple(sorted((*world.scheduling, chosen))))
        at_once = self.scene.in_turn and not (world.faults.refuse or world.faults.scheduler_crash)
        return self._bind(world, chosen) if at_once else world

    def _bind(self, world: World, one: InFlight) -> World:
        called = tuple(sorted(each._replace(called=True) if each == one else each for each in world.scheduling))
        call = Bound((one.uid, world.life), Binding("ns", one.pod, one.uid, one.node))
        return self._give(_with(world, scheduling=called), call)

    # Time, and what goes wrong.

    def _time(self, world: World, passed: Time | Rested) -> World:
        return self._give(_with(world, now_s=passed.now_s), passed)

    def _faults(self, world: World) -> Iterator[Step]:  # noqa: C901, PLR0912 - one case for each fault
        left = world.faults
        if left.crash:
            yield Step("fault", "the extender dies, and starts again", lambda: self._crash(world))
        if left.scheduler_crash:
            yield Step("fault", "kube-scheduler dies, and starts again", lambda: self._scheduler_crash(world))
        if left.lost:
            for call in self._next_calls(world):
                yield Step(
                    "fault",
                    f"the API server does, but its answer is lost: {call[0]}",
                    lambda call=call: self._answer(_less(world, "lost"), call, lost=True),
                )
        if left.stale and world.late is None:
            for resource in (PODS, PLACEMENTS, POD_GROUPS, NODES):
                yield Step(
                    "fault",
                    f"the watch of {resource.plural} falls behind",
                    lambda resource=resource: _with(_less(world, "stale"), late=(kind_of(resource), ())),
                )
        if world.late is not None and world.late[1]:
            yield Step("catch up", f"the watch of {world.late[0]} catches up", lambda: self._catch_up(world))
        if left.node:
            lost = self.scene.lost
            for node in (each for each in world.api.all(NODES) if lost is None or _name(each) in lost):
                yield Step("fault", f"node {_name(node)} is lost", lambda node=node: self._lose(world, node))
        if left.refuse:
            for one in world.scheduling:
                if not one.called:
                    yield Step(
                        "fault",
                        f"kube-scheduler finds that {one.pod} cannot run on {one.node}",
                        lambda one=one: self._refuse(world, one),
                    )
        if left.delete:
            for name in self.scene.gangs:
                if name not in world.absent:
                    yield Step("fault", f"a user deletes gang {name}", lambda name=name: self._delete(world, name))
        if left.slow:
            yield Step(
                "fault",
                "nobody does anything for 31 s",
                lambda: self._time(_less(world, "slow"), Time(world.now_s + 31.0)),
            )

    def _crash(self, world: World) -> World:
        at = self.extender.start(world.now_s)
        world = _with(_less(world, "crash"), extender=at, late=None)
        # kube-scheduler's calls have failed, and it tries their pods again
        world = _with(world, scheduling=tuple(one for one in world.scheduling if not one.called))
        return self._give(
            world,
            Watched([Event(resource, one, gone=False) for resource in _LISTED for one in world.api.all(resource)]),
        )

    def _scheduler_crash(self, world: World) -> World:
        # only a call that was made before tells a later life from an earlier one
        called = any(one.called for one in world.scheduling)
        return _with(_less(world, "scheduler_crash"), scheduling=(), life=world.life + called)

    def _catch_up(self, world: World) -> World:
        assert world.late is not None
        events = [*world.late[1]]
        world = _with(world, late=None)
        return self._give(world, Watched(events)) if events else world

    def _refuse(self, world: World, one: InFlight) -> World:
        refused = tuple(sorted((*world.refused, (one.uid, one.node))))
        left = tuple(each for each in world.scheduling if each != one)
        return _with(_less(world, "refuse"), refused=refused, scheduling=left)

    def _delete(self, world: World, name: str) -> World:
        world = self._removed(world, name)
        return _with(_less(world, "delete"), deleted=tuple(sorted((*world.deleted, name))))

    def _clear(self, world: World, name: str) -> World:
        return _with(self._removed(world, name), ended=tuple(sorted((*world.ended, name))))

    def _removed(self, world: World, name: str) -> World:
        """The world after a user has deleted a gang's objects."""
        api, events = world.api, []
        doomed = [(kind, one) for kind in (POD_GROUPS, PLACEMENTS) for one in api.all(kind) if _name(one) == name]
        for resource, one in doomed:
            api, told = api.without(resource, one)
            events += told
        for pod in _members(world, name):
            api, _, told = api.execute(Request("delete", PODS, "ns", _name(pod)), world.now_s)
            events += told
        return self.told(_with(world, api=api), events)

    def _lose(self, world: World, node: Stored) -> World:
        api, events = world.api.without(NODES, node)
        return self.told(_with(_less(world, "node"), api=api), events)


def _of_kubelets(rules: Rules, world: World) -> Iterator[Step]:
    nodes = {node.meta["name"] for node in world.api.all(NODES)}
    for pod in world.api.all(PODS):
        node = pod.spec.get("nodeName")
        if node and node not in nodes:
            yield Step("gc", f"the collector deletes {_name(pod)}", lambda pod=pod: _remove(rules, world, pod))
        elif node and pod.meta.get("deletionTimestamp"):
            yield Step("kubelet", f"the kubelet ends {_name(pod)}", lambda pod=pod: _remove(rules, world, pod))
    for name, size in rules.scene.gangs.items():
        mine = _members(world, name)
        if len(mine) == size and all(
            pod.status.get("phase") == "Running" and not pod.meta.get("deletionTimestamp") for pod in mine
        ):
            yield Step("kubelet", f"gang {name} ends", lambda mine=mine: _phase(rules, world, mine, "Succeeded"))
        if name not in world.absent and not any(pod.status.get("phase") == "Succeeded" for pod in mine):
            for index in range(size):
                pod_name = f"{name}-{index}"
                if (
                    all(_name(pod) != pod_name for pod in mine)
                    and world.api.births.get((kind_of(PODS), "ns", pod_name), 0) < 3
                ):
                    yield Step(
                        "owner",
                        f"its controller makes {pod_name} anew",
                        lambda name=name, index=index: _make(rules, world, name, index),
                    )
                    if rules.scene.in_turn:
                        break


def _of_whole_gangs(rules: Rules, world: World) -> Iterator[Step]:
    """Gangs of which all members are bound start at once: only what is said of them depends on when."""
    nodes = {node.meta["name"] for node in world.api.all(NODES)}
    for name, size in rules.scene.gangs.items():
        mine = _members(world, name)
        bound = [pod for pod in mine if pod.spec.get("nodeName") in nodes and not pod.meta.get("deletionTimestamp")]
        if len(bound) == size and any(pod.status.get("phase") == "Pending" for pod in bound):
            yield Step("kubelet", f"gang {name} runs", lambda bound=bound: _phase(rules, world, bound, "Running"))


def _members(world: World, name: str) -> list[Stored]:
    """The pods of a gang."""
    return [pod for pod in world.api.all(PODS) if pod.meta["annotations"].get(names.GROUP_NAME) == name]


def _is_over(rules: Rules, world: World, name: str) -> bool:
    """Whether a gang has ended while the planner rests, and nothing is under way."""
    if world.extender.open or world.scheduling or not world.extender.may_cycle:
        return False
    pods = _members(world, name)
    return len(pods) == rules.scene.gangs[name] and all(pod.status.get("phase") == "Succeeded" for pod in pods)


def _make(rules: Rules, world: World, gang: str, index: int) -> World:
    api, _, events = world.api.create(PODS, pod_content(gang, index, gated=rules.scene.gated), world.now_s)
    return rules.told(_with(world, api=api), events)


def _remove(rules: Rules, world: World, pod: Stored) -> World:
    api, events = world.api.without(PODS, pod)
    return rules.told(_with(world, api=api), events)


def _phase(rules: Rules, world: World, pods: list[Stored], phase: str) -> World:
    api, events = world.api, []
    for pod in pods:
        content = msgspec.json.decode(pod.text)
        content["status"]["phase"] = phase
        api, _, told = api.put(PODS, content)
        events += told
    return rules.told(_with(world, api=api), events)


def _with(world: World, **changes: Any) -> World:
    return replace(world, **changes)


def _less(world: World, fault: str = "") -> World:
    if not fault:
        return _with(world, waits=world.waits - 1)
    return _with(world, faults=world.faults._replace(**{fault: getattr(world.faults, fault) - 1}))


def _name(one: Stored) -> str:
    return str(one.meta["name"])


def _is_for_itself(call: Call) -> bool:
    """Whether a request changes nothing that anybody decides by: it commutes with every other step."""
    request = call[0]
    return request.verb == "list" or request.resource.plural in {"queues", "podgroups"}


def _to_schedule(pod: Stored) -> bool:
    """Whether kube-scheduler looks for a node for a pod."""
    spec = pod.spec
    return not (spec.get("nodeName") or spec.get("schedulingGates") or pod.meta.get("deletionTimestamp"))


def gpus_of(pod: Stored) -> int:
    """What the pod requests."""
    return sum(int(each["resources"]["requests"][GPU]) for each in pod.spec["containers"])


def used(pods: list[Stored], node: str) -> int:
    """GPUs of a node that pods hold."""
    return sum(
        gpus_of(pod)
        for pod in pods
        if pod.spec.get("nodeName") == node and pod.status.get("phase") not in {"Succeeded", "Failed"}
    )


def _fits(world: World, pod: Stored, node: Stored) -> bool:
    """What kube-scheduler's own plugins say."""
    name = _name(node)
    pins = pod.meta["annotations"].get(names.NODE)
    if pins and pins != name:
        return False
    pods = world.api.all(PODS)
    by_uid = {each.meta["uid"]: each for each in pods}
    assumed = sum(
        gpus_of(by_uid[one.uid])
        for one in world.scheduling
        if one.node == name and one.uid in by_uid and not by_uid[one.uid].spec.get("nodeName")
    )
    return used(pods, name) + assumed + gpus_of(pod) <= int(node.status["allocatable"][GPU])


_LISTED = (NODES, QUEUES, JOBS, POD_GROUPS, PLACEMENTS, PODS)
"""What a new extender lists, in the order of its feed."""


def first_objects(scene: Scene) -> Iterator[tuple[Resource[Any], dict[str, Any]]]:
    """Nodes and the queue."""
    for index in range(scene.nodes):
        allocatable = {"cpu": "8", "memory": "32Gi", "pods": "110", GPU: "8"}
        ready = [{"type": "Ready", "status": "True"}]
        yield NODES, {"metadata": {"name": f"n{index}"}, "status": {"allocatable": allocatable, "conditions": ready}}
    yield QUEUES, {"metadata": {"name": "default"}, "spec": {}, "status": {"state": "Open"}}


def gang_objects(name: str, size: int, *, gated: bool) -> Iterator[tuple[Resource[Any], dict[str, Any]]]:
    """A PodGroup and its pods."""
    yield POD_GROUPS, {"metadata": {"name": name, "namespace": "ns"}, "spec": {"minMember": size, "queue": "default"}}
    for index in range(size):
        yield PODS, pod_content(name, index, gated=gated)


def pod_content(gang: str, index: int, *, gated: bool) -> dict[str, Any]:
    """A pod of a gang as it is after admission: behind Muster's gate."""
    container = {"name": "main", "resources": {"requests": {GPU: "8"}}}
    spec: dict[str, Any] = {"schedulerName": "muster", "containers": [container]}
    if gated:
        spec["schedulingGates"] = [{"name": names.GATE}]
    meta = {"name": f"{gang}-{index}", "namespace": "ns", "annotations": {names.GROUP_NAME: gang}}
    return {"metadata": meta, "spec": spec}
