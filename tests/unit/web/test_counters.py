"""What the page counts of its requests: pages by their paths, and nobody's name."""

import pytest
from prometheus_client import REGISTRY
from prometheus_client.exposition import generate_latest
from web_world import Pages

from web.app import ROUTES
from web.streams import Streams
from web.view import Caller


def count(page: str, status: int) -> float:
    """Answers so far."""
    return REGISTRY.get_sample_value("muster_web_requests_total", {"page": page, "status": str(status)}) or 0.0


def following() -> float:
    """Open streams."""
    return REGISTRY.get_sample_value("muster_web_streams") or 0.0


@pytest.mark.parametrize(("path", "who", "page", "status"), [
    ("/gangs", "user", "/gangs", 200),
    ("/gangs/hush/secret-run", "user", "/gangs/{namespace}/{name}", 404),
    ("/gangs/hush/secret-run", "nobody", "/gangs/{namespace}/{name}", 401),
    ("/static/nothing.css", "user", "/static", 404),
    ("/secret-place", "user", "none", 404),
])  # fmt: skip
def test_an_answer_is_counted_once_under_its_page(path: str, who: str, page: str, status: int) -> None:
    """Also one that says no."""
    pages = Pages({"user": Caller(name="secret-user")})
    before = count(page, status)
    took = REGISTRY.get_sample_value("muster_web_request_seconds_count", {"page": page}) or 0.0
    assert pages.get(path, who).status == status
    assert count(page, status) == before + 1
    assert REGISTRY.get_sample_value("muster_web_request_seconds_count", {"page": page}) == took + 1


def test_no_label_has_a_name_of_somebodys() -> None:
    """Of users, namespaces and gangs there is no end, and not all may know them."""
    pages = Pages({"user": Caller(name="secret-user")})
    for path in ("/gangs/secret-space/secret-run", "/secret-place?queue=secret-queue", "/history/secret-space/x"):
        pages.get(path)
    told = [line for line in generate_latest().decode().splitlines() if line.startswith("muster_web_")]
    assert any('page="/gangs/{namespace}/{name}"' in line for line in told)
    assert not [line for line in told if "secret" in line]


def test_every_page_begins_at_zero() -> None:
    """So that the first answer is an increase."""
    Pages({})
    for page in ROUTES:
        assert REGISTRY.get_sample_value("muster_web_requests_total", {"page": page.path, "status": "200"}) is not None


def test_open_streams_are_counted() -> None:
    """While they are open."""
    before = following()
    counted = Streams()
    with counted.counted("ada"), counted.counted("bob"):
        assert following() == before + 2
    assert following() == before
