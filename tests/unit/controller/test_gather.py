"""What happens to many pods of a Job at about the same time is one pass; what the Job waits for is not kept waiting."""

from simulated_cluster import Cluster
from simulated_jobs import fail, job, order, pods, submit

from controller.job.controller import GATHER_S

PODS = 20


def gathering(cluster: Cluster) -> list[str]:
    """From now on events wait for others; the keys of the Jobs that get a pass. The list grows."""
    cluster.controller.jobs._gather_s = GATHER_S
    passes: list[str] = []
    process = cluster.controller.jobs.worker._process

    def noted(key: str) -> None:
        passes.append(key)
        process(key)

    cluster.controller.jobs.worker._process = noted
    return passes


def test_many_pods_are_one_pass(cluster: Cluster) -> None:
    """Each of them fails at another moment, and the caches tell of each on its own."""
    submit(cluster, "j", PODS, {"event": "PodFailed", "action": "RestartJob"})
    passes = gathering(cluster)
    for pod in pods(cluster):
        fail(cluster, pod.metadata.name)
        cluster.deliver(everything=True)
        cluster.work(1)
    assert passes == []
    cluster.now_s += GATHER_S
    cluster.work(1)
    assert passes == ["n/j"]
    assert (job(cluster, "j").status.state.phase, job(cluster, "j").status.retry_count) == ("Restarting", 1)


def test_what_somebody_asks_for_is_done_at_once(cluster: Cluster) -> None:
    """A Command waits for nobody, nor do pods that wait for their gang."""
    made = submit(cluster, "j", 2)
    passes = gathering(cluster)
    order(cluster, "AbortJob", made)
    cluster.deliver(everything=True)
    cluster.work(1)
    assert passes == ["n/j"]
    assert job(cluster, "j").status.state.phase == "Aborting"
