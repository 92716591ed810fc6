"""What a JobFlow knows of its Jobs lasts until it is written, however many writes of a pass fail before."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from guarded_api import GuardedApi, Sent
from guarded_controller import failing

import controller
from controller.caches import SharedCaches
from controller.flow.controller import JobFlows, JobTemplates
from controller.kit import Kit
from muster.api.base import Resource
from muster.api.kubernetes.meta import Object, ObjectMeta, OwnerReference, format_time
from muster.api.volcano.batch import JOBS, Job, JobSpec, JobState, JobStatus, TaskSpec
from muster.api.volcano.flow import JOB_FLOWS, JOB_TEMPLATES, JobFlow
from muster.kube.errors import APIError, Forbidden, ServerError, Unreachable
from muster.kube.store import Mirror

KEY = "n/flow"
STEPS = [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]


class World:
    """An API server with a JobFlow of two steps, and its controller, whose caches get each object by `told`."""

    def __init__(self, **spec: Any) -> None:
        self.now_s = 1000.0
        self.api = GuardedApi(controller)
        self.events: list[str] = []
        self.made: list[str] = []
        clock: Callable[[], float] = lambda: self.now_s  # noqa: E731 - one clock for both
        client = cast("Any", self.api)
        kit, caches = Kit(client, cast("Any", self), clock, clock), SharedCaches(client)
        self.flows = JobFlows(kit, caches, JobTemplates(kit, caches).cache)
        self._mirrors: dict[Resource[Any], Mirror[Any]] = {}
        for reflector, handler in self.flows.handlers:
            reflector.add_handler(handler)
            self._mirrors[reflector._resource] = reflector.mirror
        self._cursors = dict.fromkeys(self._mirrors, 0)
        for name in ("a", "b"):
            self.api.add(JOB_TEMPLATES, {"metadata": {"name": name}, "spec": {"tasks": []}})
        self.api.add(JOB_FLOWS, {"metadata": {"name": "flow"}, "spec": {"flows": STEPS, **spec}})
        self.told()

    def event(self, _: Object, _kind: str, reason: str, _message: str) -> None:
        """Takes an Event as the recorder does."""
        self.events.append(reason)

    def told(self) -> None:
        """The caches show what there is."""
        for res, mirror in self._mirrors.items():
            changes = self.api.changes(res)
            for kind, obj in changes[self._cursors[res] :]:
                if res is JOBS and kind == "ADDED":
                    self.made.append(obj.metadata.name)
                if kind == "DELETED":
                    mirror.remove(obj.metadata.key)
                else:
                    mirror.add_object(obj)
            self._cursors[res] = len(changes)

    def turn(self) -> str:
        """One pass, and what it did is shown; returns its result."""
        self.flows.worker.queue.add(KEY)
        self.now_s += 100.0
        assert self.flows.worker.queue.get(0) == KEY
        result = self.flows.worker.once(KEY)
        self.told()
        return result

    def ends(self, step: str, phase: str = "Completed") -> None:
        """The Job of a step ends, and its owner deletes it at once."""
        self.api.change(JOBS, f"flow-{step}", {"status": {"state": {"phase": phase}}}, "n", subresource="status")
        self.told()
        self.api.remove(JOBS, self.api.find(JOBS, f"flow-{step}", "n"), at_once=True)
        self.told()

    @property
    def flow(self) -> JobFlow:
        """The JobFlow as it is."""
        found: JobFlow = self.api.find(JOB_FLOWS, "flow", "n")
        return found

    def jobs(self) -> list[str]:
        """The Jobs that there are."""
        return [each.metadata.name for each in self.api.all(JOBS)]


@failing
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("phase", ["Completed", "Failed"])
def test_the_end_of_a_job_that_is_gone_lasts_until_it_is_written(error: APIError, times: int, phase: str) -> None:
    """Only the note records it: the Job would run again, or the next one would start though this has failed."""
    world = World()
    world.turn()
    world.ends("a", phase)
    world.api.fails(error, "merge_patch", times=times)
    assert [world.turn() for _ in range(times)] == ["retry"] * times
    assert world.jobs() == []
    for _ in range(3):
        assert world.turn() == "done"
    completed = phase == "Completed"
    assert world.made == (["flow-a", "flow-b"] if completed else ["flow-a"])
    status = world.flow.status
    assert (status.completed_jobs, status.failed_jobs) == ((["flow-a"], []) if completed else ([], ["flow-a"]))
    assert world.flows._ended.get(KEY, {}) == {}


@failing
def test_a_job_that_ends_while_a_write_fails_is_known_too(error: APIError) -> None:
    """It is in the status after that, with the one before it."""
    world = World(flows=[{"name": "a"}, {"name": "b"}])
    world.turn()
    world.ends("a")

    def meddle(_: Sent) -> None:
        world.api.meddle = lambda _: None
        world.ends("b")
        raise error

    world.api.meddle = meddle
    assert world.turn() == "retry"
    assert world.turn() == "done"
    assert (world.flow.status.completed_jobs, world.flow.status.state.phase) == (["flow-a", "flow-b"], "Succeed")
    world.turn()
    assert world.made == ["flow-a", "flow-b"]


def test_a_job_that_ends_while_another_end_is_written_is_known_too() -> None:
    """That write has not had it."""
    world = World(flows=[{"name": "a"}, {"name": "b"}])
    world.turn()
    world.ends("a")

    def meddle(_: Sent) -> None:
        world.api.meddle = lambda _: None
        world.ends("b")

    world.api.meddle = meddle
    for _ in range(3):
        assert world.turn() == "done"
    assert world.flow.status.completed_jobs == ["flow-a", "flow-b"]
    assert world.made == ["flow-a", "flow-b"]


@failing
@pytest.mark.parametrize("verb", ["merge_patch", "delete"])
def test_the_end_of_a_jobflow_is_told_once_and_its_jobs_go_after_it_is_written(error: APIError, verb: str) -> None:
    """A Job deleted earlier would run again; the next pass deletes one that could not be deleted."""
    world = World(flows=[{"name": "a"}, {"name": "b"}], jobRetainPolicy="delete")
    world.turn()
    for step in ("a", "b"):
        world.api.change(JOBS, f"flow-{step}", {"status": {"state": {"phase": "Completed"}}}, "n", subresource="status")
    world.told()
    world.api.fails(error, verb, times=2)
    for _ in range(2):
        world.turn()
        assert (verb == "delete") == (world.flow.status.state.phase == "Succeed")
        assert world.jobs()
    for _ in range(2):
        assert world.turn() == "done"
    assert (world.jobs(), world.made) == ([], ["flow-a", "flow-b"])
    assert world.events.count("Succeed") == 1


@pytest.mark.parametrize("error", [ServerError("broken"), Unreachable("no answer"), Forbidden("exceeded quota: q")])
def test_a_job_that_could_not_be_made_is_made_by_a_later_pass(error: APIError) -> None:
    """It does not count as created, and its event comes only once it is."""
    world = World()
    world.api.fails(error, "create", times=2)
    world.turn()
    world.turn()
    assert (world.jobs(), "Created" in world.events) == ([], False)
    assert world.turn() == "done"
    assert (world.jobs(), world.events.count("Created")) == (["flow-a"], 1)


def test_a_client_can_update_the_jobflow_that_it_has_just_created() -> None:
    """The first pass writes nothing to it: neither while its Job comes, nor while its JobTemplate is missing."""
    for flows in ([{"name": "a"}], [{"name": "missing"}], []):
        world = World(flows=flows)
        created = format_time(world.now_s + 100.0)  # the time of the first pass
        world.api.change(JOB_FLOWS, "flow", {"metadata": {"creationTimestamp": created}}, "n")
        world.told()
        before = world.flow.metadata.resource_version
        assert world.turn() == "done"
        assert world.jobs() == ["flow-a"][: flows == [{"name": "a"}]]
        assert world.flow.metadata.resource_version == before
        world.turn()
        assert world.flow.status.state.phase == "Pending"


def test_deleted_jobs_are_forgotten() -> None:
    """Nor of strangers who name a JobFlow as the owner of Jobs that are large; only what a status needs."""
    world = World(jobRetainPolicy="retain")
    flow = world.api.find(JOB_FLOWS, "flow", "n").metadata
    handle = world.flows._job_seen
    for number in range(1_000):
        for uid, owner in ((flow.uid, "flow"), ("other", "flow"), ("x", f"none-{number}")):
            meta = ObjectMeta(
                name=f"stranger-{number}", namespace="n", uid=f"{uid}-{number}", annotations={"x": "x" * 100},
                owner_references=[OwnerReference(JOB_FLOWS.api_version, JOB_FLOWS.kind, owner, uid, controller=True)],
            )  # fmt: skip
            handle(Job(metadata=meta, status=JobStatus(state=JobState(phase="Completed"))), None)
    assert world.flows._ended == {}
    mine = ObjectMeta(
        name="flow-a", namespace="n", uid="a", annotations={"x": "x" * 100},
        owner_references=[OwnerReference(JOB_FLOWS.api_version, JOB_FLOWS.kind, "flow", flow.uid, controller=True)],
    )  # fmt: skip
    spec = JobSpec(tasks=[TaskSpec(name="w", template={"spec": {"containers": [{"args": ["x" * 10**6]}]}})])
    handle(Job(metadata=mine, spec=spec, status=JobStatus(state=JobState(phase="Completed"))), None)
    assert len(repr(world.flows._ended)) < 5_000
