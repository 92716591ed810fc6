"""A world with Volcano Jobs: the controller is another process of it, and what users make goes through admission."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from interleavings.admission import Admission
from interleavings.api import Api, Event, Stored
from interleavings.automaton import At, Automaton
from interleavings.controller import WITHOUT, ControllerProcess, Lead, Passed, Taken
from interleavings.extender import ExtenderProcess
from interleavings.inputs import Answered, Rested, Time, Watched
from interleavings.process import Call
from interleavings.world import (
    _LISTED,
    GPU,
    START_S,
    Faults,
    Rules,
    Scene,
    Step,
    World,
    _is_for_itself,
    _less,
    _name,
    _remove,
    _with,
)
from muster.api.kubernetes.core import NODES, PODS
from muster.api.volcano.batch import JOBS
from muster.kube.errors import Unreachable

POLICIES = [{"event": "PodFailed", "action": "RestartJob"}]


@dataclass(frozen=True)
class JobWorld(World):
    """One moment, with the controller's state."""

    controller: At = None  # type: ignore[assignment]  # fields of World have defaults

    @property
    def parts(self) -> tuple[Any, ...]:
        """All that tells two worlds apart."""
        return (*super().parts, self.controller.digest)


@dataclass
class JobScene(Scene):
    """Jobs in place of gangs, each with so many pods, and how often each may be restarted by its policies."""

    jobs: dict[str, int] = field(default_factory=lambda: {"a": 2, "b": 2})
    retries: int = 1
    waits: int = 8


class JobRules(Rules):
    """What can happen, over automata of the extender and of the controller."""

    scene: JobScene

    def __init__(self, scene: JobScene, make: Callable[[float], ExtenderProcess] = ExtenderProcess) -> None:
        super().__init__(scene, make)
        self.controller = Automaton(ControllerProcess, WITHOUT)
        self.defects: list[str] = []

    def first(self, faults: Faults) -> JobWorld:
        """The world before anything has happened."""
        api, extender = self._begin(Api({}, {}, Admission()))
        controller = self._new_controller(api, START_S)
        return JobWorld(
            api, extender, START_S, faults, self.scene.waits, pending=tuple(self.scene.jobs), controller=controller
        )

    def steps(self, world: World) -> list[Step]:
        """Everything that can happen next; a step that everything else can follow alike comes alone."""
        assert isinstance(world, JobWorld)
        alone = next(self._alone(world), None)
        if alone is not None:
            return [alone, *self._faults(world)]
        steps = [
            *self._of_users(world),
            *self._of_extender(world),
            *self._of_controller(world),
            *self._of_scheduler(world),
            *self._of_pods(world),
            *self._of_garbage(world),
        ]
        return [*self._or_time(world, steps), *self._faults(world)]

    def _alone(self, world: JobWorld) -> Iterator[Step]:
        """Steps that all others can follow alike, so that no other order leads anywhere else; faults still can come.

        - Nobody but the controller, in its one pass over a Job, writes or reads the status of that Job.
        - A pass that asks for nothing and says nothing has found nothing to do: it may as well come before the next
          change, which has the same key taken again.
        - That all pods of a Job run is only said of them.
        """
        for call in world.extender.open:
            if _is_for_itself(call) and call[0].resource.plural != "podgroups":
                yield Step("answer", f"the API server answers: {call[0]}", lambda call=call: self._answer(world, call))
        for call in world.controller.open:
            if call[0].resource is JOBS:
                yield Step(
                    "controller",
                    f"the controller is answered: {call[0]}",
                    lambda call=call: self._answer_controller(world, call),
                )
        for worker, key in world.controller.keys:
            after, said = self.controller.step(world.controller, Taken(worker, key))
            if after.open == world.controller.open and not said:
                yield Step(
                    "pass",
                    f"the controller's worker {worker} takes {key}, and finds nothing to do",
                    lambda worker=worker, key=key: self._control(world, Taken(worker, key)),
                )
        yield from (step for step in self._of_pods(world) if step.words.endswith(" run"))

    # Users.

    def _submit(self, world: World, name: str) -> World:
        api, _, events = world.api.create(
            JOBS, job_content(name, self.scene.jobs[name], self.scene.retries), world.now_s
        )
        return self.told(_with(world, api=api, pending=world.pending[1:]), events)

    # The controller.

    def _of_controller(self, world: JobWorld) -> Iterator[Step]:
        for worker, key in world.controller.keys:
            yield Step(
                "pass",
                f"the controller's worker {worker} takes {key}",
                lambda worker=worker, key=key: self._control(world, Taken(worker, key)),
            )
        for call in world.controller.open:
            yield Step(
                "controller",
                f"the controller is answered: {call[0]}",
                lambda call=call: self._answer_controller(world, call),
            )

    def _answer_controller(self, world: JobWorld, call: Call, *, lost: bool = False) -> World:
        api, answer, events = world.api.execute(call[0], world.now_s)
        if lost:
            answer = Unreachable("the connection has ended", reason="Ended", where="model")
        return self._control(self.told(_with(world, api=api), events), Answered(call, answer))

    def _control(self, world: Any, given: Any) -> World:
        at, said = self.controller.step(world.controller, given)
        self.defects += [
            f"a defect in the pass of {worker} over {key}" for what, worker, key in said if what == "defect"
        ]
        return _with(world, controller=at)

    def told(self, world: World, events: list[Event]) -> World:
        """The world after the watches have told of changes."""
        world = super().told(world, events)
        return self._control(world, Watched(events)) if events else world

    # Pods and garbage.

    def _of_pods(self, world: JobWorld) -> Iterator[Step]:
        nodes = {_name(node) for node in world.api.all(NODES)}
        pods = world.api.all(PODS)
        for pod in pods:
            node = pod.spec.get("nodeName")
            if node and node not in nodes:
                yield Step("gc", f"the collector deletes {_name(pod)}", lambda pod=pod: _remove(self, world, pod))
            elif node and pod.meta.get("deletionTimestamp"):
                yield Step("kubelet", f"the kubelet ends {_name(pod)}", lambda pod=pod: _remove(self, world, pod))
        for name, size in self.scene.jobs.items():
            live = [
                pod
                for pod in pods
                if job_of(pod) == name and pod.spec.get("nodeName") in nodes and not pod.meta.get("deletionTimestamp")
            ]
            if len(live) == size and all(pod.status.get("phase") == "Pending" for pod in live):
                yield Step("kubelet", f"the pods of {name} run", lambda live=live: self._phase(world, live, "Running"))
            if len(live) == size and all(pod.status.get("phase") == "Running" for pod in live):
                yield Step(
                    "kubelet", f"the pods of {name} succeed", lambda live=live: self._phase(world, live, "Succeeded", 0)
                )

    def _phase(self, world: World, pods: list[Stored], phase: str, exit_code: int | None = None) -> World:
        api, events = world.api, []
        for pod in pods:
            content = msgspec.json.decode(pod.text)
            state = {} if exit_code is None else {"state": {"terminated": {"exitCode": exit_code}}}
            container_statuses = [{"name": "main", "ready": phase == "Running", "restartCount": 0, **state}]
            content["status"] |= {"phase": phase, "containerStatuses": container_statuses}
            api, _, told = api.put(PODS, content)
            events += told
        return self.told(_with(world, api=api), events)

    def _of_garbage(self, world: JobWorld) -> Iterator[Step]:
        for resource, one in world.api.garbage():
            yield Step(
                "gc",
                f"the garbage collector deletes {resource.kind} {_name(one)}",
                lambda resource=resource, one=one: self._collect(world, resource, one),
            )

    def _collect(self, world: World, resource: Any, one: Stored) -> World:
        api, events = world.api.collect(resource, one, world.now_s)
        return self.told(_with(world, api=api), events)

    # Time, and what goes wrong.

    def _time(self, world: World, passed: Time | Rested) -> World:
        world = super()._time(world, passed)
        return self._control(world, Passed(world.now_s))

    def _faults(self, world: World) -> Iterator[Step]:
        assert isinstance(world, JobWorld)
        yield from super()._faults(world)
        left = world.faults
        if left.controller_crash:
            yield Step("fault", "the controller dies, and starts again", lambda: self._crash_controller(world))
        if left.controller_lost:
            for call in world.controller.open:
                yield Step(
                    "fault",
                    f"the API server does, but its answer is lost: {call[0]}",
                    lambda call=call: self._answer_controller(_less(world, "controller_lost"), call, lost=True),
                )  # type: ignore[arg-type]
        if left.pod:
            for pod in world.api.all(PODS):
                if pod.status.get("phase") == "Running" and not pod.meta.get("deletionTimestamp"):
                    yield Step(
                        "fault",
                        f"pod {_name(pod)} fails",
                        lambda pod=pod: self._phase(_less(world, "pod"), [pod], "Failed", 1),
                    )

    def _crash_controller(self, world: JobWorld) -> World:
        return _with(_less(world, "controller_crash"), controller=self._new_controller(world.api, world.now_s))

    def _new_controller(self, api: Api, now_s: float) -> At:
        listed = Watched([Event(resource, one, gone=False) for resource in _LISTED for one in api.all(resource)])
        at, _ = self.controller.step(self.controller.start(now_s), listed)
        return self.controller.step(at, Lead())[0]


def job_of(pod: Stored) -> str:
    """The name of the Job that controls a pod."""
    owner = next((owner for owner in pod.meta.get("ownerReferences", ()) if owner.get("controller")), {})
    return str(owner.get("name", ""))


def job_content(name: str, size: int, retries: int) -> dict[str, Any]:
    """A Volcano Job as a user writes it: one task, restarted as a whole when a pod fails."""
    amounts = {GPU: "8"}
    container = {"name": "main", "image": "none", "resources": {"requests": amounts, "limits": amounts}}
    task = {"name": "w", "replicas": size, "template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}
    spec = {
        "minAvailable": size,
        "tasks": [task],
        "policies": POLICIES,
        "maxRetry": retries,
        "schedulerName": "muster",
        "queue": "default",
    }
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": spec}
