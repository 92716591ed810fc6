"""The event loop on which a process calls the API server, and functions by which threads wait for it.

There is one loop per process, in a separate thread, created on first use. A fork does not copy the loop's thread, so a
child process creates its own loop.
"""

import asyncio
import atexit
import concurrent.futures
import os
import sys
import threading
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import uvloop

from muster.kube.errors import Unreachable

T = TypeVar("T")

_STOP_S = 2.0
ENDED = "Ended"
"""Reason in the error of a call that fails because its event loop has ended together with the process."""
_POLL_S = 1.0
"""Interval at which a waiting caller checks whether the event loop has ended."""
_SLICE_S = 0.002
_SWITCH_S = 0.001
"""Maximum time for which a computing thread holds Python's interpreter lock (GIL). Python's default is five times as
long.

For each API call by a thread, the loop's thread must wait for the interpreter lock three or four times. While the
planner computes, these waits would also delay kube-scheduler."""
_loops: dict[int, asyncio.AbstractEventLoop] = {}
"""Maps the id of a process to the event loop that this process created. A forked child never closes its parent's loop:
both processes share file descriptors, so closing the loop would break the parent."""
_lock = threading.Lock()
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


def prefer_the_loop() -> None:
    """Make computing threads release the GIL sooner, because the event loop needs the GIL at every iteration."""
    sys.setswitchinterval(min(_SWITCH_S, sys.getswitchinterval()))


def background_loop() -> asyncio.AbstractEventLoop:
    """Return the loop of this process, which runs until the process ends."""
    with _lock:
        loop = _loops.get(os.getpid())
        if loop is None or loop.is_closed():
            loop = _loops[os.getpid()] = _start()
        return loop


def _start() -> asyncio.AbstractEventLoop:
    started: concurrent.futures.Future[asyncio.AbstractEventLoop] = concurrent.futures.Future()
    ended = asyncio.Event()

    async def until_the_end() -> None:
        started.set_result(asyncio.get_running_loop())
        await ended.wait()

    def run() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(until_the_end())

    def end() -> None:
        """Cancel all tasks and end the loop's thread; a forked child has no such thread to end."""
        if thread.is_alive():
            started.result().call_soon_threadsafe(ended.set)
            thread.join(_STOP_S)

    prefer_the_loop()
    thread = threading.Thread(target=run, name="kube", daemon=True)
    thread.start()
    atexit.register(end)
    return started.result()


def runs_on(loop: asyncio.AbstractEventLoop) -> bool:
    """Return True if the caller runs on this loop's thread, where waiting for the loop would deadlock."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


def refuse_to_wait_on(loop: asyncio.AbstractEventLoop, what: str) -> None:
    """Raise RuntimeError if called on the loop's own thread, where waiting for the loop would deadlock."""
    if runs_on(loop):
        raise RuntimeError(
            f"{what} on the thread of its event loop would never end: "
            "do it in another thread, or await the same call of the client's `on_loop`"
        )


def wait_for(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T], where: str) -> T:
    """Run a coroutine on the loop and return its result; if the caller is interrupted, the coroutine is cancelled.

    Raises RuntimeError on the loop's own thread, and `Unreachable` if the loop ends first.
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
        while True:
            try:
                return answer.result(_POLL_S)  # `concurrent.futures.wait` would take a fifth of the whole call
            except TimeoutError:
                if answer.done():  # the call itself has raised it, or has ended just now
                    return answer.result()
                if loop.is_closed():
                    raise _ended(where) from None
    except concurrent.futures.CancelledError as error:
        raise _ended(where) from error
    finally:
        answer.cancel()


def _ended(where: str) -> Unreachable:
    return Unreachable("the event loop of the client has ended", reason=ENDED, where=where)


class TimeSlice:
    """Time slice for long work on an event loop, which yields every 2 ms so that urgent calls are not delayed."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    async def share(self) -> None:
        """Let other tasks run if the time slice is over; await this between small steps."""
        if time.perf_counter() - self._began >= _SLICE_S:
            await asyncio.sleep(0)
            self._began = time.perf_counter()
