"""Where a request ends does not depend on the pieces in which it comes."""

from http import HTTPStatus
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.process.framing import MAX_HEADER_BYTES, Frame, RefusedRequest


def length(*pieces: bytes, most: int = 100) -> int | HTTPStatus | None:
    """What is known after the last piece, or why the request is refused."""
    frame, received, result = Frame(most), bytearray(), None
    for piece in pieces:
        received += piece
        try:
            result = frame.length(received)
        except RefusedRequest as refused:
            return refused.status
    return result


BODY = b"POST / HTTP/1.1\r\nHost: a\r\nCONTENT-LENGTH :  5 \r\nA: b\r\n\r\nhello"


@given(st.lists(st.integers(0, len(BODY) + 4), max_size=8))
def test_pieces(cuts: list[int]) -> None:
    """Its length, without the four bytes that follow."""
    whole, ends = BODY + b"next", [0, *sorted(cuts), len(BODY) + 4]
    assert length(*(whole[a:b] for a, b in pairwise(ends))) == len(BODY)
    assert length(BODY[:-1]) is None


@given(st.binary(max_size=300))
def test_any_bytes_have_a_length_or_are_refused(data: bytes) -> None:
    """Nothing else is raised, and no length is beyond what has come."""
    known = length(*(data[at : at + 1] for at in range(len(data))), data[:0])
    assert known is None or isinstance(known, HTTPStatus) or known <= len(data)


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (b"Transfer-Encoding: chunked", HTTPStatus.LENGTH_REQUIRED),
        (b"Content-Length: 1\r\ncontent-length: 1", HTTPStatus.BAD_REQUEST),
        (b"Content-Length: -1", HTTPStatus.BAD_REQUEST),
        (b"Content-Length: " + b"9" * 5000, HTTPStatus.BAD_REQUEST),
        (b"A: b\nContent-Length: 1", HTTPStatus.BAD_REQUEST),
        (b"Content-Length: 101", HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
        (b"A: " + b"b" * MAX_HEADER_BYTES, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
    ],
)
def test_refused(lines: bytes, status: HTTPStatus) -> None:
    """Before the body has come."""
    assert length(b"POST / HTTP/1.1\r\n" + lines + b"\r\n\r\n") is status


def test_a_request_without_a_body_ends_with_its_header() -> None:
    """And one that says so."""
    assert length(b"GET / HTTP/1.1\r\n\r\nrest") == 18
    assert length(b"GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n") == 37
