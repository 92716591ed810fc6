"""One watch request: bytes from the API server → lines → typed events."""

from collections import deque
from collections.abc import AsyncGenerator
from typing import Generic, TypeVar, cast

import msgspec

from muster.api.base import Resource
from muster.api.kubernetes.meta import Object
from muster.kube.answer import Answer
from muster.kube.codec import decoder, leave_out
from muster.kube.errors import Unreachable, error_of

T = TypeVar("T")


class _Event(msgspec.Struct, gc=False):
    """The envelope; what is inside depends on the type."""

    type: str
    object: msgspec.Raw


_decode_event = msgspec.json.Decoder(_Event).decode


class Watch(Generic[T]):
    """Iterates over (type, object) of a stream that is open already; ends when the server ends it or `close` is called.

    Types are ADDED, MODIFIED, DELETED and BOOKMARK. An ERROR event is raised as the `APIError` that it stands for
    (`Gone` when the resource version is too old), a broken stream as `Unreachable`, and so are `silence_s` without a
    byte. An object that does not decode is logged and left out, so that one odd object cannot blind us for all others.

    While an event is not taken, little of what follows is read: the server waits. Used on one loop.
    """

    def __init__(self, answer: Answer, resource: Resource[T], silence_s: float | None = None) -> None:
        self._answer = answer
        self._resource = resource
        self._decode = decoder(resource.type).decode
        self._where = f"watch {resource.plural}"
        self._cutter = LineCutter()
        self._lines: deque[bytes] = deque()
        self._closed = False
        if silence_s is not None:
            answer.limit_silence(silence_s)

    def __aiter__(self) -> "Watch[T]":
        return self

    async def __anext__(self) -> tuple[str, T]:
        try:
            while not self._closed:
                while self._lines:
                    event = self._event(self._lines.popleft())
                    if event is not None:
                        return event
                data = await self._answer.read()
                if not data:
                    break
                self._lines.extend(self._cutter.cut(data))
        except (OSError, msgspec.DecodeError) as error:
            if not self._closed:
                self.close()
                message = f"the stream broke: {error}"
                raise Unreachable(message, reason=type(error).__name__, where=self._where) from error
        except BaseException:
            self.close()
            raise
        self.close()
        raise StopAsyncIteration

    @property
    def behind(self) -> bool:
        """Whether the next event is there already: then asking for it gives others on the loop no turn."""
        return bool(self._lines)

    def close(self) -> None:
        """Ends the iteration at once, also one that waits for the next event. May be called twice."""
        self._closed = True
        self._lines.clear()
        self._answer.close()

    async def aclose(self) -> None:
        """The same, under the name that asynchronous generators have for it."""
        self.close()

    def _event(self, line: bytes) -> tuple[str, T] | None:
        event = _decode_event(line)
        if event.type == "ERROR":
            raise error_of(0, bytes(event.object), where=self._where)
        if event.type == "BOOKMARK":  # only its version counts; the rest may not even be valid ("containers": null)
            metadata = decoder(Object).decode(event.object).metadata
            return event.type, cast(T, Object(metadata=metadata))  # of a kind that cannot be without a spec, too
        try:
            return event.type, self._decode(event.object)
        except msgspec.ValidationError as error:
            leave_out(self._resource, event.object, error)
            return None


class LineCutter:
    """Cuts chunks of any size at the newlines; empty lines and an unfinished last line are left out.

    Pieces of a long line are joined once, when it is complete.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def cut(self, chunk: bytes) -> list[bytes]:
        """The lines that are complete with this chunk."""
        *lines, rest = chunk.split(b"\n")
        if lines and self._pieces:
            lines[0] = b"".join((*self._pieces, lines[0]))
            self._pieces.clear()
        if rest:
            self._pieces.append(rest)
        return [line for line in lines if line]


async def lines_of(answer: Answer) -> AsyncGenerator[bytes]:
    """The lines of a stream as they come, however long it is silent; OSError when it breaks off."""
    cutter = LineCutter()
    try:
        while data := await answer.read():
            for line in cutter.cut(data):
                yield line
    finally:
        answer.close()
