"""One watch request: bytes from the API server → lines → typed events."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Generic, TypeVar, cast

import msgspec
import urllib3

from muster.api.base import Resource
from muster.api.meta import Object
from muster.kube.codec import decoder, leave_out
from muster.kube.errors import Unreachable, error_of

T = TypeVar("T")

_CHUNK_BYTES = 64 * 1024


class _Event(msgspec.Struct, gc=False):
    """The envelope; what is inside depends on the type."""

    type: str
    object: msgspec.Raw


_decode_event = msgspec.json.Decoder(_Event).decode


class Watch(Generic[T]):
    """Iterates over (type, object) of a stream that is open already; ends when the server ends it or `close` is called.

    Types are ADDED, MODIFIED, DELETED and BOOKMARK. An ERROR event is raised as the `APIError` that it stands for
    (`Gone` when the resource version is too old), a broken stream as `Unreachable`. An object that does not decode is
    logged and left out, so that one odd object cannot blind us for all others.
    """

    def __init__(self, answer: urllib3.BaseHTTPResponse, resource: Resource[T]) -> None:
        self._answer = answer
        self._resource = resource
        self._decode = decoder(resource.type).decode
        self._where = f"watch {resource.plural}"
        self._lock = threading.Lock()
        self._closed = False
        self._events = self._read()

    def __iter__(self) -> Iterator[tuple[str, T]]:
        return self._events

    def __next__(self) -> tuple[str, T]:
        return next(self._events)

    def close(self) -> None:
        """Ends the iteration at once, also one that blocks in another thread. May be called twice."""
        with self._lock:
            if not self._closed:
                self._closed = True
                # Only shut down here: the reading thread closes, so that the socket's number is not reused under it.
                with suppress(OSError, ValueError, RuntimeError):
                    self._answer.shutdown()

    def _read(self) -> Iterator[tuple[str, T]]:
        try:
            for line in split_lines(self._answer.stream(_CHUNK_BYTES, decode_content=False)):
                if self._closed:
                    return
                yield from self._event(line)
        except (urllib3.exceptions.HTTPError, OSError, msgspec.DecodeError) as error:
            if not self._closed:
                message = f"the stream broke: {error}"
                raise Unreachable(message, reason=type(error).__name__, where=self._where) from error
        finally:
            with self._lock:
                self._closed = True
                self._answer.close()

    def _event(self, line: bytes) -> Iterator[tuple[str, T]]:
        event = _decode_event(line)
        if event.type == "ERROR":
            raise error_of(0, bytes(event.object), where=self._where)
        if event.type == "BOOKMARK":  # only its version counts; the rest may not even be valid ("containers": null)
            metadata = decoder(Object).decode(event.object).metadata
            yield event.type, cast(T, Object(metadata=metadata))  # of a kind that cannot be without a spec, too
            return
        try:
            yield event.type, self._decode(event.object)
        except msgspec.ValidationError as error:
            leave_out(self._resource, event.object, error)


def split_lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Cuts chunks of any size at the newlines; empty lines and an unfinished last line are left out.

    Pieces of a long line are joined once, when it is complete.
    """
    pieces: list[bytes] = []
    for chunk in chunks:
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            whole = b"".join((*pieces, line)) if pieces else line
            pieces.clear()
            if whole:
                yield whole
        if rest:
            pieces.append(rest)
