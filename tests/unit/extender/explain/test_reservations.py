"""A gang that waits for room is told what is reserved for it; one that may not use that, for whom."""

import msgspec
from explain_world import ExplainWorld, by_label
from extender_world import GPU8

from extender.clusterstatus import first_refusals
from extender.explain.report import GangReport
from extender.explain.text import lines_of
from extender.planner.framework import decisions
from muster.api.kubernetes.meta import format_time


def reserved() -> ExplainWorld:
    """Two of four nodes are taken for 100 s more; `big` wants all, `long` one."""
    world = ExplainWorld().nodes(4)
    world.runs("old", 2, runtime="100s", since=world.now)
    world.gang("big", {"worker": (4, GPU8)})
    world.now += 1
    world.gang("long", {"worker": (1, GPU8)})
    world.plan()
    return world


def test_the_head_is_told_which_nodes_are_kept_for_it_and_when_it_is_expected_to_start() -> None:
    """In its summary, and where its placement stands: that is written for all to read, and names nobody."""
    world = reserved()
    report = world.gang_report("big")
    when = format_time(world.now + 99)
    sentence = (
        f"reserved: 4 nodes, node-0, node-1, node-2 and 1 more, expected at {when}, because Job ns/old is expected to "
        "have ended there; only gangs of its own queue must leave these nodes free, as it waits for pods of that queue"
    )
    assert report.cause == "no-room"
    assert report.summary.endswith(sentence)
    lines = by_label(report, world.now)
    told = sentence.replace("Job ns/old", "1 workload").replace(f"at {when}", "about 08:01 UTC (in 99 s)")
    assert lines["placement"] == f"none yet; {told}"
    assert lines["reserved for it"] == "worker: node-0, node-1, node-2, node-3"
    served = msgspec.json.decode(msgspec.json.encode(report), type=GangReport)
    assert list(lines_of(served, world.now)) == list(lines_of(report, world.now)), "as `--server` shows it"


def test_what_the_extender_writes_names_nobody_else() -> None:
    """Neither to a gang nor of a queue: its readers may not see the namespace of the other."""
    session = reserved().plan()
    told = {each.gang.key: each.message for each in session.decided(decisions.Unschedulable)}
    assert "a gang of queue default" in told["ns/long"]
    assert not [message for message in told.values() if "ns/" in message]
    assert first_refusals(session) == {"default": "the first gang of the queue waits: NotEnoughResources"}


def test_who_is_held_back_is_told_by_whose_reservation_and_where() -> None:
    """The nodes with room that are kept are a cause of their own."""
    world = reserved()
    report = world.gang_report("long")
    expected = f"the reservation of Job ns/big on node-2, node-3, expected at {format_time(world.now + 99)}"
    assert report.summary.endswith(f"the gang would run into {expected}")
    causes = {cause.words: cause.nodes for cause in report.shortage.causes}
    assert causes == {"too little nvidia.com/gpu": 2, "reserved for Job ns/big": 2}


def test_a_gang_in_a_strict_queue_is_told_who_goes_first() -> None:
    """It would fit."""
    report = reserved().queue("default", reservations="strict").gang_report("long")
    assert report.cause == "strict-order"
    assert "Job ns/big before it waits for room" in report.summary
    assert [relief.kind for relief in report.relief] == ["wait"]
