"""An answer as it comes over a connection of an event loop: status, headers, and a body that is read bit by bit."""

import asyncio

_MOST_WAITING_BYTES = 1024 * 1024
"""So much of a body waits for its reader; then the server must wait."""


class BrokenAnswerError(OSError):
    """What came is no answer, or not all of one; the connection is over."""


class Headers:
    """The headers of an answer; names are compared in lower case."""

    def __init__(self) -> None:
        self._fields: list[tuple[str, str]] = []

    def add(self, name: bytes, value: bytes) -> None:
        """One more."""
        self._fields.append((name.decode("latin-1").lower(), value.decode("latin-1")))

    def get(self, name: str) -> str | None:
        """The first of this name."""
        return next((value for field, value in self._fields if field == name), None)

    def get_all(self, name: str) -> list[str]:
        """All of this name."""
        return [value for field, value in self._fields if field == name]


class Answer:
    """One answer: its status and headers, and its body as it comes.

    A reader who is behind holds the server up.
    """

    def __init__(self, transport: asyncio.Transport, status: int, headers: Headers) -> None:
        self.status = status
        self.headers = headers
        self._transport = transport
        self._pieces: list[bytes] = []
        self._bytes = 0
        self._paused = False
        self._ended = False
        self._error: OSError | None = None
        self._arrived: asyncio.Future[None] | None = None
        self._heard_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def read(self) -> bytes:
        """What has come meanwhile, at least a byte of it; b"" at the end. OSError when the answer breaks off."""
        if not self._pieces and not self._ended:
            await self._change()
        if not self._pieces and self._error is not None:
            raise self._error
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._bytes = 0
        if self._paused:
            self._paused = False
            if not self._transport.is_closing():
                self._heard_at = asyncio.get_running_loop().time()
                self._transport.resume_reading()
        return data

    async def rest(self) -> bytes:
        """Everything that was not read yet; raises as `read`."""
        pieces = []
        while piece := await self.read():
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def limit_silence(self, silence_s: float) -> None:
        """From now on the answer breaks off (TimeoutError) when nothing comes for so long."""
        # One timer for all of it: what is read one by one would else pay for one each time.
        loop = asyncio.get_running_loop()
        self._heard_at = loop.time()
        self._timer = loop.call_later(silence_s, self._listen, silence_s)

    def close(self) -> None:
        """Ends the connection at once; who waits in `read` gets an OSError."""
        if not self._transport.is_closing():
            self._transport.abort()
        self.end(BrokenAnswerError("the answer was not read to its end"))

    # -- what the connection calls ----------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """A piece of the body."""
        self._pieces.append(data)
        self._bytes += len(data)
        if self._timer is not None:
            self._heard_at = asyncio.get_running_loop().time()
        if self._bytes > _MOST_WAITING_BYTES and not self._paused and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def end(self, error: OSError | None = None) -> None:
        """There is no more; with an error it was not all."""
        if not self._ended:
            self._ended, self._error = True, error
            if self._timer is not None:
                self._timer.cancel()
            self._wake()

    def _listen(self, silence_s: float) -> None:
        """Whether somebody is still there. While we do not read, we hear nothing."""
        loop = asyncio.get_running_loop()
        left_s = silence_s if self._paused else self._heard_at + silence_s - loop.time()
        if left_s > 0:
            self._timer = loop.call_later(left_s, self._listen, silence_s)
        else:
            self.end(TimeoutError(f"nothing came for {silence_s:g} s"))
            self._transport.abort()

    async def _change(self) -> None:
        self._arrived = asyncio.get_running_loop().create_future()
        try:
            await self._arrived
        finally:
            self._arrived = None

    def _wake(self) -> None:
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)
