"""A randomised storm of queues and priorities: room is made for gangs, processes are killed, and nothing is in vain.

Two departments, one with two teams, share a plane that has work for all of them the whole time; gangs have three
priorities. Whoever loses pods starts again. In the end every Job has completed; nobody was evicted for a gang that
then did not start, and no queue waited for long. The seed is printed; MUSTER_SEED repeats a run.
"""

import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Self

import pytest
from gangs import History, job
from test_storm import GPUS, Overcommit

from muster.api.batch import JOBS
from muster.api.core import PODS, PRIORITY_CLASSES, Pod
from muster.api.placement import PLACEMENTS, Placement
from muster.api.scheduling import QUEUES
from muster.kube.client import Client
from muster.kube.reflector import Reflector
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane
PRIORITIES = {"storm-low": 1, "storm-middle": 100, "storm-high": 1000}
EVICTED = "DisruptionTarget"
TEAMS = ("large-one", "large-two", "small")
HALF_PLACED_LIMIT_S = 10.0 + 30.0 + 5.0
COMPLETED_S = 300.0
Key = tuple[str, int]
"""UID of a PodGroup, and the epoch of one of its placements."""


class Evictions:
    """Which placements named victims, which of these were evicted, and which placements came true."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.victims: dict[Key, frozenset[str]] = {}
        self.names: dict[str, str] = {}
        """UID of a PodGroup → its name."""
        self.started: set[str] = set()
        """UIDs of PodGroups that were whole once."""
        self.given_up: dict[Key, str] = {}
        self.evicted: set[str] = set()
        """UIDs of pods that the Eviction API let go."""
        self._placements = Reflector(client, PLACEMENTS, namespace=namespace)
        self._placements.add_handler(self._placement_seen)
        self._pods = Reflector(client, PODS, namespace=namespace)
        self._pods.add_handler(self._pod_seen)

    def __enter__(self) -> Self:
        for reflector in (self._placements, self._pods):
            reflector.start()
            assert reflector.wait_synced(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._placements.stop()
        self._pods.stop()

    def _placement_seen(self, _old: Placement | None, new: Placement | None) -> None:
        if new is None:
            return
        uid, key = new.spec.pod_group_uid, (new.spec.pod_group_uid, new.spec.epoch)
        self.names[uid] = new.metadata.name
        if new.spec.victims:
            self.victims[key] = frozenset(victim.uid for victim in new.spec.victims)
        if new.status.started or new.status.phase == "Bound":
            self.started.add(uid)
        if new.status.phase == "Abandoned":
            self.given_up.setdefault(key, new.status.message)

    def _pod_seen(self, _old: Pod | None, new: Pod | None) -> None:
        if new is not None and any(one.type == EVICTED and one.status == "True" for one in new.status.conditions):
            self.evicted.add(new.metadata.uid)

    def in_vain(self) -> dict[str, int]:
        """Gangs for which pods were evicted and which have not started in that life, and how many pods."""
        found = {uid: len(victims & self.evicted) for (uid, _), victims in self.victims.items()}
        return {self.names[uid]: count for uid, count in found.items() if count and uid not in self.started}


def make_queues(client: Client, prefix: str) -> dict[str, str]:
    """Two departments 3:1, and two teams 1:1 in the larger one; the names of the leaves."""
    made: dict[str, str] = {}
    for suffix, below, weight in (
        ("large", "", 3), ("small", "", 1), ("large-one", "large", 1), ("large-two", "large", 1),
    ):  # fmt: skip
        parent = f"{prefix}-{below}" if below else "root"
        made[suffix] = f"{prefix}-{suffix}"
        client.create(QUEUES, {"metadata": {"name": made[suffix]}, "spec": {"parent": parent, "weight": weight}})
    for name, value in PRIORITIES.items():
        body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        client.apply(PRIORITY_CLASSES, body | {"value": value})
    return made


def manifest(chance: random.Random, number: int, namespace: str, queue: str) -> dict[str, Any]:
    """One more gang; any of them fits the empty plane."""
    size = chance.choice([1, 2, 3, 4, 8, 12, 16])
    made = job(f"g{number}", namespace, replicas=size, gpus=chance.choice([1, 1, 2, 4]), cpu="100m",
               run_s=round(chance.uniform(0.5, 4.0), 1))  # fmt: skip
    made["spec"] |= {
        "queue": queue,
        "priorityClassName": chance.choice([*PRIORITIES]),
        "maxRetry": 1000,
        "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
    }
    return made


def run_storm(plane: Plane, namespace: str, *, gangs: int, kills: int, seed: int) -> None:
    """The storm itself, and what must hold of it."""
    sys.stderr.write(f"\nqueue storm seed {seed}\n")
    chance = random.Random(seed)  # noqa: S311 - the order of events is no secret
    client = plane.client()
    queues = make_queues(client, namespace)
    sizes: dict[str, int] = {}
    kill_at = set(chance.sample(range(gangs), kills))
    with (
        History(client, namespace) as history,
        Overcommit(client) as overcommit,
        Evictions(client, namespace) as evictions,
    ):
        for number in range(gangs):
            made = manifest(chance, number, namespace, queues[chance.choice(TEAMS)])
            client.create(JOBS, made, namespace)
            sizes[made["metadata"]["name"]] = made["spec"]["minAvailable"]
            if number in kill_at:
                part = plane.part("extender")
                part.kill()
                part.start()
            time.sleep(chance.uniform(0.0, 0.3))
        wait_for_the_end(client, namespace)
        report(evictions)
        assert overcommit.worst <= GPUS, f"{overcommit.worst} GPUs of one node were in use"
        assert evictions.in_vain() == {}, "pods were evicted for gangs that did not start"
        for name, size in sizes.items():
            lives = history.of(f"{name}-")
            assert all(len(life.nodes) <= 1 for life in lives), f"a pod of {name} was bound twice"
            half_s = history.half_placed_s(f"{name}-", size)
            assert half_s < HALF_PLACED_LIMIT_S, f"{name} was half placed for {half_s:.1f} s"


def wait_for_the_end(client: Client, namespace: str) -> None:
    """Every Job completes: no queue and no priority is starved."""
    deadline = time.monotonic() + COMPLETED_S
    while True:
        phases = {job.metadata.name: job.status.state.phase for job in client.list(JOBS, namespace)}
        left = {name: phase for name, phase in phases.items() if phase != "Completed"}
        if not left:
            return
        assert time.monotonic() < deadline, f"not completed: {left}"
        time.sleep(0.2)


def report(evictions: Evictions) -> None:
    """Prints for how many gangs room was made, and what became of those placements."""
    messages = Counter(
        evictions.given_up[key].partition(";")[0] for key in evictions.victims if key in evictions.given_up
    )
    sys.stderr.write(
        f"{len(evictions.victims)} placements made room, {len(evictions.evicted)} pods evicted; given up: "
        f"{dict(messages)}\n"
    )


@pytest.fixture
def tidy(plane: Plane, namespace: str) -> Any:
    """Afterwards the Jobs of the namespace are gone, and the queues."""
    yield
    plane.start()
    client = plane.client()
    for one in client.list(JOBS, namespace):
        client.delete(JOBS, one.metadata.name, namespace)
    for suffix in ("large-one", "large-two", "large", "small"):
        client.delete(QUEUES, f"{namespace}-{suffix}")


@pytest.mark.usefixtures("tidy")
def test_a_short_queue_storm(plane: Plane, namespace: str, seed: int) -> None:
    """Thirty gangs, two kills."""
    run_storm(plane, namespace, gangs=30, kills=2, seed=seed)


@pytest.mark.storm
@pytest.mark.timeout(3600)
def test_a_long_queue_storm(fresh_plane: Callable[..., Plane], seed: int) -> None:
    """Two hundred and fifty gangs, fifteen kills, a plane of its own."""
    run_storm(fresh_plane(nodes=8), "default", gangs=250, kills=15, seed=seed)
