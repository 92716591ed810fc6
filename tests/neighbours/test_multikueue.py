"""MultiKueue, real: a manager that hands TrainJobs to two workers with Muster, one of which dies."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from beside import kueue, multikueue, writes
from beside.kueue import Kueue
from beside.kueue_objects import QUEUE, holds, make_local_queue, make_quota
from beside.multikueue import CLUSTERS, CONTROLLER, Runs
from beside.neighbour import Neighbours
from train_jobs import train_job

from muster.api.base import Resource
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.core import NAMESPACES
from muster.kube.client import Client
from musterctl.plane import state
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.neighbour
WaitFor = Callable[..., Any]
JSON = dict[str, Any]
NAMESPACE = "research"
MANAGER = (state.ETCD, state.API_SERVER, state.CONTROLLER_MANAGER)
WORKER = tuple(each for each in state.COMPONENTS if each != state.SCHEDULER)
NODES = 2
"""Of each TrainJob, with eight GPUs each; a worker has eight."""
RAW: Resource[JSON] = Resource("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob", dict[str, Any])


@dataclass(frozen=True, slots=True)
class Clusters:
    """A manager and its workers."""

    manager: Kueue
    workers: tuple[Kueue, Kueue]
    client: Client
    runs: tuple[Runs, Runs]

    def complete(self) -> set[str]:
        """The TrainJobs that the manager shows as complete."""
        return {each["metadata"]["name"] for each in self.client.list(RAW, NAMESPACE) if holds(each, "Complete")}


@pytest.fixture
def clusters(fresh_plane: Callable[..., Plane], neighbours: Neighbours, wait_for: WaitFor) -> Iterator[Clusters]:
    """A manager without nodes and two workers of four nodes, with quota for two TrainJobs at a time each."""
    workers = tuple(_worker(fresh_plane, neighbours, wait_for, number) for number in range(2))
    manager = fresh_plane(MANAGER, nodes=0)
    manager.client().create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    settings = multikueue.settings(gcInterval="10s", workerLostTimeout="20s")
    first = kueue.start(manager, neighbours, wait_for, name="kueue-manager", settings=settings)
    client = manager.client()
    multikueue.prepare_manager(manager, [each.plane for each in workers], NAMESPACE)

    def connected() -> bool:
        found = client.list(CLUSTERS)
        return len(found) == 2 and all(holds(each, "Active") for each in found)

    wait_for(connected, 60, "the workers to be connected")
    with ExitStack() as stack:
        runs = tuple(stack.enter_context(Runs(each.plane.client(), NAMESPACE)) for each in workers)
        yield Clusters(first, workers, client, runs)  # type: ignore[arg-type]  # two of each


def _worker(fresh_plane: Callable[..., Plane], neighbours: Neighbours, wait_for: WaitFor, number: int) -> Kueue:
    plane = fresh_plane(WORKER, nodes=4)
    client = plane.client()
    client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    one = kueue.start(plane, neighbours, wait_for, name=f"kueue-worker-{number}", settings=multikueue.settings())
    make_quota(client, "own", multikueue.QUOTA)
    make_local_queue(client, NAMESPACE, "team", "own")
    return one


def submitted(client: Client, count: int, run_s: float) -> set[str]:
    """Creates so many TrainJobs on the manager, and returns their names."""
    names = [f"train-{number:03}" for number in range(count)]
    resources = {"resourcesPerNode": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": 8}}}
    for name in names:
        manifest = train_job(name, nodes=NODES, run_s=run_s, trainer=resources, managedBy=CONTROLLER)
        manifest["metadata"]["labels"] = {QUEUE: "team"}
        client.create(TRAIN_JOBS, manifest, NAMESPACE)
    return set(names)


def test_train_jobs_of_a_manager_run_on_its_workers(clusters: Clusters, wait_for: WaitFor) -> None:
    """Ten TrainJobs over two workers: each runs once, as a whole, on one of them, and the manager shows its end."""
    names = submitted(clusters.client, 10, run_s=2)
    wait_for(lambda: clusters.complete() == names, 180, "all TrainJobs to complete")
    here, there = (each.names() for each in clusters.runs)
    assert here | there == names
    assert not here & there
    assert here
    assert there
    for one in clusters.runs:
        assert all(len(one.of(name)) == NODES for name in one.names())
    for each in clusters.workers:
        assert not writes.loops(each.plane, NAMESPACE)
        assert not any(writes.refused(each.plane).values())
