"""The pages of the history and of usage."""

import csv
import io

import pytest
from histories import gang_of_one
from page_world import NOW
from web_world import Pages

from history.model import MEMORY, OutageRow, RowChanges, Scope
from history.store import HistoryStore
from history.usage import Seconds, UsageRow
from muster.api.names import BUDGET
from muster.api.volcano.scheduling import QUEUES
from web.view import Caller
from web.views.past import USAGE_ROWS, Period, period, usage_csv, usage_view

GPU = "nvidia.com/gpu"
HOUR_MS = 3_600_000
AT = round(NOW * 1000) - 10 * HOUR_MS


def changes(namespace: str, name: str) -> RowChanges:
    """A gang of one member that held eight GPUs for an hour."""
    found = gang_of_one(namespace, name, AT, HOUR_MS, text=f"{name} was submitted", user=f"user-of-{namespace}")
    for gang in found.gangs.values():
        gang.ended, gang.state = AT + HOUR_MS, "Completed"
    return found


@pytest.fixture
def pages() -> Pages:
    """Pages with a history of two namespaces."""
    store = HistoryStore.for_writing(MEMORY)
    for namespace in ("ours", "theirs"):
        store.write(changes(namespace, f"job-of-{namespace}"), {"seen-until": str(AT + HOUR_MS)})
    ada = Caller(name="ada", scope=Scope(frozenset({"ours"})), nodes=False, queues=False)
    pages = Pages({"user": Caller(name="root"), "ada": ada})
    pages.site.history = store
    pages.site.now = lambda: NOW
    return pages


def test_the_history_lists_what_has_ended(pages: Pages) -> None:
    """With how long it waited and ran."""
    text = pages.get("/history?days=1").text
    assert "Job job-of-ours" in text
    assert "Completed" in text
    assert ">8<" in text


def test_a_gang_of_the_history_has_a_story(pages: Pages) -> None:
    """At the address that the list leads to."""
    assert "job-of-ours was submitted" in pages.get("/history/ours/job-of-ours?uid=uid-ours-job-of-ours").text


@pytest.mark.parametrize("path", ["/history", "/usage?by=user&by=workload", "/usage.csv?by=namespace&by=workload"])
def test_who_sees_one_namespace_sees_the_past_of_that_alone(pages: Pages, path: str) -> None:
    """Neither names nor users nor nodes of others."""
    assert "ours" in pages.get(path, "ada").text
    assert "theirs" not in pages.get(path, "ada").text
    assert "theirs" in pages.get(path).text


@pytest.mark.parametrize(
    "path", ["/history/theirs/job-of-theirs", "/history/ours/nothing", "/history/ours/job-of-ours?uid=another"]
)
def test_what_may_not_be_seen_is_not_there(pages: Pages, path: str) -> None:
    """As what never was."""
    assert pages.get(path, "ada").status == 404


@pytest.mark.parametrize("path", ["/history", "/history/ours/job", "/usage", "/usage.csv"])
def test_pages_without_a_history_say_how_to_have_one(path: str) -> None:
    """They are no errors."""
    answer = Pages({"user": Caller(name="root")}).get(path)
    assert (answer.status, "no history to read" in answer.text) == (200, True)


def test_a_gang_whose_objects_are_gone_leads_to_its_story(pages: Pages) -> None:
    """For who may see it; for others it is not there, as one that never was."""
    answer = pages.get("/gangs/ours/job-of-ours")
    assert (answer.status, answer.headers["location"]) == (303, "/history/ours/job-of-ours")
    assert pages.get("/gangs/theirs/job-of-theirs").status == 303
    assert pages.get("/gangs/theirs/job-of-theirs", "ada").status == 404


def test_a_budget_is_held_against_the_history(pages: Pages) -> None:
    """On the page of queues, of all namespaces: a queue's budget is one."""
    said = {"annotations": {BUDGET: "nvidia.com/gpu=20h/month"}}
    queue = {"name": "research", "uid": "research", "resourceVersion": "1", **said}
    pages.put(QUEUES, {"metadata": queue, "spec": {"weight": 1}})
    assert "budget of 20 nvidia.com/gpu hours a month: 80% used" in pages.get("/queues").text


def test_a_gap_is_told(pages: Pages) -> None:
    """Whoever reads a sum must know what is not in it."""
    gap = OutageRow(since=AT, until=AT + HOUR_MS, text="the recorder was away")
    assert pages.site.history is not None
    pages.site.history.write(RowChanges(gaps=[gap]), {})
    assert "the recorder was away" in pages.get("/history").text


@pytest.mark.parametrize("path", ["/history", "/usage", "/queues"])
def test_a_recorder_that_is_gone_is_told(pages: Pages, path: str) -> None:
    """Since when; no longer once it has looked, and of queues where one has a budget."""
    assert pages.site.history is not None
    queue = {"name": "research", "uid": "research", "resourceVersion": "1"}
    pages.put(QUEUES, {"metadata": queue | {"annotations": {BUDGET: "nvidia.com/gpu=20h/day"}}, "spec": {}})
    gone = "The recorder of the history has not read the cluster since"
    assert f"{gone} 2027-01-14 23:00 UTC (9h ago)" in pages.get(path).text
    pages.site.history.write(RowChanges(), {"seen-until": str(round(NOW * 1000) - 5000)})
    assert gone not in pages.get(path).text


def test_what_an_address_asks_for() -> None:
    """Keys in their own order, whatever else stands there."""
    assert period({"days": "30", "queue": " a "}, ["user", "queue", "color"]) == Period(30, "a", "", ("queue", "user"))
    assert period({"days": "10000"}) == Period()


def test_usage_is_told_in_hours() -> None:
    """Of whole GPUs and CPUs, and of GiB."""
    memory = Seconds(0, 3600 * 2**30, 0, 0)
    amounts = {GPU: Seconds(7200, 3600, 1800, 0), "memory": memory, "cpu": Seconds(36, 36, 36, 0)}
    lines = usage_view([UsageRow(("research",), amounts)], Period(by=("queue",)), NOW, recorded_until=NOW).lines
    assert [(each.resource, each.asked, each.held, each.used, each.share) for each in lines] == [
        ("nvidia.com/gpu h", "2", "1", "0.5", 500),
        ("cpu h", "0.01", "0.01", "0.01", 1000),
        ("memory GiB h", "0", "1", "0", 0),
    ]


def test_a_long_table_leaves_rows_to_the_csv() -> None:
    """Which has all of them."""
    rows = [UsageRow((f"q{number}",), {GPU: Seconds(1, 1, 1, 0)}) for number in range(USAGE_ROWS + 4)]
    assert usage_view(rows, Period(), NOW, recorded_until=NOW).more == 4
    assert len(usage_csv(rows, ("queue",)).splitlines()) == len(rows) + 1


def test_a_name_cannot_become_a_formula() -> None:
    """In a spreadsheet that opens the CSV."""
    text = usage_csv([UsageRow(('=HYPERLINK("x")', "a,b"), {GPU: Seconds(3600, 0, 0, 0)})], ("user", "queue"))
    assert list(csv.reader(io.StringIO(text)))[1] == [
        '\'=HYPERLINK("x")',
        "a,b",
        GPU,
        "h",
        "1.000000",
        "0.000000",
        "0.000000",
        "0.000000",
    ]
