"""Who may not list the cluster is told what his own objects say, in the words of the planner, and of nobody else."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from explain_world import ExplainWorld, by_label, report_of
from extender_world import GPU8
from msgspec import structs

from extender.explain.clusterdump import ClusterDump
from extender.groupcontent import wanted_status
from extender.planner.framework import decisions
from extender.planner.queuepositions import queue_positions
from extender.planner.state.feed import FEED
from muster.api.kubernetes.core import NODES, PODS
from muster.api.muster.reason import reason_of
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES


def told(world: ExplainWorld) -> None:
    """What the extender writes in a cycle is in the PodGroups."""
    session = world.plan()
    why = {each.gang.key: each for each in session.decided(decisions.Unschedulable)}
    places = queue_positions(session)
    for gang in session.snapshot.gangs:
        group = world.state.groups[gang.key]
        status = wanted_status(gang, enqueued=False, placed=False, waits=why.get(gang.key), now=world.now)
        if stands := places.get(gang.key):
            status = structs.replace(status, place=stands.place, expected_start=stands.expected_start)
        world.state.on_pod_group(group, structs.replace(group, status=status))


def own(world: ExplainWorld, *, queues: bool = False) -> ClusterDump:
    """What one may read who sees his namespace, and maybe queues."""
    dump, unread = world.dump(), {fed.resource.full_name for fed in FEED}
    seen = {POD_GROUPS, JOBS, PODS} | ({QUEUES} if queues else set())
    hidden = [fed.resource for fed in FEED if fed.resource not in seen]
    objects: dict[str, list[Any]] = {**dump.objects, **{each.full_name: [] for each in hidden}}
    return replace(dump, objects=objects, unread=frozenset(unread - ({QUEUES.full_name} if queues else set())))


def report(world: ExplainWorld, name: str, kind: str = "gang", *, queues: bool = False) -> Any:
    """The report of an object of his."""
    return report_of(own(world, queues=queues), name, kind)


def full() -> ExplainWorld:
    """A node that is taken for 90 s more, and two gangs that wait for it."""
    world = ExplainWorld().nodes(1)
    world.runs("old", 1, runtime="90s", since=world.now)
    for name in ("first", "second"):
        world.pod(world.gang(name, {"worker": (1, GPU8)}), "worker", 0, GPU8, gated=True)
        world.now += 1
    world.plan()
    told(world)
    return world


def test_he_is_told_the_reason_that_an_administrator_is_told() -> None:
    """Its sentence, its place, and when it is expected to start."""
    world = full()
    mine, theirs = report(world, "first", queues=True), world.gang_report("first")
    group = world.state.groups["ns/first"]
    assert mine.summary == f"it waits: {group.why_waiting}"
    assert mine.summary == theirs.summary.replace("Job ns/old is", "1 workload is")
    assert (mine.cause, mine.reason, mine.pod_sets) == (theirs.cause, theirs.reason, theirs.pod_sets)
    assert (mine.queue.name, mine.queue.place) == (theirs.queue.name, theirs.queue.place) == ("default", 1)
    assert mine.expected_start == group.status.expected_start != ""
    assert not mine.whole
    assert not mine.relief


def test_lines_have_the_place_and_nothing_that_is_not_known() -> None:
    """No placement and no node, as these may not be read; of how many it is the second the Queue says."""
    world = full()
    lines = by_label(report(world, "second"), world.now)
    assert (lines["queue"], lines["has"]) == ("default, place 2 in it", "worker: 1 behind the gate")
    assert {"placement", "nodes", "would help"}.isdisjoint(lines)
    expected = by_label(report(world, "first"), world.now)["expected"]
    assert expected == f"to start at {world.state.groups['ns/first'].status.expected_start}"
    world.change(next(each for each in own(world, queues=True).objects_of(QUEUES)), status={"waiting": 2})
    assert by_label(report(world, "second", queues=True), world.now)["queue"] == "default (Open), place 2 of 2 in it"


def test_what_runs_is_not_lost_only_as_its_node_may_not_be_read() -> None:
    """With nodes that may be read, one that is gone is told."""
    world = full()
    mine = report(world, "old")
    assert (mine.cause, mine.nodes) == ("running", ["worker: node-0"])
    dump = own(world)
    dump.unread -= {NODES.full_name}
    assert report_of(dump, "old").cause == "members-lost"


@pytest.mark.parametrize(("pod", "cause"), [("second-worker-0", "gated"), ("old-worker-0", "running")])
def test_a_pod_is_explained_with_its_gang(pod: str, cause: str) -> None:
    """By its own fields."""
    mine = report(full(), pod, "pod")
    assert (mine.cause, mine.gang.whole) == (cause, False)


def test_a_gang_of_which_nothing_was_said_yet_is_not_called_overlooked() -> None:
    """A moment after it was made; once it was placed it starts."""
    world = ExplainWorld().nodes(1)
    key = world.gang("new", {"worker": (1, GPU8)})
    assert "has not reported the gang's state yet" in report(world, "new").summary
    world.pod(key, "worker", 0, GPU8, gated=True)
    for placed in (False, True):
        view = world.view(key)
        waits = None if placed else decisions.Unschedulable(view, "X", reason_of("x"))
        status = wanted_status(view, enqueued=False, placed=placed, waits=waits, now=0.0)
        group = world.state.groups[key]
        world.state.on_pod_group(group, structs.replace(group, status=status))
    assert report(world, "new").cause == "starting"


def test_the_data_say_that_they_are_not_all() -> None:
    """For programs."""
    assert not msgspec.json.decode(msgspec.json.encode(report(full(), "first")))["whole"]
