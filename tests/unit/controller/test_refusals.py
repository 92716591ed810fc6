"""What a quota refuses is tried again later each time, and a large Job leaves its turn to others."""

import pytest
from simulated_cluster import Cluster
from simulated_jobs import add, pods, task, turn

from controller.job.effects import Refusals
from muster.kube.errors import ServerError


def tried(refusals: Refusals, pods: int, error: Exception | None = None) -> int:
    """How many creations a pass makes that a quota refuses."""
    with refusals.attempts("uid") as attempts:
        for _ in range(pods):
            if attempts.begin(b"8 GPUs"):
                attempts.refused(b"8 GPUs")
        if error:
            raise error
        return pods - attempts.untried


def test_refusals_are_tried_again_later_each_time() -> None:
    """However often the Job is looked at in between; what was never refused is not held up."""
    now = [0.0]
    refusals = Refusals(lambda: now[0])
    waits: list[float] = []
    for _ in range(7):
        assert tried(refusals, 50) == 3
        since = now[0]
        while tried(refusals, 50) == 0:
            now[0] += 0.25
        waits.append(now[0] - since)
        now[0] = since + waits[-1] + 30.0  # the pass of the loop above was one of its own
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (1.0, 30.0)
    with refusals.attempts("uid") as attempts:
        assert attempts.begin(b"1 GPU")


def test_a_pass_without_refusals_ends_the_row() -> None:
    """The next refusal is the first again; and nothing is kept of a Job that is gone."""
    now = [0.0]
    refusals = Refusals(lambda: now[0])
    tried(refusals, 5)
    now[0] += 1.0
    tried(refusals, 5)
    now[0] += 2.0
    with refusals.attempts("uid") as attempts:
        assert attempts.begin(b"8 GPUs")
    assert tried(refusals, 5) == 3
    now[0] += 1.0
    assert tried(refusals, 5) == 3
    refusals.forget("uid")
    assert tried(refusals, 5) == 3


def test_refusals_are_kept_however_the_pass_ends() -> None:
    """Else the quota would be asked again in every pass."""
    now = [0.0]
    refusals = Refusals(lambda: now[0])
    with pytest.raises(ServerError):
        tried(refusals, 5, ServerError("the rest of the pass failed"))
    assert tried(refusals, 5) == 0
    now[0] += 1.0
    assert tried(refusals, 5) == 3


def test_a_large_job_leaves_its_turn_to_others(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """It makes so many pods at a time while somebody waits, and the rest after that."""
    add(cluster, "j", task("w", 3 * 64))
    turn(cluster)
    cluster.plan(everything=True)
    reconciler, there = cluster.controller.jobs._reconciler, dict[str, int]()
    process = reconciler.process

    def looked_at(key: str) -> None:
        there.setdefault(key, len(pods(cluster)))
        process(key)
        if key == "n/j" and len(pods(cluster)) == 0:
            return
        there.setdefault(f"after {key}", len(pods(cluster)))

    monkeypatch.setattr(reconciler, "process", looked_at)
    cluster.deliver(everything=True)
    cluster.controller.workers[0].queue.add("other/job")
    for _ in range(3):
        turn(cluster)
    assert (there["after n/j"], there["other/job"]) == (64, 64)
    assert len(pods(cluster)) == 3 * 64
