"""Where queues stand, and what would be if they were others."""

import pytest
from explain_world import ExplainWorld
from extender_world import slots
from page_world import report

from extender.explain.changes import DumpChange, changed
from extender.explain.clusterdump import load, save
from extender.explain.gang import GangExplainer
from extender.explain.queues import changed_shares, queue_reports, queue_reports_of
from extender.explain.whatif import WhatIf
from extender.planner import reasons
from muster.api import names
from muster.api.muster.usage import PublishedUsage, QueueUsage, period_of
from muster.api.volcano.scheduling import Queue, QueueStatus
from musterctl.output.report import bar, queue_lines, top_lines

GPU = {"nvidia.com/gpu": 1}
GPU8 = {"nvidia.com/gpu": 8}


def world_of_two() -> ExplainWorld:
    """One node of 8 GPUs, used by one of two queues, which keeps what it has; the other one wants some."""
    world = ExplainWorld().nodes(1).queue("a", weight=1, reclaimable=False)
    world.queue("b", weight=3, capability={"nvidia.com/gpu": 7})
    key = world.gang("running", {"worker": (8, GPU)}, queue="a", phase="Running")
    world.members(key, 8, GPU, node="node-0", phase="Running")
    world.gang("late", {"worker": (8, GPU)}, queue="b")
    world.gang("small", {"worker": (6, GPU)}, queue="b")
    return world


def test_a_report_says_what_a_queue_has_is_due_and_why_it_waits() -> None:
    """With the queues below it, and the reason of the gang that is next."""
    reports = {report.queue: report for report in queue_reports(WhatIf(world_of_two().dump()))}
    gpu = "nvidia.com/gpu"
    assert reports["a"].allocated[gpu] == 8000
    assert (reports["a"].fair_share[gpu], reports["b"].fair_share[gpu]) == (2000, 6000)
    assert (reports["root"].allocated[gpu], reports["b"].waiting) == (8000, 2)
    assert {gang.reason for gang in reports["b"].first} == {"QueueOverCapability", "NotEnoughResources"}
    lines = list(queue_lines(reports["b"]))
    assert lines[0] == "Queue b, below root"
    assert any("queue b may use 7 nvidia.com/gpu (capability)" in line for line in lines)


def test_gangs_are_called_as_their_owners_are() -> None:
    """Not by their PodGroups, whose names nobody has written."""
    [report] = [each for each in queue_reports(WhatIf(world_of_two().dump())) if each.queue == "b"]
    assert [line.split(":")[0].strip() for line in queue_lines(report)][-2:] == ["Job ns/late", "Job ns/small"]


def test_the_top_is_a_line_per_queue() -> None:
    """Those below are indented, and the bar is of what they are due."""
    lines = list(top_lines(queue_reports(WhatIf(world_of_two().dump())), "nvidia.com/gpu"))
    assert [line.split()[0] for line in lines] == ["QUEUE", "root", "a", "b", "default"]
    assert "#################### 400%" in lines[2]
    assert bar(0.5) == "##########..........  50%"


@pytest.mark.parametrize(("cpu", "resource"), [(500, "nvidia.com/gpu"), (502, "nvidia.com/gpu"), (900, "cpu")])
def test_the_scarcest_resource_is_shown(cpu: int, resource: str) -> None:
    """By the used part of what the queue is due; GPUs if two have the same percentage."""
    fair = {"cpu": 1000, "nvidia.com/gpu": 8000}
    used = report("a", allocated={"cpu": cpu, "nvidia.com/gpu": 4000}, fair_share=fair, deserved={"cpu": 1000})
    assert list(top_lines([used], ""))[1].split()[1] == resource


def test_limits_and_budgets_are_told() -> None:
    """Whether a window is open, and how much of a budget is used; a file of the dump keeps the usage."""
    world = world_of_two()
    world.queue(
        "a", weight=1,
        **{
            "max-per-user": "nvidia.com/gpu=16,pods=100",
            "max-by-model": "H100=8",
            "limit-windows": "Fri 08:00-09:00 UTC nvidia.com/gpu=4;Sat 00:00-24:00 pods=0",
            "budget": "nvidia.com/gpu=100h/month",
        },
    )  # fmt: skip
    dump = world.dump()
    month = period_of("month", dump.taken_at)[0]
    dump.usage = PublishedUsage(dump.taken_at, {"a": QueueUsage(month, {"nvidia.com/gpu": 91 * 3600.0})})
    reports = queue_reports(WhatIf(load(save(dump))))
    [report] = [each for each in reports if each.queue == "a"]
    assert list(queue_lines(report))[-6:-1] == [
        "  one user may use 16 nvidia.com/gpu, 100 pods",
        "  the queue may use 8 of model H100",
        "  Fri 08:00-09:00 UTC: the queue may use 4 nvidia.com/gpu (open until 2027-01-15T09:00:00Z)",
        "  Sat 00:00-24:00 UTC: the queue may use 0 pods (not open now)",
        "  budget of nvidia.com/gpu per month: 91% used",
    ]
    [line] = [each for each in top_lines(reports, "") if each.split()[0] == "a"]
    assert line.endswith("0 (91% of the budget of nvidia.com/gpu per month used)")


def test_the_top_has_what_empty_queues_deserve_and_who_waits_below() -> None:
    """An empty queue is shown by what it deserves, else by the main resource of the cluster, and not by its pods."""
    world = world_of_two().queue("empty", deserved={"nvidia.com/gpu": 4, "cpu": 8})
    world.queue("slow", deserved={"cpu": 8}).queue("below", parent="b")
    world.gang("deep", {"worker": (8, GPU)}, queue="below")
    rows = {line.split()[0]: line.split() for line in list(top_lines(queue_reports(WhatIf(world.dump())), ""))}
    assert rows["empty"][1:5] == ["nvidia.com/gpu", "0", "0", "4"]
    assert (rows["slow"][1:5], rows["default"][1:3]) == (["cpu", "0", "0", "8"], ["nvidia.com/gpu", "0"])
    assert [rows[name][-1] for name in ("root", "b", "below", "a")] == ["3", "3", "1", "0"]


def test_a_change_of_a_queue_is_simulated() -> None:
    """And what becomes of the fair shares is told."""
    dump = world_of_two().dump()
    other = changed(dump, DumpChange("ns", queues=["a.weight=3", "b.deserved.nvidia.com/gpu=6"]))
    lines = list(changed_shares(queue_reports(WhatIf(dump)), queue_reports(WhatIf(other))))
    assert "queue b: fair share 6 -> 7 nvidia.com/gpu" in lines


def test_a_queue_says_by_which_rule_it_does_not_get_what_it_deserves() -> None:
    """The other one has more, and is not reclaimable."""
    world = ExplainWorld().nodes(2).queue("keeps", deserved={"nvidia.com/gpu": 8}, reclaimable=False)
    world.queue("waits", deserved={"nvidia.com/gpu": 8})
    world.runs("runs", 2, GPU8, queue="keeps")
    world.gang("asks", {"worker": (1, GPU8)}, queue="waits")
    [report] = [each for each in queue_reports(WhatIf(world.dump())) if each.queue == "waits"]
    assert [each.message.endswith(str(reasons.queues.OF_OTHERS)) for each in report.first] == [True]


def test_what_is_kept_as_spares_is_told() -> None:
    """In the queue of the gang and in those above it."""
    world = ExplainWorld().nodes(3)
    key = world.gang("running", {"worker": (1, GPU8)}, phase="Running")
    world.change(world.state.groups[key], annotations={names.SPARES: "1"})
    world.plan()
    [node] = slots(world.state.placements[key])["worker"]
    world.pod(key, "worker", 0, GPU8, node=node, phase="Running")
    reports = queue_reports(WhatIf(world.dump()))
    assert {each.queue: each.spares.get("nvidia.com/gpu") for each in reports} == {"root": 8_000, "default": 8_000}
    assert [line.endswith("(8 kept as spares)") for line in top_lines(reports, "nvidia.com/gpu")] == [False, True, True]
    assert "  the used amounts include spares of gangs: 8 nvidia.com/gpu" in queue_lines(reports[-1])
    status = QueueStatus(allocated=GPU, spares=GPU8)
    (told,) = queue_reports_of([Queue(metadata=world.meta("default"), status=status)])
    assert (told.allocated, told.spares) == ({"nvidia.com/gpu": 9_000}, {"nvidia.com/gpu": 8_000})
    what_if = WhatIf(world.dump())
    gang = what_if.state.gang(key)
    [spare] = [each.node for each in world.state.placements[key].spec.spares]
    assert f"1 spare slot is kept for lost members on {spare}" in GangExplainer(what_if).explain(gang).details
