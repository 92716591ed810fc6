"""The event loop on which a process waits for its API servers, for callers in threads.

There is one, in a thread of its own, made when it is first asked for. A fork does not take the thread along, so the
child makes its own.
"""

import asyncio
import atexit
import concurrent.futures
import os
import sys
import threading
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import uvloop

from muster.kube.errors import Unreachable

T = TypeVar("T")

_STOP_S = 2.0
_LOOK_S = 1.0
"""How often a caller who waits looks whether the loop is still there."""
_SLICE_S = 0.002
_SWITCH_S = 0.001
"""How long a thread that computes may keep the interpreter from the loop; Python's own is five times that.

A call of a thread needs the interpreter in the loop's thread three or four times, and waits for it as often; beside the
planner, which computes for long, an answer that waits for it waits in kube-scheduler, too.
"""


def prefer_the_loop() -> None:
    """Has threads that compute give the interpreter back sooner, as a loop waits for it at every turn."""
    sys.setswitchinterval(min(_SWITCH_S, sys.getswitchinterval()))


class _Background:
    """A loop in a daemon thread, until the process ends."""

    def __init__(self) -> None:
        started: concurrent.futures.Future[asyncio.AbstractEventLoop] = concurrent.futures.Future()
        prefer_the_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), name="kube", daemon=True)
        self._thread.start()
        self.loop = started.result()

    @property
    def alive(self) -> bool:
        """Whether it can be used."""
        return self._thread.is_alive()

    def end(self) -> None:
        """Cancels what is under way and ends the thread."""
        if self.alive:
            self.loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(_STOP_S)

    def _run(self, started: "concurrent.futures.Future[asyncio.AbstractEventLoop]") -> None:
        async def until_the_end() -> None:
            started.set_result(asyncio.get_running_loop())
            await self._stop.wait()

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(until_the_end())


class _Process:
    """The loop of this process; `left` are those of the processes that it was forked from.

    They are kept: to close one would end what its own process waits for, as both have the same descriptors.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._background: _Background | None = None
        self._left: list[_Background] = []

    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop; it is started if it does not run."""
        with self._lock:
            if self._background is None or not self._background.alive:
                self._background = _Background()
            return self._background.loop

    def end(self) -> None:
        """The process ends."""
        background, self._background = self._background, None
        if background is not None:
            background.end()

    def forked(self) -> None:
        """This is a child: the loop's thread is not here, and the lock may have been held by one that is not."""
        self._lock = threading.Lock()
        if self._background is not None:
            self._left.append(self._background)
            self._background = None


_process = _Process()
os.register_at_fork(after_in_child=_process.forked)
atexit.register(_process.end)


def background_loop() -> asyncio.AbstractEventLoop:
    """The loop of this process."""
    return _process.loop()


def runs_on(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether the caller is on this loop's thread: then it must not wait for it."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


def refuse_to_wait_on(loop: asyncio.AbstractEventLoop, what: str) -> None:
    """Raises RuntimeError on the loop's own thread, where waiting for the loop would never end."""
    if runs_on(loop):
        raise RuntimeError(
            f"{what} on the thread of its event loop would wait for ever: "
            "do it in another thread, or await the same call of the client's `on_loop`"
        )


def wait_for(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T], where: str) -> T:
    """What a coroutine gives, which runs on the loop; a caller that is interrupted ends it.

    RuntimeError on the loop's own thread, `Unreachable` if the loop ends first.
    """
    try:
        refuse_to_wait_on(loop, where)
        answer = asyncio.run_coroutine_threadsafe(coroutine, loop)
    except RuntimeError as error:
        coroutine.close()
        if loop.is_closed():
            raise _ended(where) from error
        raise
    try:
        while not answer.done():
            with suppress(TimeoutError):  # of this look, or the coroutine's own, which is raised below
                return answer.result(_LOOK_S)
            if loop.is_closed():
                answer.cancel()
        return answer.result()
    except concurrent.futures.CancelledError as error:
        raise _ended(where) from error
    except BaseException:
        answer.cancel()
        raise


def _ended(where: str) -> Unreachable:
    return Unreachable("the event loop of the client has ended", reason="Ended", where=where)


class TimeSlice:
    """Has long work on a loop stop for others every two milliseconds: calls that must be quick run there, too."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    async def share(self) -> None:
        """To be awaited between any two small steps."""
        if time.perf_counter() - self._began >= _SLICE_S:
            await asyncio.sleep(0)
            self._began = time.perf_counter()
