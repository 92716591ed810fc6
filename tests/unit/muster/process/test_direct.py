"""What looks exactly as the API server sends it is answered without WSGI; whatever is odd is not."""

from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.process.direct import Post, Reply, post_of, response

USUAL = (
    b"POST /mutate/pod?timeout=10s HTTP/1.1\r\n"
    b"Host: muster-webhook.muster-system.svc\r\n"
    b"User-Agent: kube-apiserver-admission\r\n"
    b"Content-Length: 2\r\n"
    b"Accept: application/json, */*\r\n"
    b"Content-Type: application/json\r\n"
    b"Accept-Encoding: gzip\r\n"
    b"\r\n{}"
)


def test_as_the_api_server_sends_it() -> None:
    """Path, query and body; the case of header names says nothing."""
    assert post_of(USUAL) == Post("/mutate/pod", "timeout=10s", b"{}")
    assert post_of(USUAL.replace(b"Content-Type:", b"content-type:")) == Post("/mutate/pod", "timeout=10s", b"{}")
    assert post_of(USUAL.replace(b"?timeout=10s", b"")) == Post("/mutate/pod", "", b"{}")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"POST", b"GET"),
        (b"POST", b"post"),
        (b"HTTP/1.1", b"HTTP/1.0"),
        (b"/mutate/pod", b"http://x/mutate/pod"),
        (b"/mutate/pod", b"/mutate /pod"),
        (b"application/json\r\nAccept-E", b"application/json; charset=utf-8\r\nAccept-E"),
        (b"Content-Type: application/json", b"Content-Type: text/plain"),
        (b"Content-Type: application/json\r\n", b""),
        (b"Accept-Encoding: gzip", b"Content-Type: application/json"),
        (b"Accept-Encoding: gzip", b"Connection: close"),
        (b"Accept-Encoding: gzip", b"Expect: 100-continue"),
        (b"Accept-Encoding: gzip", b"TE: trailers"),
        (b"Accept-Encoding: gzip", b"Upgrade: h2c"),
        (b"Accept-Encoding: gzip", b"no header"),
        (b"Accept-Encoding: gzip", b" folded: line"),
        (b"Accept-Encoding: gzip", b"space : before"),
        (b"Accept-Encoding: gzip", b"null: \0"),
        (b"Accept-Encoding: gzip", "name: ü".encode()),
    ],
)
def test_what_is_odd_is_left_to_the_app(old: bytes, new: bytes) -> None:
    """It has answers for everything."""
    assert old in USUAL
    assert post_of(USUAL.replace(old, new)) is None


@given(st.binary())
def test_nothing_that_comes_is_a_failure(request: bytes) -> None:
    """Whatever it is."""
    assert post_of(request) is None or request.startswith(b"POST /")


@given(st.integers(0, len(USUAL)), st.binary(max_size=4))
def test_damage_is_noticed_or_harmless(at: int, damage: bytes) -> None:
    """No path comes out that did not go in."""
    found = post_of(USUAL[:at] + damage + USUAL[at:])
    assert found is None or found.path.isascii()


def test_an_answer_says_its_length_and_whether_it_is_the_last() -> None:
    """As HTTP/1.1 wants it."""
    reply = Reply(HTTPStatus.BAD_REQUEST, "text/plain; charset=utf-8", "zu kürzen\n".encode())
    head, _, body = response(reply, stays_open=True).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\nDate: ")
    assert b"\r\nContent-Length: 11" in head
    assert body == reply.body
    assert b"Connection" not in head
    assert b"\r\nConnection: close\r\n" in response(reply, stays_open=False)
