"""What `muster explain` says of a gang that was told that it goes, and of the one that it goes for."""

from explain_world import ExplainWorld, report_of
from extender_world import GPU8

from extender.planner.reasons.placements import preempted
from muster.api import names
from muster.api.kubernetes.meta import format_time
from muster.api.muster.placement import NodeRun, Notice, Placement, PlacementSpec, PodSetPlacement, Victim


def told(world: ExplainWorld, **annotations: str) -> str:
    """A gang of one pod that has a notice of 300 s, for a gang that waits; returns the time of its end."""
    key = world.nodes(1).runs("low", 1)
    until = format_time(world.now + 300)
    given = {f"{names.DOMAIN}/{name.replace('_', '-')}": text for name, text in annotations.items()}
    pod = world.state.pod_objects["uid-low-worker-0"]
    meta = {**pod.metadata.annotations, names.EVICT_AT: until, **given}
    world.pod(key, "worker", 0, GPU8, node="node-0", phase="Running", annotations=meta)
    asker, why = world.view(world.gang("high", {"worker": (1, GPU8)})), preempted(10, "default")
    spec = PlacementSpec(
        pod_group_uid=asker.uid,
        deadline=format_time(world.now + 330),
        pod_sets=[PodSetPlacement(name="worker", runs=[NodeRun(node="node-0")], held=True)],
        victims=[Victim(name=pod.metadata.name, uid=pod.metadata.uid, gang="low")],
        victims_reason=str(why),
        victims_why=why,
        notices=[Notice(gang="low", told_at=format_time(world.now), evict_at=until)],
    )
    world.state.on_placement(None, Placement(metadata=world.meta("high"), spec=spec))
    return until


def test_a_victim_reads_for_whom_until_when_and_what_it_has_saved() -> None:
    """The other gang is of its namespace: it has a name."""
    world = ExplainWorld()
    saved = format_time(world.now - 60)
    until = told(world, checkpoint=f"step=1200,at={saved}")
    report = world.gang_report("low")
    assert report.cause == "running"
    assert report.summary.endswith(
        f"; the gang will be evicted at {until}, or as soon as it has answered: preempted by Job high of priority 10 "
        f"in queue default; the gang's last checkpoint was saved at {saved} (step 1200)"
    )


def test_who_may_not_see_the_other_gang_reads_until_when() -> None:
    """On the pods of their own; a checkpoint was not reported."""
    world = ExplainWorld()
    until = told(world)
    dump = world.dump()
    dump.objects["placements.muster.dev"] = []
    dump.unread = frozenset({"placements.muster.dev"})
    evicted = f"; the gang will be evicted at {until}, or as soon as it has answered"
    assert report_of(dump, "low").summary.endswith(f"{evicted}; the gang has reported no checkpoint")


def test_who_waits_reads_how_long_at_most() -> None:
    """Not longer than the last notice."""
    world = ExplainWorld()
    until = told(world)
    assert f"until 1 pod of Job ns/low has left them, which have until {until} to" in world.gang_report("high").summary
