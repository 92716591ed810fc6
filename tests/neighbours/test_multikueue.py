"""MultiKueue, real: a manager that hands TrainJobs to two workers with Muster, one of which dies."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from beside import kueue, multikueue
from beside.keeper import Keeper
from beside.kueue import Kueue
from beside.kueue_objects import QUEUE, holds, make_local_queue, make_quota
from beside.multikueue import CLUSTERS, CONTROLLER, Runs
from beside.neighbour import Neighbours
from beside.scene import Scene
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
"""Of each TrainJob."""
LOST_S = 20
"""A worker that has not answered for so long is given up by the manager."""
RAW: Resource[JSON] = Resource("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob", dict[str, Any])


@dataclass(frozen=True, slots=True)
class Clusters:
    """A manager and its workers."""

    manager: Kueue
    workers: tuple[Kueue, Kueue]
    client: Client
    runs: tuple[Runs, Runs]
    scenes: tuple[Scene, Scene]
    keeper: Keeper

    def complete(self) -> set[str]:
        """The TrainJobs that the manager shows as complete."""
        return {each["metadata"]["name"] for each in self.client.list(RAW, NAMESPACE) if holds(each, "Complete")}


@pytest.fixture
def clusters(fresh_plane: Callable[..., Plane], neighbours: Neighbours, wait_for: WaitFor) -> Iterator[Clusters]:
    """A manager without nodes and two workers of four nodes, with quota for two TrainJobs at a time each."""
    workers = tuple(_worker(fresh_plane, neighbours, wait_for, number) for number in range(2))
    manager = fresh_plane(MANAGER, nodes=0)
    manager.client().create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    settings = multikueue.settings(gcInterval="10s", workerLostTimeout=f"{LOST_S}s")
    first = kueue.start(manager, neighbours, wait_for, name="kueue-manager", settings=settings)
    client = manager.client()
    multikueue.prepare_manager(manager, [each.plane for each in workers], NAMESPACE)

    def connected() -> bool:
        found = client.list(CLUSTERS)
        return len(found) == 2 and all(holds(each, "Active") for each in found)

    wait_for(connected, 60, "the workers to be connected")
    every = (first, *workers)
    parts = [part for each in every for part in (each.part, *each.plane.parts.values())]
    with ExitStack() as stack:
        runs = tuple(stack.enter_context(Runs(each.plane.client(), NAMESPACE)) for each in workers)
        scenes = tuple(stack.enter_context(Scene(each.plane, NAMESPACE, wait_for)) for each in workers)
        keeper = stack.enter_context(Keeper(parts))
        yield Clusters(first, workers, client, runs, scenes, keeper)  # type: ignore[arg-type]  # two of each


def _worker(fresh_plane: Callable[..., Plane], neighbours: Neighbours, wait_for: WaitFor, number: int) -> Kueue:
    plane = fresh_plane(WORKER, nodes=4)
    client = plane.client()
    client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    one = kueue.start(plane, neighbours, wait_for, name=f"kueue-worker-{number}", settings=multikueue.settings())
    make_quota(client, "own", multikueue.QUOTA)
    make_local_queue(client, NAMESPACE, "team", "own")
    return one


def submitted(client: Client, count: int, *, gpus: int, run_s: float) -> set[str]:
    """Creates so many TrainJobs on the manager, with so many GPUs for each node, and returns their names."""
    names = [f"train-{number:03}" for number in range(count)]
    resources = {"resourcesPerNode": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": gpus}}}
    for name in names:
        manifest = train_job(name, nodes=NODES, run_s=run_s, trainer=resources, managedBy=CONTROLLER)
        manifest["metadata"]["labels"] = {QUEUE: "team"}
        client.create(TRAIN_JOBS, manifest, NAMESPACE)
    return set(names)


def test_train_jobs_of_a_manager_run_on_its_workers(clusters: Clusters, wait_for: WaitFor) -> None:
    """Ten TrainJobs over two workers: each runs once, as a whole, on one of them, and the manager shows its end."""
    names = submitted(clusters.client, 10, gpus=8, run_s=2)
    wait_for(lambda: clusters.complete() == names, 240, "all TrainJobs to complete")
    here, there = (each.names() for each in clusters.runs)
    assert here | there == names
    assert not here & there
    assert here
    assert there
    for one in clusters.runs:
        assert all(len(one.of(name)) == NODES for name in one.names())
    for scene in clusters.scenes:
        scene.check()


def test_a_worker_dies_midway(clusters: Clusters, wait_for: WaitFor) -> None:
    """A hundred TrainJobs, and a worker that is gone after a third of them: none runs twice, and all complete."""
    names = submitted(clusters.client, 100, gpus=1, run_s=5)
    wait_for(lambda: len(clusters.complete()) >= 33, 600, "a third of the TrainJobs to complete")
    lost = clusters.workers[0]
    ran_on_lost, ran = clusters.runs
    clusters.keeper.kill([lost.part, *lost.plane.parts.values()])
    killed_s = time.monotonic()
    over = clusters.complete()
    begun = {name for name in ran_on_lost.names() if name not in over}
    assert begun, "the worker that dies has nothing in work, so this shows nothing"
    wait_for(lambda: clusters.complete() == names, 900, "all TrainJobs to complete")
    figures = f"{len(over)} complete at the kill, {len(begun)} begun on the lost worker"
    sys.stderr.write(f"{figures}; the rest took {time.monotonic() - killed_s:.0f} s\n")
    twice = ran.names() & ran_on_lost.names()
    assert twice <= begun, "what the manager knew to be complete was run again"
    assert all(each.began_s > killed_s + LOST_S for name in twice for each in ran.of(name))
    assert all(len(ran.of(name)) == NODES for name in ran.names())
    assert ran.names() | over == names
    clusters.scenes[1].check()
