"""Whence requests may come, and what a browser may do with an answer."""

import pytest
from starlette.datastructures import Headers
from web_world import HERE, Pages, cluster

from web.app import refusal
from web.view import Caller


@pytest.fixture
def pages() -> Pages:
    """A server for one user."""
    made = Pages({"user": Caller(name="ada")})
    cluster(made)
    return made


@pytest.mark.parametrize("path", ["/queues", "/no-such", "/static/muster.css", "/live?page=queues", "/api/explain/a/b"])
@pytest.mark.parametrize("who", ["user", "nobody"])
def test_every_answer_forbids_what_is_not_of_this_server(pages: Pages, path: str, who: str) -> None:
    """Pages, files, data, streams and errors: no script or style of elsewhere, and no frame around them."""
    headers = pages.get(path, who).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    if not path.startswith("/static/"):
        assert headers["cache-control"] == "no-store"


def test_no_script_or_style_stands_in_a_page(pages: Pages) -> None:
    """What is loaded has the hash of what was shipped."""
    text = pages.get("/queues").text
    assert "<style" not in text
    assert " style=" not in text
    assert text.count("<script") == text.count('<script src="/static/')
    assert text.count("integrity=") == text.count("<script") + text.count("<link")


@pytest.mark.parametrize(("headers", "allowed"), [
    ({"sec-fetch-site": "same-origin"}, True),
    ({"sec-fetch-site": "same-site"}, False),
    ({"sec-fetch-site": "cross-site"}, False),
    ({"sec-fetch-site": "none"}, False),
    ({"origin": f"https://{HERE}"}, True),
    ({"origin": "https://elsewhere.example"}, False),
    ({"origin": "null"}, False),
    ({}, False),
    ({"sec-fetch-site": "cross-site", "origin": f"https://{HERE}"}, False),
    ({"authorization": "Bearer x", "sec-fetch-site": "cross-site"}, True),
])  # fmt: skip
def test_a_form_comes_from_a_page_of_this_server(headers: dict[str, str], allowed: bool) -> None:  # noqa: FBT001
    """A page of another site cannot have a browser send one; who sends a token of his own is no such browser."""
    given = Headers({"host": HERE, **headers})
    assert (refusal("POST", given, on_loopback=False) == "") is allowed
    assert refusal("GET", given, on_loopback=False) == ""


@pytest.mark.parametrize(("host", "allowed"), [
    *((name, True) for name in ("localhost:8400", "127.0.0.1:8400", "[::1]:8400", "LOCALHOST")),
    *((name, False) for name in ("evil.example:8400", "localhost.evil.example", "", "[::1")),
])  # fmt: skip
def test_on_loopback_only_names_of_this_machine_are_answered(host: str, allowed: bool) -> None:  # noqa: FBT001
    """Another name is one that a site has given to this machine, so that its page may read ours."""
    assert (refusal("GET", Headers({"host": host}), on_loopback=True) == "") is allowed


def test_names_of_tenants_are_text(pages: Pages) -> None:
    """Whatever stands in a message of the URL or of an error, it is shown and not run."""
    answer = pages.get("/api/explain/x/y?kind=<script>")
    assert (answer.status, answer.headers["content-type"]) == (400, "application/json")
    assert "<script>alert" not in pages.get("/<script>alert(1)</script>").text


def test_a_form_has_a_limit(pages: Pages) -> None:
    """One that is longer, or has more fields than any page asks for, is refused."""
    path = "/act/delete/jobs/a/b"
    assert pages.post(path, "uid=" + "x" * 300_000).status == 413
    assert pages.post(path, "&".join(f"f{number}=" for number in range(100))).status == 400
