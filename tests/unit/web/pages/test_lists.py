"""The pages of queues and gangs: filters, parts of a long list, and nothing outside the caller's scope."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from page_world import NOW, report, row
from web_world import JSON, Pages, cluster, group, job, pods

from extender.explain.queues import WaitingGang
from gangs.row import GangRow
from history.model import EVERYTHING, Scope
from muster.api.kubernetes.core import PODS
from muster.api.kubernetes.meta import format_time
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import NO_ROOM, POD_GROUPS
from muster.volcano.queuelimits import QueueLimits, UsageBudget
from web.view import Caller
from web.views.gangs import PAGE_ROWS, STATES, Filters, filters, gangs_view
from web.views.parts import ListPart
from web.views.queues import PAGE_QUEUES, WAITERS, queues_view

OURS = Scope(frozenset({"ours"}))


def titles(rows: list[GangRow], chosen: Filters) -> list[str]:
    """The gangs that are shown."""
    return [line.row.title for line in gangs_view(rows, EVERYTHING, chosen, NOW).lines]


def test_gangs_that_have_ended_are_left_out() -> None:
    """Unless they are asked for, by the switch or by their state."""
    rows = [row("a"), row("b", state="Completed")]
    assert titles(rows, Filters()) == ["Job a"]
    assert titles(rows, Filters(ended=True)) == ["Job a", "Job b"]
    assert titles(rows, Filters(state="Completed")) == ["Job b"]


def test_filters_go_together() -> None:
    """Each narrows what the others let through."""
    rows = [row("a"), row("b", queue="prod"), row("c", kind="TrainJob"), row("d", namespace="other")]
    assert titles(rows, Filters(queue="research", kind="Job", namespace="ours")) == ["Job a"]
    assert titles([row("a"), row("e", user="eve")], Filters(user="eve")) == ["Job e"]


def test_what_cannot_be_read_of_an_address_counts_as_not_set() -> None:
    """A page number of a thousand digits among it."""
    assert filters({"page": "9" * 1000}) == filters({"page": "-1"}) == filters({"page": "²"}) == Filters()
    found = filters({"queue": " research ", "ended": "on", "page": "3", "user": "eve"})
    assert found == Filters(queue="research", user="eve", ended=True, page=3)


def test_an_address_keeps_the_filters() -> None:
    """And reads back as them."""
    chosen = Filters(queue="a&b", state="Waiting", ended=True, page=2)
    assert chosen.address(page=3) == "/gangs?queue=a%26b&state=Waiting&ended=on&page=3"
    assert Filters().address() == "/gangs"


def test_a_long_list_comes_in_parts() -> None:
    """With the way on and back; a page beyond the last one is the last one."""
    rows = [row(f"job-{number:04d}") for number in range(2 * PAGE_ROWS + 1)]
    second, last = (gangs_view(rows, EVERYTHING, Filters(page=page), NOW) for page in (2, 99))
    assert second.part == ListPart(PAGE_ROWS + 1, PAGE_ROWS, len(rows), "/gangs", "/gangs?page=3")
    assert last.part == ListPart(2 * PAGE_ROWS + 1, 1, len(rows), "/gangs?page=2", "")
    assert [line.row.name for line in last.lines] == [rows[-1].name]


def test_a_start_is_told_with_what_it_is_reckoned_from() -> None:
    """A reservation has one time; declared run times one, past ones an interval, whose end may not be known."""
    at, later = format_time(NOW + 60), format_time(NOW + 600)
    known = {"earliest_start": at, "start_known_by": "past run times"}
    waiting = [
        row("reserved", state="Reserved", expected_start=at),
        row("between", state="Waiting", **known, latest_start=later),
        row("after", state="Waiting", **known),
        row("declared", state="Waiting", earliest_start=at, latest_start=at, start_known_by="declared run times"),
        row("runs", state="Running", expected_start=at, **known),
    ]
    shown = gangs_view(waiting, EVERYTHING, Filters(), NOW).lines
    told = [(each.expected and each.expected.away, each.latest and each.latest.away, each.known_by) for each in shown]
    assert told == [
        ("in 60s", None, ""),
        ("in 60s", "in 10m", "by past run times"),
        ("in 60s", None, "or later, by past run times"),
        ("in 60s", None, "by declared run times"),
        (None, None, ""),
    ]


def test_only_who_may_see_every_gang_is_told_a_start_that_is_reckoned_from_all() -> None:
    """A gang runs for ten minutes on all nodes, as it declares; another one waits for them."""
    pages = Pages({"root": Caller(name="root"), "ada": Caller(name="ada", scope=OURS)})
    cluster(pages)
    note = {"muster.dev/expected-runtime": "10m"}
    pages.put(JOBS, job("theirs", "runs"), job("ours", "waits"))
    pages.put(POD_GROUPS, _noted(group("theirs", "runs", phase="Running"), note))
    pages.put(PODS, *(_noted(pod, note) for pod in pods("theirs", "runs", ["node-0", "node-1"], gpus=8)))
    waits = {"type": "Unschedulable", "status": "True", "reason": NO_ROOM}
    pages.put(POD_GROUPS, group("ours", "waits", conditions=[waits]))
    pages.put(PODS, *pods("ours", "waits", ["", ""]))
    assert "by declared run times" in pages.get("/gangs", "root").text
    assert "by declared run times" in pages.get("/gangs/ours/waits", "root").text
    for page in ("/gangs", "/gangs/ours/waits"):
        answer = pages.get(page, "ada")
        assert answer.status == 200
        assert "run times" not in answer.text


def _noted(item: JSON, note: JSON) -> JSON:
    meta = item["metadata"]
    return {**item, "metadata": {**meta, "annotations": {**meta.get("annotations", {}), **note}}}


def test_gangs_of_one_workload_have_addresses_of_their_own() -> None:
    """A JobSet may have several."""
    rows = [row("set", gang="set-0"), row("set", gang="set-1"), row("alone")]
    lines = gangs_view(rows, EVERYTHING, Filters(), NOW).lines
    assert [line.address for line in lines] == ["/gangs/ours/set-0", "/gangs/ours/set-1", "/gangs/ours/alone"]


def test_a_queue_has_a_bar_for_each_resource() -> None:
    """GPUs first; pods are no resource that anybody counts."""
    view = queues_view([report(allocated={"cpu": 1, "memory": 1, "pods": 3, "amd.com/gpu": 1})], [], EVERYTHING, NOW)
    assert [bar.resource for bar in view.lines[0].bars] == ["amd.com/gpu", "nvidia.com/gpu", "cpu", "memory"]


def test_who_waits_is_named_in_order() -> None:
    """By priority, then by age; the planner's own words come first."""
    rows = [row("young"), row("old", created="2027-01-15T06:00:00Z"), row("urgent", priority=9)]
    told = WaitingGang("ours/old-group", "NoRoom", "no room for it", "Job ours/old")
    [line] = queues_view([report("research", told)], rows, EVERYTHING, NOW).lines
    assert [each.title for each in line.waiters] == ["Job urgent", "Job old", "Job young"]
    assert line.waiters[1].reason == "no room for it"


def test_many_who_wait_are_counted() -> None:
    """A link leads to all of them."""
    rows = [row(f"job-{number}") for number in range(WAITERS + 2)]
    [line] = queues_view([report()], rows, EVERYTHING, NOW).lines
    assert (len(line.waiters), line.more, line.gangs) == (WAITERS, 2, "/gangs?queue=research")


def test_a_thousand_queues_come_in_parts() -> None:
    """Each with a hundred."""
    view = queues_view([report(f"q{number}") for number in range(1000)], [], EVERYTHING, NOW, page=2)
    assert view.part == ListPart(PAGE_QUEUES + 1, PAGE_QUEUES, 1000, "/queues?page=1", "/queues?page=3")
    assert [line.name for line in view.lines] == [f"q{number}" for number in range(PAGE_QUEUES, 2 * PAGE_QUEUES)]


def test_a_budget_counts_the_queues_below() -> None:
    """It is marked once most of it is used, and says so where nobody has written down what is."""
    tree = [report("root", parent="", depth=0), report("team"), report("sub", parent="team", depth=2)]
    limits = {"team": QueueLimits(budgets=(UsageBudget("nvidia.com/gpu", "week", 100 * 3600 * 1000),), enforced=True)}
    used = {"team": {"nvidia.com/gpu": 40 * 3600 * 1000}, "sub": {"nvidia.com/gpu": 41 * 3600 * 1000}}
    view = queues_view(tree, [], EVERYTHING, NOW, limits=limits, used={"week": used})
    assert [[(each.words, each.full) for each in line.budgets] for line in view.lines] == [
        [],
        [("budget of 100 nvidia.com/gpu hours a week, beyond which gangs wait: 81% used", True)],
        [],
    ]
    [_, line, _] = queues_view(tree, [], EVERYTHING, NOW, limits=limits).lines
    assert "without a history" in line.budgets[0].words


NAMES = st.sampled_from(["ours", "theirs-a", "theirs-b"])


@given(
    spaces=st.lists(st.tuples(NAMES, st.sampled_from(STATES)), max_size=12),
    scope=st.frozensets(NAMES).map(Scope),
    ended=st.booleans(),
)
def test_no_list_names_what_is_outside_the_scope(
    spaces: list[tuple[str, str]],
    scope: Scope,
    ended: bool,  # noqa: FBT001 - hypothesis passes it by name
) -> None:
    """Not the gang, its namespace, its queue's name in a filter, its nodes, or its reason."""
    rows = [
        row(
            f"job-of-{space}-{number}",
            space,
            state,
            kind=f"KindOf{space}",
            queue=f"queue-of-{space}",
            nodes=[f"node-of-{space}"],
            reason=f"reason of {space}",
            message=f"reason of {space}",
        )
        for number, (space, state) in enumerate(spaces)
    ]
    waiting = [WaitingGang(f"{each.namespace}/{each.gang}", "NoRoom", each.reason, each.title) for each in rows]
    views = (
        gangs_view(rows, scope, Filters(ended=ended), NOW),
        queues_view([report("shared", *waiting)], [*rows, row("mine", queue="shared")], scope, NOW),
    )
    text = msgspec.json.encode(views).decode()
    for space in {space for space, _ in spaces}:
        assert scope.has(space) or space not in text
