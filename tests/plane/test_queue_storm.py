"""A randomised storm of queues and priorities: room is made for gangs, processes are killed, and nothing is in vain."""

import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from gang_jobs import History, attempt, job
from lives import Recorder, Story
from planes import drop_queue
from test_storm import GPUS, Overcommit

from extender.barrier import MEMBER_S
from extender.planner.actions.progress import BINDING_S
from muster.api.kubernetes.core import PRIORITY_CLASSES
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import QUEUES
from muster.kube.client import Client
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.long]
PRIORITIES = {"low": 1, "middle": 100, "high": 1000}
TEAMS = ("large-one", "large-two", "small")
HALF_PLACED_LIMIT_S = 10.0 + 30.0 + 5.0 + 16 * (MEMBER_S + BINDING_S)
LATE_S = 60.0
"""How much later than promised a gang of a queue may start: the planner is killed now and then."""
STUCK_S = 120.0
"""Within this time some Job completes, as long as there are any."""


def make_queues(client: Client, prefix: str) -> dict[str, str]:
    """Two departments 3:1, two teams 1:1 in the larger one, and priorities, all named after the prefix."""
    made: dict[str, str] = {}
    for suffix, below, weight in (
        ("large", "", 3), ("small", "", 1), ("large-one", "large", 1), ("large-two", "large", 1),
    ):  # fmt: skip
        parent = f"{prefix}-{below}" if below else "root"
        made[suffix] = f"{prefix}-{suffix}"
        client.create(QUEUES, {"metadata": {"name": made[suffix]}, "spec": {"parent": parent, "weight": weight}})
    for name, value in PRIORITIES.items():
        body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": f"{prefix}-{name}"}}
        client.apply(PRIORITY_CLASSES, body | {"value": value})
    return made


def manifest(chance: random.Random, number: int, namespace: str, queue: str) -> dict[str, Any]:
    """One more gang; any of them fits the empty plane."""
    size, run_s = chance.choice([1, 2, 3, 4, 8, 12, 16]), round(chance.uniform(0.5, 4.0), 1)
    made = job(f"g{number}", namespace, replicas=size, gpus=chance.choice([1, 1, 2, 4]), cpu="100m", run_s=run_s)
    if chance.random() < 0.8:
        made["metadata"]["annotations"] = {"muster.dev/expected-runtime": f"{run_s + 2:.0f}s"}
    made["spec"] |= {
        "queue": queue,
        "priorityClassName": f"{namespace}-{chance.choice([*PRIORITIES])}",
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
    kill_at = set(chance.sample(range(gangs), kills))
    with (
        History(client, namespace) as history,
        Overcommit(client) as overcommit,
        Recorder(client, namespace) as recorder,
    ):
        for number in range(gangs):
            made = manifest(chance, number, namespace, queues[chance.choice(TEAMS)])
            attempt(lambda made=made: client.create(JOBS, made, namespace))
            if number in kill_at:
                part = plane.part("extender")
                part.kill()
                part.start()
            time.sleep(chance.uniform(0.0, 0.3))
        wait_for_the_end(plane, client, namespace)
        story = recorder.story()
        report(story)
        assert overcommit.worst <= GPUS, f"{overcommit.worst} GPUs of one node were in use"
        assert all(len(life.nodes) <= 1 for life in history.of("")), "a pod was bound twice"
        assert story.in_vain() == {}, "pods were evicted for gangs that did not start"
        assert story.evicted_late == 0, "pods were evicted that had succeeded"
        assert story.run_again == [], "pods that had succeeded were run again without their gang"
        assert story.half_placed() < (HALF_PLACED_LIMIT_S,), "a gang was half placed for too long"
        assert max(story.late.values(), default=0.0) < LATE_S, f"queues waited longer than promised: {story.late}"


def wait_for_the_end(plane: Plane, client: Client, namespace: str) -> None:
    """Every Job completes: no queue and no priority is starved.

    A process that ended is started again, as a kubelet would: kube-scheduler ends when it loses its lease on a machine
    that stood still for some seconds.
    """
    before, deadline = -1, 0.0
    while True:
        phases = {job.metadata.name: job.status.state.phase for job in client.list(JOBS, namespace)}
        left = {name: phase for name, phase in phases.items() if phase != "Completed"}
        if not left:
            return
        if len(left) != before:
            before, deadline = len(left), time.monotonic() + STUCK_S
        if any(part.word == "dead" for part in plane.parts.values()):
            plane.mend()
        assert time.monotonic() < deadline, f"none of these completes any more: {left}"
        time.sleep(0.2)


def report(story: Story) -> None:
    """Prints for how many gangs room was made and what became of those placements, and how well promises were kept."""
    messages = Counter(asked.given_up.partition(";")[0] for asked in story.asked if asked.given_up)
    half_s, gang = story.half_placed()
    late = ", ".join(f"{queue} {seconds:.1f} s" for queue, seconds in sorted(story.late.items()))
    sys.stderr.write(
        f"{len(story.asked)} placements made room, {len(story.evicted)} pods evicted; given up: {dict(messages)}; "
        f"in vain: {story.in_vain()}; after their end: {story.evicted_late}; run again alone: {story.run_again}\n"
        f"longest half placed: {half_s:.1f} s ({gang}); {story.promises} times a time was promised, "
        f"later than promised at the worst: {late or 'never'}\n"
    )


@pytest.fixture
def tidy(plane: Plane, namespace: str) -> Any:
    """Afterwards the Jobs of the namespace are gone, the queues and the priorities."""
    yield
    plane.mend()
    client = plane.client()
    for one in client.list(JOBS, namespace):
        client.delete(JOBS, one.metadata.name, namespace)
    for suffix in ("large-one", "large-two", "large", "small"):
        drop_queue(client, f"{namespace}-{suffix}")
    for name in PRIORITIES:
        client.delete(PRIORITY_CLASSES, f"{namespace}-{name}")


@pytest.mark.usefixtures("tidy")
def test_a_short_queue_storm(plane: Plane, namespace: str, seed: int) -> None:
    """Thirty gangs, two kills."""
    run_storm(plane, namespace, gangs=30, kills=2, seed=seed)


@pytest.mark.storm
@pytest.mark.timeout(3600)
def test_a_long_queue_storm(fresh_plane: Callable[..., Plane], seed: int) -> None:
    """Two hundred and fifty gangs, fifteen kills, a plane of its own."""
    run_storm(fresh_plane(nodes=8), "default", gangs=250, kills=15, seed=seed)
