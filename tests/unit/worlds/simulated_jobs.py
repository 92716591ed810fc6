"""What tests ask of Jobs on the simulated cluster."""

from typing import Any

from simulated_cluster import Cluster

from muster.api.kubernetes.core import PODS, Pod
from muster.api.volcano.batch import COMMANDS, JOBS, Job


def task(name: str, replicas: int, **more: Any) -> dict[str, Any]:
    """A task."""
    template = {"spec": {"containers": [{"name": "main", "image": "none"}]}}
    return {"name": name, "replicas": replicas, "template": template, **more}


def add(cluster: Cluster, name: str, *tasks: dict[str, Any], policies: Any = (), **spec: Any) -> None:
    """A Job, which nobody has seen yet."""
    total = sum(one["replicas"] for one in tasks)
    content = {"tasks": list(tasks), "minAvailable": total, "maxRetry": 3, "policies": list(policies), **spec}
    cluster.api.add(JOBS, {"metadata": {"name": name}, "spec": content}, "n")


def submit(cluster: Cluster, name: str, replicas: int, *policies: dict[str, Any], **spec: Any) -> Job:
    """A Job of one task `w`, which runs when this returns."""
    add(cluster, name, task("w", replicas), policies=policies, **spec)
    assert cluster.converge()
    return job(cluster, name)


def job(cluster: Cluster, name: str) -> Job:
    """The Job as it is."""
    found: Job = cluster.api.find(JOBS, name, "n")
    return found


def pods(cluster: Cluster) -> list[Pod]:
    """The pods as they are."""
    return cluster.api.all(PODS)


def fail(cluster: Cluster, *names: str) -> None:
    """These pods fail."""
    for name in names:
        cluster._phase(cluster.api.find(PODS, name, "n"), "Failed", exit_code=1)


def order(cluster: Cluster, action: str, target: Job, name: str = "") -> None:
    """Asks for an action."""
    to = {"apiVersion": JOBS.api_version, "kind": "Job", "name": target.metadata.name, "uid": target.metadata.uid}
    meta = {"name": name} if name else {"generateName": "c-"}
    cluster.api.add(COMMANDS, {"metadata": meta, "action": action, "target": to}, "n")


def command(cluster: Cluster, action: str, target: Job) -> None:
    """Asks for an action and waits until all is quiet."""
    order(cluster, action, target)
    assert cluster.converge()


def turn(cluster: Cluster, times: int = 1, pause_s: float = 0.0) -> None:
    """Everything is told and worked on; time passes only as said, after each turn."""
    for _ in range(times):
        cluster.deliver(everything=True)
        cluster.work(50)
        cluster.now_s += pause_s


def trickle(cluster: Cluster, turns: int = 30) -> None:
    """Some news now and then, and a pass in between."""
    for _ in range(turns):
        cluster.deliver()
        cluster.work(1)


def settle(cluster: Cluster) -> None:
    """Everything happens that needs no time, but for kubelet."""
    for _ in range(8):
        turn(cluster)
        cluster.plan(everything=True)
        for pod in pods(cluster):
            if pod.metadata.deletion_timestamp:
                cluster.api.remove(PODS, pod, at_once=True)
    turn(cluster)


def brief(cluster: Cluster) -> tuple[str, int]:
    """Phase and restarts of Job `j`."""
    status = job(cluster, "j").status
    return status.state.phase, status.retry_count


def told(cluster: Cluster) -> list[tuple[str, str]]:
    """Reasons and messages of the events from now on; the list grows."""
    events: list[tuple[str, str]] = []
    cluster.controller._recorder.event = lambda _obj, _type, reason, message: events.append((reason, message))  # type: ignore[method-assign]
    return events
