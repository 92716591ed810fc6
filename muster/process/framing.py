"""Where an HTTP/1.1 request ends in the bytes that a client has sent so far; what it says is read elsewhere.

A thread is given a request only once all of it is there. So its length must be known beforehand, by `Content-Length`:
bodies in chunks are refused, which neither the API server nor kube-scheduler sends.
"""

import re
from http import HTTPStatus

MAX_HEADER_BYTES = 64 * 1024
_END = b"\r\n\r\n"
_LENGTHS = re.compile(rb"\r\n(content-length|transfer-encoding)[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE)
_DIGITS = 18
"""More than a length can have that any limit allows; Python reads longer numbers in quadratic time."""


class RefusedRequest(Exception):  # noqa: N818 - it is an answer, not a failure
    """The request is not read to its end: what the client is told instead."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status

    def answer(self) -> bytes:
        """The response, after which the connection ends."""
        body = f"{self}\n".encode()
        head = (
            f"HTTP/1.1 {self.status.value} {self.status.phrase}\r\nContent-Type: text/plain; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + body


class Frame:
    """The request that begins a buffer; ask again as the buffer grows: nothing is looked at twice."""

    def __init__(self, most_body_bytes: int) -> None:
        self._most_body_bytes = most_body_bytes
        self._searched = 0
        self._length: int | None = None

    def length(self, received: bytearray) -> int | None:
        """Bytes of the request, header and body; None while some of them are missing. Raises RefusedRequest."""
        if self._length is None:
            end = received.find(_END, max(0, self._searched - len(_END) + 1))
            self._searched = len(received)
            if max(end, self._searched if end < 0 else 0) > MAX_HEADER_BYTES:
                why = f"the header is longer than {MAX_HEADER_BYTES} bytes"
                raise RefusedRequest(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, why)
            if end < 0:
                return None
            self._length = end + len(_END) + self._body_length(received, end + 2)
        return self._length if len(received) >= self._length else None

    def _body_length(self, received: bytearray, end: int) -> int:
        if received.count(b"\n", 0, end) != received.count(b"\r\n", 0, end):
            raise RefusedRequest(HTTPStatus.BAD_REQUEST, "a line of the header does not end with CR LF")
        found = [match.groups() for match in _LENGTHS.finditer(received, 0, end)]
        if any(name.lower() == b"transfer-encoding" for name, _ in found):
            raise RefusedRequest(HTTPStatus.LENGTH_REQUIRED, "send the body in one piece, with its Content-Length")
        if not found:
            return 0
        value = found[0][1].strip()
        if len(found) > 1 or not value.isdigit() or len(value) > _DIGITS:
            raise RefusedRequest(HTTPStatus.BAD_REQUEST, "Content-Length must be there once, and be a number")
        length = int(value)
        if length > self._most_body_bytes:
            why = f"the body has {length} bytes, and at most {self._most_body_bytes} are taken"
            raise RefusedRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why)
        return length
