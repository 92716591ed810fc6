"""Every page as HTML, from the request to the answer."""

import re
from collections import Counter

import pytest
from web_world import Pages, cluster, gang

from history.model import Scope
from web.view import Caller

PATHS = (
    *("/queues", "/gangs", "/gangs?state=Failed", "/gangs/mine/runs", "/gangs/mine/waits", "/gangs/mine/waits/explain"),
    *("/topology", "/whatif"),
)
ADA = Caller(name="ada", scope=Scope(frozenset({"mine"})), nodes=False, queues=False)
BOB = Caller(name="bob", scope=Scope(frozenset({"mine"})))
NOBODY = Caller(name="nobody", scope=Scope(frozenset()), nodes=False, queues=False)


@pytest.fixture
def pages() -> Pages:
    """Three nodes; a gang that runs and one that waits."""
    pages = Pages({"user": Caller(name="root"), "ada": ADA, "bob": BOB, "nobody": NOBODY})
    cluster(pages, ("node-0", "node-1", "node-2"))
    gang(pages, "mine", "runs", ["node-0", "node-1"])
    gang(pages, "mine", "waits")
    return pages


@pytest.mark.parametrize("user", ["user", "ada", "bob"])
@pytest.mark.parametrize("path", PATHS)
def test_a_page_is_answered(pages: Pages, path: str, user: str) -> None:
    """Whoever may see something: with one heading of the first rank, and without style or script of its own."""
    answer = pages.get(path, user)
    assert answer.status == 200, answer.text
    assert answer.text.count("<h1>") == 1
    assert " style=" not in answer.text
    assert "<script>" not in answer.text


@pytest.mark.parametrize(("path", "words"), [
    ("/queues", "There is no queue that you may see"),
    ("/gangs", "There is no gang that you may see"),
    ("/topology", "There is no node that you may see"),
])  # fmt: skip
def test_who_sees_nothing_is_told_what_to_do(pages: Pages, path: str, words: str) -> None:
    """An empty page is no answer."""
    assert words in pages.get(path, "nobody").text


@pytest.mark.parametrize("path", ["/gangs/theirs/runs", "/gangs/mine/nothing", "/gangs/mine/runs/logs/99"])
def test_what_is_not_there_is_404(pages: Pages, path: str) -> None:
    """Whoever asks."""
    assert pages.get(path, "ada").status == 404


def test_what_somebody_writes_is_text(pages: Pages) -> None:
    """A filter that is none is shown as it is, and is no HTML."""
    text = pages.get("/gangs?queue=%3Cscript%3Ealert(1)%3C/script%3E").text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_no_two_elements_of_a_page_have_one_id() -> None:
    """Not in a list of several parts either, whose way on stands above and below it."""
    pages = Pages({"user": Caller(name="root")})
    cluster(pages, ("node-0",), [f"q{number}" for number in range(150)])
    for number in range(450):
        gang(pages, "mine", f"gang-{number}")
    for path in ("/queues", "/queues?page=2", "/gangs?page=2", "/gangs/mine/gang-0"):
        found = Counter(re.findall(r'\sid="([^"]*)"', pages.get(path).text))
        assert [each for each, count in found.items() if count > 1] == []
        assert "main" in found
