"""What a call of the controller takes for itself is free again when it fails, and nothing counts as done."""

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import pytest
from guarded_controller import Desk, failing
from msgspec import structs

from controller.job.controller import Jobs
from controller.job.effects import PodEffects
from controller.job.objects import JobObjects, ObjectError
from controller.job.writer import JobStatusWriter
from controller.queues.controller import QueueController
from controller.trainjob.children import ChildSteps
from controller.trainjob.report import ReportLimit
from controller.trainjob.rules import steps
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.core import CONFIG_MAPS, PODS
from muster.api.volcano.batch import COMMANDS, Command, Job
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.errors import APIError, Forbidden, ServerError
from muster.volcano.plugins.base import Owned
from muster.volcano.podgroup import group_key, pod_group
from muster.volcano.tasks import reference


@pytest.fixture
def desk() -> Desk:
    """One."""
    return Desk()


@pytest.fixture
def effects(desk: Desk) -> Iterator[PodEffects]:
    """Its threads end with the test."""
    made = desk.effects()
    yield made
    made.close()


@failing
@pytest.mark.parametrize("failed", range(3))
def test_a_pod_that_is_not_created_is_unexpected(desk: Desk, effects: PodEffects, error: APIError, failed: int) -> None:
    """The others of its gang are; the next pass creates it."""
    manifests = [desk.pod(rank) for rank in range(3)]
    desk.api.fails(error, "create", only=f"w-{failed}")
    assert len(effects.create_pods(desk.job, [manifests])) == 1
    made = {pod.metadata.name for pod in desk.expectations.pods(reference(desk.job), [])}
    assert made == {f"j-w-{rank}" for rank in range(3) if rank != failed}
    desk.now_s += 1.0
    assert effects.create_pods(desk.job, [[manifests[failed]]]) == []
    assert len(desk.expectations.pods(reference(desk.job), [])) == 3


def test_the_last_refusal_is_reported_while_no_pod_is_tried(desk: Desk, effects: PodEffects) -> None:
    """And how many pods a pass has left out."""
    manifests = [desk.pod(rank) for rank in range(5)]
    desk.api.fails(Forbidden("exceeded quota: q"), "create", times=99)
    messages = effects.create_pods(desk.job, [[manifest] for manifest in manifests])
    assert messages[0].endswith("exceeded quota: q")
    assert messages[-1] == "2 more pods were not created, because the quota would reject them too"
    assert effects.create_pods(desk.job, [manifests]) == messages


@failing
@pytest.mark.parametrize("verb", ["merge_patch", "delete"])
def test_a_pod_that_is_not_deleted_is_thought_to_stay(
    desk: Desk, effects: PodEffects, error: APIError, verb: str
) -> None:
    """Neither when its mark failed nor when its deletion did; its end would be taken for this controller's."""
    pods = [desk.api.add(PODS, desk.pod(rank)) for rank in range(3)]
    desk.api.fails(error, verb, only="w-1")
    assert len(effects.delete_pods(desk.job, pods, why="Restart", mark=True)) == 1
    known = {pod.metadata.name: desk.expectations.deletion(pod.metadata.uid) for pod in pods}
    assert [name for name, deletion in known.items() if deletion is None] == ["j-w-1"]
    left = desk.api.find(PODS, "j-w-1", "n")
    assert effects.delete_pods(desk.job, [left], why="Restart", mark=True) == []
    assert desk.api.all(PODS) == []
    assert desk.expectations.deletion(left.metadata.uid) is not None


class TwoMaps:
    """As much of a plugin as is needed."""

    def objects(self, _: Job) -> list[Owned]:
        """Two ConfigMaps."""
        return [Owned(CONFIG_MAPS, {"metadata": {"name": name}}) for name in ("one", "two")]


@failing
def test_objects_that_could_not_be_made_are_made_by_the_next_pass(desk: Desk, error: APIError) -> None:
    """Also where the first of them was."""
    objects = JobObjects(desk.client)
    desk.api.fails(error, "create", only="two")
    with pytest.raises(ObjectError, match="ConfigMap two cannot be made"):
        objects.ensure(desk.job, [cast("Any", TwoMaps())])
    objects.ensure(desk.job, [cast("Any", TwoMaps())])
    assert {each.metadata.name for each in desk.api.all(CONFIG_MAPS)} == {"one", "two"}


@failing
def test_a_podgroup_that_could_not_be_brought_up_to_date_is_with_the_next_pass(desk: Desk, error: APIError) -> None:
    """It does not count as one that fits the Job."""
    desk.api.add(POD_GROUPS, pod_group(desk.job, {}, frozenset()))
    groups = desk.groups()
    spec = structs.replace(desk.job.spec, min_available=2)
    meta = structs.replace(desk.job.metadata, generation=2)
    smaller = structs.replace(desk.job, metadata=meta, spec=spec)
    desk.api.fails(error, "merge_patch")
    with pytest.raises(type(error)):
        groups.ensure(smaller, [])
    groups.ensure(smaller, [])
    assert desk.api.all(POD_GROUPS)[0].spec.min_member == 2


@failing
def test_a_podgroup_that_was_not_deleted_is_still_the_job_s(desk: Desk, error: APIError) -> None:
    """Else another one would be made beside it."""
    desk.api.add(POD_GROUPS, pod_group(desk.job, {}, frozenset()))
    groups = desk.groups()
    found = groups.find(desk.job)
    desk.api.fails(error, "delete")
    with pytest.raises(type(error)):
        groups.delete(desk.job)
    assert found is not None
    assert groups.find(desk.job) == found
    assert desk.expectations.group(group_key(desk.job), found) == found
    groups.delete(desk.job)
    assert groups.find(desk.job) is None


@failing
def test_a_status_that_was_not_written_is_not_the_job_s(desk: Desk, error: APIError) -> None:
    """Counters that have come to rest are written at once by the next pass, and do not wait anew."""
    waits: list[float] = []
    caches = desk.caches
    caches.jobs.store.add_object(desk.job)
    jobs = Jobs(desk.kit, caches, needed=lambda _: False, joins_native=lambda _: False)
    writer = JobStatusWriter(jobs.patched, lambda _, delay_s: waits.append(delay_s), lambda: desk.now_s)
    wanted = structs.replace(desk.job.status, running=2)
    writer.write(desk.job, wanted)
    desk.now_s += 1.5
    desk.api.fails(error, "merge_patch")
    with pytest.raises(type(error)):
        writer.write(desk.job, wanted)
    key = desk.job.metadata.key
    assert jobs.newest(key) == desk.job
    assert len(waits) == 1
    written = writer.write(desk.job, wanted)
    assert written.status.running == 2
    assert jobs.newest(key) is written
    assert len(waits) == 1
    jobs.close()


@failing
def test_a_command_that_was_not_sent_is_sent_by_the_next_pass(desk: Desk, error: APIError) -> None:
    """It is not thought to be under way."""
    train = desk.api.add(TRAIN_JOBS, {"metadata": {"name": "t"}, "spec": {"runtimeRef": {"name": "r"}}})
    maker = ChildSteps(desk.kit, desk.caches, cast("Any", None))
    desk.api.fails(error, "create")
    with pytest.raises(type(error)):
        maker.run_step(train, steps.SendCommand(desk.job, "AbortJob"))
    maker.run_step(train, steps.SendCommand(desk.job, "AbortJob"))
    assert len(desk.api.all(COMMANDS)) == 1
    maker.run_step(train, steps.SendCommand(desk.job, "AbortJob"))
    assert len(desk.api.sent) == 2


@failing
def test_a_command_to_a_queue_that_was_not_deleted_waits(desk: Desk, error: APIError) -> None:
    """The next pass deletes it; to carry it out twice does no harm."""
    queues = QueueController(desk.kit, desk.caches)
    target = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": "q", "uid": ""}
    command: Command = desk.api.add(COMMANDS, {"metadata": {"name": "c"}, "action": "CloseQueue", "target": target})
    queues._command_seen(None, command)
    desk.api.fails(error, "delete")
    with pytest.raises(type(error)):
        queues.process("q")
    assert [each.metadata.name for each in queues._waiting("q")] == ["c"]
    queues.process("q")
    assert (queues._waiting("q"), desk.api.all(COMMANDS)) == ([], [])


@pytest.mark.parametrize("ends", ["fails", "is cancelled", "is cancelled while it waits"])
def test_a_report_gives_its_turn_back_however_it_ends(ends: str) -> None:
    """The address is forgotten with its last one."""

    async def story() -> None:
        turns, begun, never = ReportLimit(1), asyncio.Event(), asyncio.Event()

        async def report() -> None:
            async with turns.slot_for("10.0.0.1"):
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
        async with asyncio.timeout(10), turns.slot_for("10.0.0.1"):
            pass

    asyncio.run(story())
