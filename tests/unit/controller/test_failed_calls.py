"""What a call of the controller takes for itself is free again when it fails, and nothing counts as done."""

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from guarded_api import GuardedApi, Sent
from msgspec import structs

import controller
from controller.caches import Caches
from controller.job.controller import Jobs
from controller.job.effects import Effects
from controller.job.expectations import Expectations
from controller.job.objects import Groups, ObjectError, Objects
from controller.job.writer import REST_S, StatusWriter
from controller.kit import Kit
from controller.queues.controller import Queues
from controller.trainjob.children import Steps
from controller.trainjob.report import Turns
from controller.trainjob.rules import steps
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.core import CONFIG_MAPS, PODS
from muster.api.volcano.batch import COMMANDS, JOBS, Command, Job
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup
from muster.kube.errors import APIError, Conflict, Forbidden, ServerError, Unreachable
from muster.kube.store import Store
from muster.volcano.plugins.base import Owned
from muster.volcano.podgroup import group_key, pod_group
from muster.volcano.tasks import JobRef, reference

FAILURES = [ServerError("broken"), Unreachable("no answer"), Conflict("it has changed"), Forbidden("exceeded quota: q")]
failing = pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)


class Process:
    """An API server with one Job of three pods, and what is known of its objects."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.api = GuardedApi(controller)
        self.client = cast("Any", self.api)
        self.recorder = cast("Any", SimpleNamespace(event=lambda *_: None))
        self.kit = Kit(self.client, self.recorder, lambda: self.now_s)
        self.expectations = Expectations(lambda: self.now_s)
        self.job: Job = self.api.add(JOBS, {"metadata": {"name": "j"}, "spec": {"tasks": [], "minAvailable": 3}})

    @property
    def ref(self) -> JobRef:
        """The Job in its objects."""
        return reference(self.job)

    def manifest(self, rank: int) -> dict[str, Any]:
        """A pod of the Job."""
        owner = {"apiVersion": JOBS.api_version, "kind": "Job", "name": "j", "controller": True}
        slot = {"volcano.sh/task-spec": "w", "volcano.sh/task-index": str(rank)}
        meta = {
            "name": f"j-w-{rank}",
            "namespace": "n",
            "annotations": slot,
            "ownerReferences": [owner | {"uid": self.job.metadata.uid}],
        }
        return {"metadata": meta, "spec": {"containers": [{"name": "main"}]}}

    def effects(self, at_once: int = 1) -> Effects:
        """Creates and deletes pods."""
        return Effects(self.client, self.expectations, self.recorder, at_once, monotonic_s=lambda: self.now_s)

    def fails(self, error: APIError, *verbs: str, only: str = "", times: int = 1) -> None:
        """The next writes of these verbs, of the object with this name if there is one, are answered so."""
        left = [times]

        def meddle(sent: Sent) -> None:
            if left[0] and sent.site.rpartition(" ")[2] in verbs and sent.key.endswith(only):
                left[0] -= 1
                raise error

        self.api.meddle = meddle


@pytest.fixture
def process() -> Process:
    """One."""
    return Process()


@pytest.fixture
def effects(process: Process) -> Iterator[Effects]:
    """Its threads end with the test."""
    made = process.effects()
    yield made
    made.close()


@failing
@pytest.mark.parametrize("failed", range(3))
def test_a_pod_that_was_not_created_is_not_expected(
    process: Process, effects: Effects, error: APIError, failed: int
) -> None:
    """The others of its gang are; the next pass creates it."""
    manifests = [process.manifest(rank) for rank in range(3)]
    process.fails(error, "create", only=f"w-{failed}")
    assert len(effects.create_pods(process.job, [manifests])) == 1
    made = {pod.metadata.name for pod in process.expectations.pods(process.ref, [])}
    assert made == {f"j-w-{rank}" for rank in range(3) if rank != failed}
    process.now_s += 1.0
    assert effects.create_pods(process.job, [[manifests[failed]]]) == []
    assert len(process.expectations.pods(process.ref, [])) == 3


@failing
@pytest.mark.parametrize("verb", ["merge_patch", "delete"])
def test_a_pod_that_was_not_deleted_is_not_thought_to_go(
    process: Process, effects: Effects, error: APIError, verb: str
) -> None:
    """Neither when its mark failed nor when its deletion did; its end would be taken for this controller's."""
    pods = [process.api.add(PODS, process.manifest(rank)) for rank in range(3)]
    process.fails(error, verb, only="w-1")
    assert len(effects.delete_pods(process.job, pods, why="Restart", mark=True)) == 1
    known = {pod.metadata.name: process.expectations.deletion(pod.metadata.uid) for pod in pods}
    assert [name for name, deletion in known.items() if deletion is None] == ["j-w-1"]
    left = process.api.find(PODS, "j-w-1", "n")
    assert effects.delete_pods(process.job, [left], why="Restart", mark=True) == []
    assert process.api.all(PODS) == []
    assert process.expectations.deletion(left.metadata.uid) is not None


class TwoMaps:
    """As much of a plugin as is needed."""

    def objects(self, _: Job) -> list[Owned]:
        """Two ConfigMaps."""
        return [Owned(CONFIG_MAPS, {"metadata": {"name": name}}) for name in ("one", "two")]


@failing
def test_objects_that_could_not_be_made_are_made_by_the_next_pass(process: Process, error: APIError) -> None:
    """Also where the first of them was."""
    objects = Objects(process.client)
    process.fails(error, "create", only="two")
    with pytest.raises(ObjectError, match="ConfigMap two cannot be made"):
        objects.ensure(process.job, [cast("Any", TwoMaps())])
    objects.ensure(process.job, [cast("Any", TwoMaps())])
    assert {each.metadata.name for each in process.api.all(CONFIG_MAPS)} == {"one", "two"}


def groups_of(process: Process) -> Groups:
    """PodGroups of Jobs, as the cache shows them."""
    shown = Store[PodGroup]()
    for group in process.api.all(POD_GROUPS):
        shown.put(group)
    return Groups(process.client, shown, list, process.expectations)


@failing
def test_a_podgroup_that_could_not_be_brought_up_to_date_is_with_the_next_pass(
    process: Process, error: APIError
) -> None:
    """It does not count as one that fits the Job."""
    process.api.add(POD_GROUPS, pod_group(process.job, {}, frozenset()))
    groups = groups_of(process)
    spec = structs.replace(process.job.spec, min_available=2)
    meta = structs.replace(process.job.metadata, generation=2)
    smaller = structs.replace(process.job, metadata=meta, spec=spec)
    process.fails(error, "merge_patch")
    with pytest.raises(type(error)):
        groups.ensure(smaller, [])
    groups.ensure(smaller, [])
    assert process.api.all(POD_GROUPS)[0].spec.min_member == 2


@failing
def test_a_podgroup_that_was_not_deleted_is_still_the_job_s(process: Process, error: APIError) -> None:
    """Else another one would be made beside it."""
    process.api.add(POD_GROUPS, pod_group(process.job, {}, frozenset()))
    groups = groups_of(process)
    found = groups.find(process.job)
    process.fails(error, "delete")
    with pytest.raises(type(error)):
        groups.delete(process.job)
    assert found is not None
    assert groups.find(process.job) == found
    assert process.expectations.group(group_key(process.job), found) == found
    groups.delete(process.job)
    assert groups.find(process.job) is None


@failing
def test_a_status_that_was_not_written_is_not_the_job_s(process: Process, error: APIError) -> None:
    """Counters that have come to rest are written at once by the next pass, and do not wait anew."""
    waits: list[float] = []
    caches = Caches(process.client)
    caches.jobs.store.put(process.job)
    jobs = Jobs(process.kit, caches, needed=lambda _: False, joins_native=lambda _: False)
    writer = StatusWriter(jobs.patched, lambda _, delay_s: waits.append(delay_s), lambda: process.now_s)
    wanted = structs.replace(process.job.status, running=2)
    writer.write(process.job, wanted)
    process.now_s += REST_S + 1.0
    process.fails(error, "merge_patch")
    with pytest.raises(type(error)):
        writer.write(process.job, wanted)
    key = process.job.metadata.key
    assert jobs.newest(key) == process.job
    assert len(waits) == 1
    written = writer.write(process.job, wanted)
    assert written.status.running == 2
    assert jobs.newest(key) is written
    assert len(waits) == 1
    jobs.close()


@failing
def test_a_command_that_was_not_sent_is_sent_by_the_next_pass(process: Process, error: APIError) -> None:
    """It is not thought to be under way."""
    train = process.api.add(TRAIN_JOBS, {"metadata": {"name": "t"}, "spec": {"runtimeRef": {"name": "r"}}})
    maker = Steps(process.kit, Caches(process.client), cast("Any", None))
    process.fails(error, "create")
    with pytest.raises(type(error)):
        maker.take(train, steps.Command(process.job, "AbortJob"))
    maker.take(train, steps.Command(process.job, "AbortJob"))
    assert len(process.api.all(COMMANDS)) == 1
    maker.take(train, steps.Command(process.job, "AbortJob"))
    assert len(process.api.sent) == 2


@failing
def test_a_command_to_a_queue_that_was_not_deleted_waits(process: Process, error: APIError) -> None:
    """The next pass deletes it; to carry it out twice does no harm."""
    queues = Queues(process.kit, Caches(process.client))
    target = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": "q", "uid": ""}
    command: Command = process.api.add(COMMANDS, {"metadata": {"name": "c"}, "action": "CloseQueue", "target": target})
    queues._command_seen(None, command)
    process.fails(error, "delete")
    with pytest.raises(type(error)):
        queues.process("q")
    assert [each.metadata.name for each in queues._waiting("q")] == ["c"]
    queues.process("q")
    assert (queues._waiting("q"), process.api.all(COMMANDS)) == ([], [])


@pytest.mark.parametrize("ends", ["fails", "is cancelled", "is cancelled while it waits"])
def test_a_report_gives_its_turn_back_however_it_ends(ends: str) -> None:
    """The address is forgotten with its last one."""

    async def story() -> None:
        turns, begun, never = Turns(1), asyncio.Event(), asyncio.Event()

        async def report() -> None:
            async with turns.of("10.0.0.1"):
                begun.set()
                if ends == "fails":
                    raise ServerError("broken")
                await never.wait()

        first = asyncio.create_task(report())
        await begun.wait()
        waiting = asyncio.create_task(report())
        await asyncio.sleep(0)
        for task in (waiting, first) if ends == "is cancelled while it waits" else (first, waiting):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert turns._peers == {}
        async with asyncio.timeout(10), turns.of("10.0.0.1"):
            pass

    asyncio.run(story())
