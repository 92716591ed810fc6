"""Collections that live as long as their process are back at their size when all that was created is gone.

docs/operations.md names those that may stay larger, up to a bound.
"""

import gc
from collections import Counter
from itertools import pairwise

import pytest
from extender_world import CPU, World
from gangs_world import World as GangsWorld
from growth import grown, sizes
from guarded_extender import process_of
from recorded_lives import Lives, Whose, life
from simulated_cluster import Cluster
from simulated_jobs import add, fail, task
from web_world import Pages, gang

from extender.planner.cycle import Planning
from extender.planner.framework import answers, config
from extender.planner.framework.snapshot import take_snapshot
from extender.planner.timing import Timing
from history.entries import Entries
from history.hourly import HOUR_MS
from history.observations import Observation, apply
from history.pods import ObservationTime
from muster.api.kubernetes.core import INDEXED_JOBS, NAMESPACES, PODS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from web.rights import BELIEVED_S, Remembered

EACH, PLANNED = 100, 5
"""Objects of a round, and the number of rounds with cycles."""
TIMES = pytest.mark.parametrize("times", [400, pytest.param(10_000, marks=pytest.mark.slow)])
SLACK = 256
"""Entries that may always be there: docs/operations.md has the bounds."""


@TIMES
def test_the_planner_forgets_deleted_objects(times: int) -> None:
    """Thousands of gangs, queues and pods, each with names of its own."""
    world = World(checked=False).nodes(2)
    planning = Planning(config.SchedulerConfig(), Timing())

    def round_of(number: int, count: int, *, plan: bool = True) -> None:
        keys = []
        for index in range(count):
            name = f"r{number}-{index}"
            world.queue(name, budget=f"{name}.example/x=1h/day")
            keys.append(world.gang(name, {"w": (1, CPU | {"memory": index})}, queue=name, user=name, spec=terms(name)))
            world.pod(keys[-1], "w", 0, CPU, labels={name: name})
        if plan:
            planning.run(take_snapshot(world.state), world.now)
        for pod in [*world.state.pod_objects.values()]:
            world.state.on_pod(pod, None)
        for key in keys:
            job = world.job_of(key)
            world.state.on_pod_group(world.state.groups[key], None)
            world.state.on_job(job, None)
        for name in [name for name in world.state.queues if name.startswith("r")]:
            world.state.on_queue(world.state.queues[name], None)
        world.state.refresh()
        if plan:
            planning.run(take_snapshot(world.state), world.now)

    round_of(0, 10)
    before = sizes(world.state) + sizes(planning)
    for number in range(1, times // EACH + 1):
        round_of(number, EACH, plan=number <= PLANNED)
    round_of(0, 10)
    gc.collect()
    assert grown(before, sizes(world.state) + sizes(planning), SLACK) == {}


def test_the_writers_of_the_extender_forget_deleted_gangs() -> None:
    """Hundreds of gangs, half of which start; what is remembered of a deleted one goes with time."""
    world = World(checked=False).nodes(EACH)
    planning = Planning(config.SchedulerConfig(), Timing())
    with process_of(world) as process:

        def round_of(number: int, count: int) -> None:
            world.now += 1_000
            sizes_of = [1 + 900 * (index % 2) for index in range(count)]
            keys = [world.gang(f"r{number}-{index}", {"w": (size, CPU)}) for index, size in enumerate(sizes_of)]
            process.api.keep(POD_GROUPS, *(world.state.groups[key] for key in keys))
            process.carry_out(planning.run(take_snapshot(world.state), world.now))
            for key in [*world.state.placements]:
                world.state.on_placement(world.state.placements[key], None)
            for key in keys:
                job = world.job_of(key)
                world.state.on_pod_group(world.state.groups[key], None)
                world.state.on_job(job, None)
            world.now += 1_000
            process.carry_out(planning.run(take_snapshot(world.state), world.now))

        round_of(0, 4)
        before = sizes(process.committer)
        for number in range(1, 6):
            round_of(number, EACH)
        round_of(6, 4)
        assert process.api.sent
        assert grown(before, sizes(process.committer), SLACK) == {}


def terms(name: str) -> dict[str, object]:
    """Demands with names of their own."""
    expression = {"key": name, "operator": "NotIn", "values": [name]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    near = [{"topologyKey": name, "labelSelector": {"matchLabels": {name: name}}}]
    return {
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required},
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": near},
        },
        "tolerations": [{"key": name, "operator": "Exists"}],
    }


def test_codes_of_causes_start_over_when_they_are_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Causes of deleted pods used them; a minute passes between two resets."""
    monkeypatch.setattr(answers, "MAX_CAUSES", 20)
    world = World(checked=False).nodes(1)
    planning = Planning(config.SchedulerConfig(), Timing())
    causes = []
    for seconds in (0, 1, 30, 70):
        world.now += seconds
        causes.append(planning.run(take_snapshot(world.state), world.now).causes)
        for number in range(30):
            causes[-1].code(f"{seconds} {number}")
    assert [one is other for one, other in pairwise(causes)] == [False, True, False]


@TIMES
def test_the_recorder_forgets_deleted_objects(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of gangs with a member each; ends of the last ones are remembered."""
    monkeypatch.setattr("history.entries.REMEMBERED", 100)
    entries = Entries()
    before = sizes(entries)
    for number in range(times):
        whose = Whose(f"x{number}-", f"n{number}", queue=f"q{number}")
        lives = Lives()
        life(lives, whose)
        for look in lives.looks:
            apply(entries, look)
        for kind, uid in (("pods", whose.pod), ("podgroups", whose.group), ("jobs", whose.owner)):
            moment = ObservationTime(lives.looks[-1].moment.at, live=True)
            apply(entries, Observation(kind, uid, None, gone=True, moment=moment, namespace=whose.namespace))
        entries.take_changes()
        if number % 1_000 == 0:
            entries.hourly.end_hour(number * HOUR_MS)
    entries.hourly.end_hour((times + 1) * HOUR_MS)
    assert grown(before, sizes(entries), SLACK) == {}


def test_the_controller_forgets_deleted_objects(cluster: Cluster) -> None:
    """More than a hundred Jobs that ran; each costs as many passes as in a cluster."""

    def round_of(first: int, count: int) -> None:
        names = [f"job-{first + number}" for number in range(count)]
        for name in names:
            add(cluster, name, task("w", 1), policies=[{"event": "PodFailed", "action": "RestartJob"}])
        assert cluster.converge()
        for name in names[::2]:
            fail(cluster, f"{name}-w-0")
        assert cluster.converge()
        for name in names:
            cluster.api.delete(JOBS, name, "n")
        assert cluster.converge()
        cluster.now_s += 2_000

    round_of(0, 4)
    before = sizes(cluster.controller)
    for number in range(1, 7):
        round_of(1_000 * number, 25)
    round_of(100_000, 4)
    after = sizes(cluster.controller)
    for events in [path for path in after if "._recorder._" in path]:
        del after[events]  # of a writer that was not started
    assert grown(before, after, 64) == {}


def test_the_controller_forgets_deleted_gangs_of_other_workloads() -> None:
    """Jobs of Kubernetes whose pods have all ended, and of which some are checked until they are deleted."""
    world = GangsWorld()
    pod_seen, group_seen = (handler for _, handler in world.pod_groups.handlers)

    def round_of(first: int, count: int) -> None:
        for number in range(first, first + count):
            owner = world.owner(INDEXED_JOBS, metadata={"name": f"job-{number}"})
            pod = world.pod(owner, "muster", metadata={"name": f"pod-{number}"})
            pod_seen(None, pod)
            world.group(owner)
            world.pods.discard(pod.metadata.key)
            pod_seen(pod, None)
            key = f"n/podgroup-{owner.uid}"
            world.pod_groups.process(key)
            assert world.pod_groups._end_checks[key] == 1
            group = world.groups.get(key)
            world.groups.discard(key)
            for kind, name in ((POD_GROUPS, key[2:]), (PODS, pod.metadata.name), (INDEXED_JOBS, owner.name)):
                world.api.remove(kind, world.api.find(kind, name, "n"), at_once=True)
            group_seen(group, None)

    round_of(0, 1)
    before = sizes(world.pod_groups)
    round_of(1, EACH)
    after = sizes(world.pod_groups)
    for waiting in [path for path in after if ".worker.queue." in path]:
        del after[waiting]  # keys that no worker has taken yet
    assert grown(before, after, 0) == {}


@TIMES
def test_the_page_forgets_namespaces_that_are_gone(times: int) -> None:
    """Thousands of them; existing ones stay in the list of checked namespaces."""
    pages = Pages({})
    pages.put(NAMESPACES, {"metadata": {"name": "z-lives"}})
    gang(pages, "z-lives", "train")
    before = sizes(pages.caches)
    for number in range(times):
        name = f"a-{number}"
        pages.put(NAMESPACES, {"metadata": {"name": name}})
        gang(pages, name, "train")
        pages.caches.rows(name)
        pages.caches.rows(f"never-{number}")
        if number % 2:
            pages.remove(NAMESPACES, name)
        for kind in (POD_GROUPS, JOBS, PODS):
            for each in pages.caches.objects_in(kind, name):
                pages.remove(kind, each.metadata.key)
        if not number % 2:
            pages.remove(NAMESPACES, name)
    assert pages.caches.namespaces() == ["z-lives"]
    assert grown(before, sizes(pages.caches), SLACK) == {}


def test_answers_about_rights_are_bounded_by_asker() -> None:
    """One user's requests about ten thousand namespaces displace no other user's answers; old ones are dropped."""
    now, asked = [0.0], Counter[str]()
    known = Remembered(lambda: now[0], most=100)

    def ask(user: str, question: int) -> None:
        def count() -> int:
            asked[user] += 1
            return question

        assert known.answer(question, count, user) == question

    for number in range(10):
        ask("ada", number)
    for number in range(10_000):
        ask("eve", number)
    for number in range(10):
        ask("ada", number)
    assert (asked["ada"], len(known)) == (10, 100)
    now[0] = BELIEVED_S
    ask("ada", 0)
    assert (asked["ada"], len(known)) == (11, 1)
