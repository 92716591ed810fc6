"""Workers: one Job has one, whatever goes wrong does not end it, and nobody acts without the lease."""

import threading
import time
from typing import Any

import pytest
from prometheus_client import REGISTRY
from simulated_cluster import Cluster
from simulated_jobs import add, job, pods, submit, task, turn
from structlog.testing import capture_logs

from controller.worker import Retry, Worker
from muster.api.base import Resource
from muster.api.kubernetes.core import PODS
from muster.api.volcano.flow import JOB_FLOWS, JOB_TEMPLATES
from muster.kube.errors import Conflict, NamespaceEnds

PASSES: tuple[str, dict[str, str]] = (
    "muster_controller_reconciles_total", {"controller": "job", "result": "done"}
)  # fmt: skip

SPENT = "muster_controller_reconcile_seconds_sum", {"controller": "job"}


def test_a_job_has_one_worker_at_a_time() -> None:
    """News and timers of one key never meet in two threads; different keys are shared out."""
    threads: set[str] = set()
    at_work: set[str] = set()
    twice: list[str] = []
    done = threading.Semaphore(0)
    all_busy = threading.Barrier(3)

    def process(key: str) -> None:
        if key in at_work:
            twice.append(key)
        at_work.add(key)
        if key.startswith("busy/"):
            all_busy.wait(10)
        threads.add(threading.current_thread().name)
        at_work.discard(key)
        done.release()

    worker = Worker("job", process, threads=3)
    before, began = REGISTRY.get_sample_value(*PASSES) or 0, time.perf_counter()
    spent = REGISTRY.get_sample_value(*SPENT) or 0.0
    worker.start()
    for number in range(3):
        worker.queue.add(f"busy/job-{number}")
    for _ in range(3):
        assert done.acquire(timeout=10)
    keys = [f"n/job-{number}" for number in range(12)]
    for key in keys:
        worker.queue.add(key)
        worker.queue.add_after(key, 0.001)
    for _ in keys:
        assert done.acquire(timeout=10)
    for key in keys:
        worker.queue.add_after(key, 0.001)
        assert done.acquire(timeout=10)
    worker.stop()
    assert (REGISTRY.get_sample_value(*PASSES) or 0) >= before + 3 + 12
    assert 0 < (REGISTRY.get_sample_value(*SPENT) or 0.0) - spent < 3 * (time.perf_counter() - began)
    assert threads == {"job-0", "job-1", "job-2"}
    assert [each.name for each in Worker("alone", process)._threads] == ["alone"]
    assert not twice


def test_namespaces_take_turns() -> None:
    """Whoever has many keys does not go before the others; a long piece of work is told when somebody waits."""
    queue = Worker("job", lambda _key: None, threads=2).queue
    for number in range(3):
        queue.add(f"many/{number}")
    queue.add("few/0")
    first = queue.get(0)
    assert first == "many/0"
    assert queue.others_wait(first)
    assert [queue.get(0) for _ in range(3)] == ["few/0", "many/1", "many/2"]
    assert not queue.others_wait(first)
    queue.done("many/0")
    for key in ("many/3", "few/0", "third/0"):
        queue.add(key)
    assert queue.get(0) == "third/0"
    assert queue.get(0) == "many/3"
    assert queue.get(0) is None  # the key of few is in work
    queue.done("few/0")
    assert queue.get(0) == "few/0"


@pytest.mark.parametrize(
    ("error", "result"), [(Retry("later"), "retry"), (Conflict("stale"), "retry"), (KeyError("bug"), "defect")]
)
def test_what_fails_is_tried_again_and_ends_no_thread(error: Exception, result: str) -> None:
    """The key comes back after a while, whatever was wrong."""
    now = [0.0]

    def process(_key: str) -> None:
        raise error

    worker = Worker("test", process, monotonic_s=lambda: now[0])
    worker.queue.add("a")
    assert worker.queue.get(0) == "a"
    with capture_logs() as logs:
        assert worker.once("a") == result
    assert [each["event"].partition(" ")[0] for each in logs] == ([] if isinstance(error, Conflict) else ["pass"])
    now[0] += 60
    assert worker.queue.get(0) == "a"


def test_nothing_is_tried_again_in_a_namespace_that_ends(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Job that lacks a pod, one that has none of its objects yet, and what makes Jobs or gangs: once per change."""
    submit(cluster, "had", 2)
    asked: list[str] = []

    def create(kind: Resource[Any], *_: Any, **__: Any) -> None:
        asked.append(kind.kind)
        raise NamespaceEnds("unable to create new content in namespace n because it is being terminated")

    monkeypatch.setattr(cluster.api, "create", create)
    add(cluster, "new", task("w", 1), plugins={"svc": []})
    cluster.api.add(JOB_TEMPLATES, {"metadata": {"name": "a"}, "spec": {"tasks": [task("w", 1)]}}, "n")
    cluster.api.add(JOB_FLOWS, {"metadata": {"name": "flow"}, "spec": {"flows": [{"name": "a"}]}}, "n")
    cluster.api.add(PODS, {"metadata": {"name": "alone"}, "spec": {"schedulerName": "muster"}}, "n")
    warned: list[str] = []
    monkeypatch.setattr(cluster.controller._recorder, "event", lambda *told: warned.append(told[-1]))
    cluster.api.remove(PODS, pods(cluster)[0], at_once=True)
    turn(cluster, 3, pause_s=3)  # the first status of the JobFlow is a change of it
    before = len(asked)
    with capture_logs() as logs:
        turn(cluster, 5, pause_s=60)
    assert (asked[before:], logs, warned) == ([], [], [])
    assert {"Job", "PodGroup"} <= {*asked}


def test_nobody_acts_without_the_lease(cluster: Cluster) -> None:
    """No worker at all: not those of Jobs, nor those of queues, groups and time to live."""
    for worker in cluster.controller.workers:
        worker.may_act = lambda: False
    add(cluster, "j", task("w", 1), ttlSecondsAfterFinished=0)
    before = cluster.api.writes
    turn(cluster, 3, pause_s=40)
    assert cluster.api.writes == before
    assert not job(cluster, "j").status.conditions
    assert len({worker.name for worker in cluster.controller.workers}) >= 5
