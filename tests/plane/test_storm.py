"""A randomised storm: gangs come and go, nodes too, processes are killed; in the end all that can run has run."""

import random
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import pytest
from gang_jobs import History, Life, attempt, job

from extender.barrier import MEMBER_S
from extender.planner.actions.progress import BINDING_S
from muster.api.kubernetes.core import NODES, PODS
from muster.api.muster.placement import PLACEMENTS, node_of
from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from muster.kube.reflector import Reflector
from musterctl.plane.install import node_objects
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.long]
GPUS = 8
SIZES = [1, 2, 3, 5, 8, 13, 21, 34, 64]
HALF_PLACED_LIMIT_S = 10.0 + 30.0 + 5.0 + max(SIZES) * (MEMBER_S + BINDING_S)
"""One barrier, one recovery deadline, what a large gang adds to both, and the time of an eviction."""


class Storm:
    """Acts at random on one plane, and knows what must come of it."""

    half_placed_limit_s = HALF_PLACED_LIMIT_S
    kills = ("extender", "muster-scheduler")

    def __init__(self, plane: Plane, namespace: str, chance: random.Random) -> None:
        self.plane = plane
        self.client: Client = plane.client()
        self.namespace = namespace
        self.chance = chance
        self.sizes: dict[str, int] = {}
        self.deleted: set[str] = set()
        self.lost: set[str] = set()
        """Nodes that went away at some time."""
        self.restarted: set[str] = set()
        """Jobs that were to start again as a whole."""
        self.node_names = [node.metadata.name for node in self.client.list(NODES)]

    def submit(self, number: int) -> None:
        """One more gang; sizes are such that each fits an empty cluster of the nodes that never go."""
        name = f"g{number}"
        size = min(self.chance.choice(SIZES), len(self.node_names) * GPUS // 2)
        run_s = round(self.chance.uniform(0.2, 3.0), 1)
        manifest = self.asking(job(name, self.namespace, replicas=size, gpus=1, run_s=run_s, cpu="100m"), size)
        attempt(lambda: self.client.create(JOBS, manifest, self.namespace))
        self.sizes[name] = size

    def asking(self, manifest: dict[str, Any], _size: int) -> dict[str, Any]:
        """The Job with whatever else its user asks for."""
        return manifest

    def checked(self, name: str, done: list[Life]) -> None:
        """What else must hold of the members of a gang that ended well."""

    def start_again(self, part: str) -> None:
        """The successor of a part that was killed."""
        self.plane.part(part).start()

    def foreign_pod(self, number: int) -> None:
        """A pod of the cluster's own scheduler takes most of a node's CPU for a moment."""
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"foreign-{number}", "annotations": {"kwok.muster.dev/run-seconds": "2"}},
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "20"}}}],
            },
        }
        attempt(lambda: self.client.create(PODS, pod, self.namespace))

    def delete_a_job(self) -> None:
        """A user changes their mind."""
        alive = sorted(self.sizes.keys() - self.deleted)
        if alive:
            name = self.chance.choice(alive)
            self.deleted.add(name)
            attempt(lambda: self.client.delete(JOBS, name, self.namespace))

    def cordon(self, *, on: bool) -> None:
        """Cordon a node of the second half, or uncordon all."""
        half = self.node_names[len(self.node_names) // 2 :]
        for name in [self.chance.choice(half)] if on else half:
            attempt(lambda name=name: self.client.merge_patch(NODES, name, {"spec": {"unschedulable": on}}))

    def node_goes(self) -> None:
        """A machine of the last quarter is lost with all that ran on it."""
        name = self.chance.choice(self.node_names[-(len(self.node_names) // 4) :])
        self.lost.add(name)
        attempt(lambda: self.client.delete(NODES, name))

    def nodes_come(self) -> None:
        """What was lost is there again, empty: a pod that was bound in the moment of the loss has not come with it.

        A kubelet would end such a pod. kwok does not know it, and it would be terminating for ever.
        """
        there = {node.metadata.name for node in self.client.list(NODES)}
        for manifest in node_objects(self.plane.state.options):
            name = manifest["metadata"]["name"]
            if name not in there:
                self._empty(name)
                attempt(lambda manifest=manifest: self.client.create(NODES, manifest))

    def _empty(self, node: str) -> None:
        for pod in self.client.list(PODS, self.namespace, field_selector=f"spec.nodeName={node}"):
            if not pod.finished or pod.metadata.deletion_timestamp:
                meta = pod.metadata
                attempt(partial(self.client.delete, PODS, meta.name, meta.namespace, uid=meta.uid, grace_period_s=0))


class Overcommit:
    """Watches that no node ever gives more GPUs than it has."""

    def __init__(self, client: Client) -> None:
        self.worst = 0
        self._use: dict[str, tuple[str, int]] = {}
        self._pods = Reflector(client, PODS)
        self._pods.add_handler(self._changed)

    def __enter__(self) -> Self:
        self._pods.start()
        assert self._pods.wait_synced(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._pods.stop()

    def _changed(self, old: Any, new: Any) -> None:
        pod = new or old
        gpus = sum(int(c.resources.limits.get("nvidia.com/gpu", 0)) for c in pod.spec.containers)
        if new is None or new.finished or not new.spec.node_name:
            self._use.pop(pod.metadata.uid, None)
            return
        self._use[pod.metadata.uid] = (new.spec.node_name, gpus)
        on_node = sum(count for node, count in self._use.values() if node == new.spec.node_name)
        self.worst = max(self.worst, on_node)


def run_storm(plane: Plane, namespace: str, *, gangs: int, kills: int, seed: int, of: type[Storm] = Storm) -> None:
    """The storm itself, and what must hold of it."""
    sys.stderr.write(f"\nstorm seed {seed}\n")
    chance = random.Random(seed)  # noqa: S311 - the order of events is no secret
    storm = of(plane, namespace, chance)
    killed = iter([chance.choice(of.kills) for _ in range(kills)])
    with History(storm.client, namespace) as history, Overcommit(storm.client) as overcommit:
        kill_at = set(chance.sample(range(gangs), min(kills, gangs)))
        for number in range(gangs):
            storm.submit(number)
            if chance.random() < 0.15:
                storm.foreign_pod(number)
            if chance.random() < 0.05:
                storm.delete_a_job()
            if chance.random() < 0.1:
                storm.cordon(on=chance.random() < 0.6)
            if chance.random() < 0.05:
                storm.node_goes()
            if chance.random() < 0.1:
                storm.nodes_come()
            if number in kill_at:
                part = next(killed)
                plane.part(part).kill()
                storm.start_again(part)
            time.sleep(chance.uniform(0.0, 0.2))
        storm.nodes_come()
        storm.cordon(on=False)
        plane.mend()
        wait_for_the_end(storm, timeout_s=180 + 20 * kills)
        check(storm, history, overcommit)


def wait_for_the_end(storm: Storm, timeout_s: float) -> None:
    """Every Job that was not deleted completes."""
    deadline = time.monotonic() + timeout_s
    wanted = storm.sizes.keys() - storm.deleted
    while True:
        phases = {job.metadata.name: job.status.state.phase for job in storm.client.list(JOBS, storm.namespace)}
        left = {name: phases.get(name, "missing") for name in wanted if phases.get(name) != "Completed"}
        if not left:
            return
        assert time.monotonic() < deadline, f"not completed: {left}"
        time.sleep(0.2)


def check(storm: Storm, history: History, overcommit: Overcommit) -> None:
    """The invariants over the whole watch history."""
    assert overcommit.worst <= GPUS, f"{overcommit.worst} GPUs of one node were in use"
    half = sorted((history.half_placed_s(f"{name}-", size), name) for name, size in storm.sizes.items())
    sys.stderr.write(
        f"\nhalf placed, at the longest: {', '.join(f'{name} {took_s:.1f} s' for took_s, name in half[-5:])}\n"
    )
    for name, size in storm.sizes.items():
        lives = history.of(f"{name}-")
        assert all(len(life.nodes) <= 1 for life in lives), f"a pod of {name} was bound twice"
        half_s = history.half_placed_s(f"{name}-", size) if name not in storm.deleted else 0.0
        assert half_s < storm.half_placed_limit_s, (
            f"{name}, of {size}, was half placed for {half_s:.1f} s:\n{history.told(f'{name}-')}"
        )
        if name not in storm.deleted:
            assert_on_their_places(storm, name, lives)


def assert_on_their_places(storm: Storm, name: str, lives: list[Life]) -> None:
    """Members that ended are where the placement says; of each slot one did.

    One that is evicted in the moment when it ends may succeed while it goes; its owner makes another one. And so it
    does for one that had succeeded on a node that was lost, with which Kubernetes deletes its pods, and a Job that
    restarts for each that had.
    """
    restarts = name in storm.restarted
    done = [
        life
        for life in lives
        if life.done and not ((restarts or life.node in storm.lost) and life.gone and _again(life, lives))
    ]
    storm.checked(name, done)
    by_rank = sorted((life.slot.rank, life.created, life) for life in done if life.slot)
    assert [rank for rank, *_ in by_rank] == list(range(storm.sizes[name])), f"{by_rank}; lost: {storm.lost}"
    for placement in storm.client.list(PLACEMENTS, storm.namespace):
        if placement.metadata.name.startswith(f"{name}-"):
            slots = [(life.node, life.slot) for life in done if life.slot]
            assert all(node_of(placement, slot.pod_set, slot.rank) == node for node, slot in slots)


def _again(life: Life, lives: list[Life]) -> bool:
    """True if a later pod of the same slot has ended well."""
    return any(each.done and each.slot == life.slot and each.created > life.created for each in lives)


def test_a_short_storm(plane: Plane, namespace: str, seed: int) -> None:
    """Twenty gangs, two kills."""
    try:
        run_storm(plane, namespace, gangs=20, kills=2, seed=seed)
    finally:
        plane.mend()


@pytest.mark.storm
@pytest.mark.timeout(3600)
def test_a_long_storm(fresh_plane: Callable[..., Plane], seed: int) -> None:
    """Two hundred gangs, twenty kills, a plane of its own."""
    run_storm(fresh_plane(nodes=16), "default", gangs=200, kills=20, seed=seed)
