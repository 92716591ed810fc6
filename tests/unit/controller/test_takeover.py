"""What comes while a standby takes over is worked on as if it had come a moment later."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
import pytest

from controller.app import Controller
from controller.job.rules.events import JobEvent
from muster.api.kubeflow.jobset import JobSet
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.flow import JOB_FLOWS
from muster.api.volcano.scheduling import QUEUES
from muster.kube.client import Client
from muster.kube.config import ClientConfig

JSON = dict[str, Any]
KEY = "n/j"
JOB = {"apiVersion": JOBS.api_version, "kind": "Job", "name": "j", "uid": "uid-j", "controller": True}
SLOT = {"volcano.sh/task-spec": "w", "volcano.sh/task-index": "0", "volcano.sh/job-name": "j"}


class Change(NamedTuple):
    """A change in a cache: the object before and after it, or None."""

    cache: str
    before: JSON | None
    after: JSON | None


def owned(**status: Any) -> JSON:
    """An object of Job `j`."""
    return {"metadata": {"ownerReferences": [JOB], "annotations": SLOT}, "status": status}


def command(kind: str, api_version: str, action: str) -> JSON:
    """A Command to `j`."""
    return {"action": action, "target": {"apiVersion": api_version, "kind": kind, "name": "j", "uid": "uid-j"}}


TRAIN_JOB = {"spec": {"runtimeRef": {"name": "r"}}}
FLOW = {"apiVersion": JOB_FLOWS.api_version, "kind": "JobFlow", "name": "flow", "uid": "u", "controller": True}
OF_A_FLOW = {"metadata": {"ownerReferences": [FLOW]}, "status": {"state": {"phase": "Completed"}}}
CHANGES = {
    "a new Job": Change("jobs", None, {}),
    "a Job that is gone": Change("jobs", {}, None),
    "a Job of a JobFlow that is gone": Change("jobs", OF_A_FLOW, None),
    "a pod that fails": Change("pods", owned(phase="Running"), owned(phase="Failed")),
    "a pod that is gone": Change("pods", owned(phase="Running"), None),
    "a gang that has lost members": Change("podgroups", owned(phase="Running"), owned(phase="Unknown")),
    "a PodGroup that is gone": Change("podgroups", owned(phase="Running"), None),
    "a Command to a Job": Change("commands", None, command("Job", JOBS.api_version, "AbortJob")),
    "a Command to a queue": Change("commands", None, command("Queue", QUEUES.api_version, "CloseQueue")),
    "a new queue": Change("queues", None, {}),
    "a queue that closes": Change("queues", {}, {"status": {"state": "Closed"}}),
    "a new TrainJob": Change("trainjobs", None, TRAIN_JOB),
    "a new JobFlow": Change("jobflows", None, {}),
    "a new JobTemplate": Change("jobtemplates", None, {}),
    "a new CronJob": Change("cronjobs", None, {}),
}


class Standby:
    """A controller whose caches are filled, with a clock that stands still."""

    def __init__(self, client: Client, change: Change) -> None:
        self.now_s = 0.0
        self.controller = Controller(client, 1, monotonic_s=lambda: self.now_s, wall_s=lambda: self.now_s, at_once=1)
        self.reflector = self.controller.reflectors[change.cache]
        self.change = change
        if change.before is not None:
            self.show(change.before, 1)

    def show(self, content: JSON, version: int) -> None:
        """The cache shows this version of the object."""
        resource = self.reflector._resource
        name = "j-w-0" if self.change.cache == "pods" else "j"
        meta = {"name": name, "uid": "uid-j", "resourceVersion": str(version), "generation": version}
        meta |= {"namespace": "n"} if resource.namespaced else {}
        document = {**content, "metadata": {**content.get("metadata", {}), **meta}}
        self.reflector.mirror.add_object(msgspec.convert(document, resource.type))

    def happens(self) -> None:
        """The change comes."""
        if self.change.after is None:
            self.reflector.mirror.remove(*self.reflector.store.keys())
        else:
            self.show(self.change.after, 2)

    def take_over(self) -> None:
        """It leads from now on."""
        self.controller.take_over(lambda: True)

    def work(self) -> tuple[set[tuple[str, str]], list[JobEvent], set[str]]:
        """Passes that are due by now, the events of the Job, and the ends of Jobs that only JobFlows know."""
        self.now_s += 60.0
        passes = set()
        for worker in self.controller.workers:
            while (key := worker.queue.get(0)) is not None:
                passes.add((worker.name, key))
                worker.queue.done(key)
        with self.controller.jobs._pending_events.batch(KEY) as batch:
            events = list(batch)
            assert len(list(batch.carried_out())) <= len(events)
        return passes, events, {*self.controller.job_flows._ended}


@pytest.fixture
def client() -> Iterator[Client]:
    """One that nobody answers: handlers ask for nothing."""
    made = Client(ClientConfig("http://127.0.0.1:1"))
    yield made
    made.close()


def when_listed(monkeypatch: pytest.MonkeyPatch, standby: Standby, cache: str, act: Callable[[], None]) -> None:
    """Has something happen right after the objects of a cache were listed for the takeover."""
    store = standby.controller.reflectors[cache].store
    listed, left = store.list, [act]

    def list_() -> list[Any]:
        found = listed()
        if left:
            left.pop()()
        return found

    monkeypatch.setattr(store, "list", list_)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_no_change_during_a_takeover_is_lost(client: Client, monkeypatch: pytest.MonkeyPatch, change: Change) -> None:
    """Its kind is listed already: it leads to the passes and events of a change afterwards."""
    later = Standby(client, change)
    later.take_over()
    later.work()
    later.happens()
    passes, events, ended = later.work()
    assert passes
    standby = Standby(client, change)
    when_listed(monkeypatch, standby, change.cache, standby.happens)
    standby.take_over()
    found = standby.work()
    assert passes <= found[0]
    assert ({*events} <= {*found[1]}, found[2]) == (True, ended)


def test_a_standby_queues_no_child_of_a_kind_that_plugins_watch(client: Client) -> None:
    """Once it leads, it does."""
    controller = Controller(client, 1, monotonic_s=lambda: 0.0, target="JobSet")
    owner = {"apiVersion": TRAIN_JOBS.api_version, "kind": "TrainJob", "name": "j", "uid": "uid-j", "controller": True}
    document = {"metadata": {"name": "j", "namespace": "n", "uid": "u", "ownerReferences": [owner]}, "spec": {}}
    queued = []
    for leads in (False, True):
        if leads:
            controller.take_over(lambda: True)
        controller.train_jobs.watched._changed("jobsets.jobset.x-k8s.io", None, msgspec.convert(document, JobSet))
        queued.append(controller.train_jobs.worker.queue.get(0))
    assert queued == [None, KEY]
