"""Requests that are plainly a POST of JSON, answered without WSGI.

By the time a thread is given a request, its bytes are there as a whole and its length has been checked (see
`muster.process.framing`). To make a WSGI environment of them, and an answer of what a WSGI app says, costs as much CPU
as an admission review itself. So what looks exactly as the API server sends it is read here; whatever is odd in any way
goes through gunicorn and the app, and gets their answers.
"""

import re
from collections.abc import Callable
from http import HTTPStatus
from typing import NamedTuple

from gunicorn.util import http_date

CONTENT_TYPE = "application/json"
_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_HEAD = re.compile(
    rb"POST (/[!-~]*) HTTP/1\.1\r\n((?:" + _TOKEN + rb":[\t\x20-\x7e]*\r\n)+)\r\n",
)
_ODD = re.compile(rb"^(?:connection|expect|transfer-encoding|upgrade|te|trailer)[ \t]*:", re.IGNORECASE | re.MULTILINE)
_TYPE = re.compile(rb"^content-type[ \t]*:[ \t]*([^\r\n]*?)[ \t]*\r$", re.IGNORECASE | re.MULTILINE)


class Post(NamedTuple):
    """A request; path and query as they stand in the first line."""

    path: str
    query: str
    body: bytes


class Reply(NamedTuple):
    """What the client gets."""

    status: HTTPStatus
    content_type: str
    body: bytes


Direct = Callable[[Post], Reply | None]
"""Answers a request; None leaves it to the app."""


def post_of(request: bytes) -> Post | None:
    """The request, if it is a plain POST of JSON; `request` has all of its bytes and no others."""
    head = _HEAD.match(request)
    if head is None or _ODD.search(head[2]) or _TYPE.findall(head[2]) != [CONTENT_TYPE.encode()]:
        return None
    path, _, query = head[1].decode().partition("?")
    return Post(path, query, request[head.end() :])


def response(reply: Reply, *, stays_open: bool) -> bytes:
    """The bytes of an answer."""
    ends = "" if stays_open else "Connection: close\r\n"
    head = (
        f"HTTP/1.1 {reply.status.value} {reply.status.phrase}\r\nDate: {http_date()}\r\n{ends}"
        f"Content-Type: {reply.content_type}\r\nContent-Length: {len(reply.body)}\r\n\r\n"
    )
    return head.encode() + reply.body
