"""Workers: one Job has one, whatever goes wrong does not end it, and nobody acts without the lease."""

import threading
from collections import defaultdict

import pytest
import structlog
from simulated_cluster import Cluster
from simulated_jobs import add, job, task, turn

from controller.worker import Retry, Shards, Worker, fnv32
from muster.kube.errors import Conflict


def test_a_job_has_one_worker_also_for_what_comes_later() -> None:
    """News and timers of one key meet in one thread; different keys are shared out."""
    threads: dict[str, set[str]] = defaultdict(set)
    at_work: set[str] = set()
    twice: list[str] = []
    done = threading.Semaphore(0)

    def process(key: str) -> None:
        if key in at_work:
            twice.append(key)
        at_work.add(key)
        threads[key].add(threading.current_thread().name)
        at_work.discard(key)
        done.release()

    shards = Shards(3, process)
    for worker in shards.workers:
        worker.start()
    keys = [f"n/job-{number}" for number in range(12)]
    for key in keys:
        shards.add(key)
        shards.add_after(key, 0.01)
    for _ in keys:
        assert done.acquire(timeout=10)
    for key in keys:
        shards.add_after(key, 0.001)
        assert done.acquire(timeout=10)
    for worker in shards.workers:
        worker.stop()
    assert {key: threads[key] for key in keys} == {key: {f"job-{fnv32(key) % 3}"} for key in keys}
    assert len({name for names in threads.values() for name in names}) == 3
    assert not twice


@pytest.mark.parametrize(
    ("error", "result"), [(Retry("later"), "retry"), (Conflict("stale"), "retry"), (KeyError("bug"), "defect")]
)
def test_what_fails_is_tried_again_and_ends_no_thread(error: Exception, result: str) -> None:
    """The key comes back after a while, whatever was wrong."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    now = [0.0]

    def process(_key: str) -> None:
        raise error

    worker = Worker("test", process, monotonic_s=lambda: now[0])
    worker.queue.add("a")
    assert worker.queue.get(0) == "a"
    assert worker.once("a") == result
    now[0] += 60
    assert worker.queue.get(0) == "a"
    structlog.reset_defaults()


def test_nobody_acts_without_the_lease(cluster: Cluster) -> None:
    """No worker at all: not those of Jobs, nor those of queues, groups and time to live."""
    for worker in cluster.controller.workers:
        worker.may_act = lambda: False
    add(cluster, "j", task("w", 1), ttlSecondsAfterFinished=0)
    before = cluster.api.writes
    turn(cluster, 3, pause_s=40)
    assert cluster.api.writes == before
    assert not job(cluster, "j").status.state.phase
    assert len({worker.name for worker in cluster.controller.workers}) >= 5
