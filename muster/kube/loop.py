"""The event loop on which a process waits for its API servers, and how its threads wait for that.

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
from typing import Any, TypeVar

import uvloop

from muster.kube.errors import Unreachable

T = TypeVar("T")

_STOP_S = 2.0
ENDED = "Ended"
"""The reason of the error that a call meets whose loop ends with the process."""
_LOOK_S = 1.0
"""Between two looks of a waiting caller whether the loop has ended."""
_SLICE_S = 0.002
_SWITCH_S = 0.001
"""The longest time that a computing thread keeps the interpreter from the loop; Python's own is five times that.

A call of a thread needs the interpreter in the loop's thread three or four times, and waits for it as often. Beside the
planner, which computes for long, an answer that waits for it waits in kube-scheduler, too.
"""
_loops: dict[int, asyncio.AbstractEventLoop] = {}
"""By process. Those of the processes that this one was forked from are kept: to close one would end what its own
process waits for, as both have the same descriptors."""
_lock = threading.Lock()
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


def prefer_the_loop() -> None:
    """Have threads that compute give the interpreter back sooner, as a loop waits for it at every turn."""
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
        """Cancel all tasks and end the thread; a forked child has no such thread."""
        if thread.is_alive():
            started.result().call_soon_threadsafe(ended.set)
            thread.join(_STOP_S)

    prefer_the_loop()
    thread = threading.Thread(target=run, name="kube", daemon=True)
    thread.start()
    atexit.register(end)
    return started.result()


def runs_on(loop: asyncio.AbstractEventLoop) -> bool:
    """Return True on this loop's thread, which must not wait for the loop."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


def refuse_to_wait_on(loop: asyncio.AbstractEventLoop, what: str) -> None:
    """Raise RuntimeError on the loop's own thread, where waiting for the loop would never end."""
    if runs_on(loop):
        raise RuntimeError(
            f"{what} on the thread of its event loop would wait without end: "
            "do it in another thread, or await the same call of the client's `on_loop`"
        )


def wait_for(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T], where: str) -> T:
    """Run a coroutine on the loop and return its result; an interrupted caller cancels it.

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
        while not concurrent.futures.wait([answer], _LOOK_S).done:
            if loop.is_closed():
                raise _ended(where)
        return answer.result()
    except concurrent.futures.CancelledError as error:
        raise _ended(where) from error
    finally:
        answer.cancel()


def _ended(where: str) -> Unreachable:
    return Unreachable("the event loop of the client has ended", reason=ENDED, where=where)


class TimeSlice:
    """Has long work on a loop stop for others every two milliseconds: calls that must be quick run there, too."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    async def share(self) -> None:
        """Let others run if the slice is over; to be awaited between any two small steps."""
        if time.perf_counter() - self._began >= _SLICE_S:
            await asyncio.sleep(0)
            self._began = time.perf_counter()
