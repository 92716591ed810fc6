"""The history and usage as JSON: for whom the caller may see, and with what is wrong in a query."""

import msgspec
import pytest
from histories import GPU, gang_of_one
from web_world import Pages

from history.model import EVERYTHING, MEMORY, OutageRow, Scope
from history.store import HistoryStore
from web.view import Caller


@pytest.fixture
def pages() -> Pages:
    """A server with a history of two namespaces; ada may see one, root both."""
    store = HistoryStore.for_writing(MEMORY)
    for namespace in ("mine", "zzhidden"):
        changes = gang_of_one(namespace, "train", 0, 10_000, bound=1_000, text=f"to {namespace}", gpus=1)
        changes.gaps = [OutageRow(since=1, until=2, text="the recorder did not run")]
        store.write(changes, {"seen-until": "12000"})
    one = Pages({"ada": Caller(scope=Scope(frozenset({"mine"}))), "root": Caller(scope=EVERYTHING)})
    one.site.history = store
    return one


@pytest.mark.parametrize("url", [
    "/api/history", "/api/history?namespace=zzhidden", "/api/history/zzhidden/train", "/api/history/mine/train",
    "/api/usage?by=namespace,workload", "/api/usage?by=queue&namespace=zzhidden",
])  # fmt: skip
def test_others_are_in_no_answer(pages: Pages, url: str) -> None:
    """Whatever is asked for, nothing of another namespace is in it."""
    answer = pages.get(url, "ada")
    assert (answer.status, "zzhidden" in answer.text) == (200, False)


def test_numbers_of_others_are_in_no_sum(pages: Pages) -> None:
    """Usage counts what the caller may see, and no more."""
    for who, held in (("ada", 10.0), ("root", 20.0)):
        (row,) = msgspec.json.decode(pages.get("/api/usage?by=queue", who).text)
        assert row["resources"][GPU]["held"] == held
    assert msgspec.json.decode(pages.get("/api/usage?by=queue&namespace=zzhidden", "ada").text) == []


def test_gangs_and_gaps_are_told(pages: Pages) -> None:
    """The list has gangs, and the times for which nothing was recorded."""
    answer = msgspec.json.decode(pages.get("/api/history", "root").text)
    assert {each["namespace"] for each in answer["gangs"]} == {"mine", "zzhidden"}
    assert answer["gaps"] == [{"since": 0.001, "until": 0.002, "text": "the recorder did not run"}]


@pytest.mark.parametrize("query", ["history?since=yesterday", "usage?by=team", "history?limit=x", "usage?since="])
def test_a_query_that_cannot_be_read_is_refused(pages: Pages, query: str) -> None:
    """It says what is wrong with it."""
    answer = pages.get(f"/api/{query}", "ada")
    assert answer.status == 400
    assert msgspec.json.decode(answer.text)["message"]


def test_without_a_history_it_says_how_to_get_one(pages: Pages) -> None:
    """No store is no error of the server's."""
    pages.site.history = None
    answer = pages.get("/api/history", "ada")
    assert (answer.status, "history.enabled" in answer.text) == (404, True)
