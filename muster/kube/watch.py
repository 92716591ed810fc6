"""One watch request; its response is split into lines, and each line is decoded into a typed event."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from typing import Generic, TypeVar, cast

import aiohttp
import msgspec

from muster.api.base import Resource
from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.kube.codec import decoder, identity, leave_out, part, text
from muster.kube.errors import Unreachable, error_of
from muster.kube.transport import BROKEN, MOST_BYTES, sentence
from muster.kube.trimming import LONG, trimmed

T = TypeVar("T")


class _WatchEvent(msgspec.Struct, gc=False):
    """The envelope of a watch event; the event's type determines the type of the object in it."""

    type: str
    object: msgspec.Raw


_decode_event = msgspec.json.Decoder(_WatchEvent).decode


class Watch(Generic[T]):
    """Iterator over (type, object) of an open stream, which ends when the server ends it or `close` is called.

    The types of events are ADDED, MODIFIED, DELETED and BOOKMARK. An ERROR event is raised as an `APIError` (`Gone` if
    the resource version is too old), a broken stream as `Unreachable`. An unreadable object is logged and skipped, so
    that the other objects are still reported. The deletion of an unreadable object is reported with the object's name
    only.

    Until an event is consumed, only a small part of the stream is read ahead, and the server waits. A watch is used on
    one event loop.
    """

    def __init__(self, answer: aiohttp.ClientResponse, resource: Resource[T]) -> None:
        self._answer = answer
        self._resource = resource
        self._decode = decoder(resource.type).decode
        self._cutter = LineCutter()
        self._lines: deque[bytes] = deque()
        self._closed = False

    def __aiter__(self) -> "Watch[T]":
        return self

    async def __anext__(self) -> tuple[str, T]:
        try:
            while not self._closed:
                while self._lines:
                    event = await self._event(self._lines.popleft())
                    if event is not None:
                        return event
                data = await self._answer.content.readany()
                if not data:
                    break
                self._lines.extend(self._cutter.cut(data))
        except (*BROKEN, msgspec.DecodeError) as error:
            if not self._closed:
                self.close()
                where, reason = f"watch {self._resource.plural}", type(error).__name__
                raise Unreachable(f"the stream broke: {sentence(error)}", reason=reason, where=where) from error
        except BaseException:
            self.close()
            raise
        self.close()
        raise StopAsyncIteration

    @property
    def behind(self) -> bool:
        """True if the next event is already available, so that requesting it does not yield to other tasks."""
        return bool(self._lines)

    def close(self) -> None:
        """End the iteration at once, even while it waits for the next event. The method may be called repeatedly."""
        self._closed = True
        self._lines.clear()
        self._answer.close()

    async def aclose(self) -> None:
        """Close the watch, under the name that asynchronous generators use."""
        self.close()

    async def _event(self, line: bytes) -> tuple[str, T] | None:
        """Return the event in a line; None if the event's object is left out.

        Raises msgspec.DecodeError if the line has no event.
        """
        if len(line) > MOST_BYTES:
            return await self._unreadable(line, ValueError(f"it has more than {MOST_BYTES} bytes"))
        try:
            event = _decode_event(line)
            if event.type == "ERROR":
                raise error_of(0, bytes(event.object), where=f"watch {self._resource.plural}")
            if event.type == "BOOKMARK":  # only its version counts; other parts may even be invalid: "containers": null
                return event.type, self._named(decoder(Object).decode(event.object).metadata)
        except RecursionError as error:
            return await self._unreadable(line, error)
        await _share_loop(line)
        try:
            short = trimmed(event.object, self._resource.plural)
            await _share_loop(line)
            read = event.type, self._decode(short)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one object, the others are read
            return await self._unreadable(line, error, event)
        await _share_loop(line)
        return read

    async def _unreadable(
        self, line: bytes, error: Exception, event: _WatchEvent | None = None
    ) -> tuple[str, T] | None:
        """Leave out an object, unless the event is its deletion, which needs only the name."""
        await asyncio.sleep(0)
        if event is None:
            kind, beginning = text(part(line, b"type")), part(line, b"object")
            await asyncio.sleep(0)
            which = identity(beginning, error)
        else:
            kind, which = event.type, identity(memoryview(event.object), error)
        leave_out(self._resource, which, error)
        if which.name and kind == "DELETED":
            metadata = ObjectMeta(name=which.name, namespace=which.namespace, resource_version=which.resource_version)
            return "DELETED", self._named(metadata)
        return None

    def _named(self, metadata: ObjectMeta) -> T:
        """Create an object from its metadata alone, because decoding the type of the kind may require a spec."""
        kind = self._resource.type
        if isinstance(kind, type) and issubclass(kind, Object):
            return cast(T, Object(metadata=metadata))
        return cast(T, {"metadata": msgspec.to_builtins(metadata)})  # for a reader of plain data


async def _share_loop(line: bytes) -> None:
    """Let other tasks run if the line is long, because each step of processing a long line takes milliseconds."""
    if len(line) > LONG:
        await asyncio.sleep(0)


class LineCutter:
    """A splitter of chunks of any size into complete lines; empty lines and an unfinished last line are left out.

    Parts of a long line are joined only once, when the line is complete. A line of more than `most_bytes` is truncated
    to slightly more than `most_bytes`.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._parts: list[bytes] = []
        self._held_bytes = 0

    def cut(self, chunk: bytes) -> list[bytes]:
        """Return the lines that this chunk completes."""
        first, *others = chunk.split(b"\n")
        self._hold(first)
        lines = []
        for other in others:
            lines.append(self._parts[0] if len(self._parts) == 1 else b"".join(self._parts))
            self._parts.clear()
            self._held_bytes = 0
            self._hold(other)
        return [line for line in lines if line]

    def _hold(self, piece: bytes) -> None:
        if piece and self._held_bytes <= self._most_bytes:
            self._parts.append(piece)
            self._held_bytes += len(piece)


async def lines_of(answer: aiohttp.ClientResponse) -> AsyncGenerator[bytes]:
    """Yield the lines of a stream as they arrive, however long they take; raises one of `BROKEN` on failure."""
    cutter = LineCutter()
    try:
        while data := await answer.content.readany():
            for line in cutter.cut(data):
                yield line
    finally:
        answer.close()
