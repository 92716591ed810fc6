"""The state as it is now, on one event loop: changed and read there only, so that it needs no locks.

Whatever waits runs on the loop: the verbs, the watches, the timers. What thinks or blocks has a thread (the planner,
its writers), and asks the loop: `ask` runs a question there, between two other callbacks, and brings the answer.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from extender.planner.state.state import State
from muster.kube.loop import runs_on

T = TypeVar("T")
ANSWER_S = 30.0
"""No loop that still runs takes so long to answer a thread; one that has ended never does."""


class Live:
    """The state, and who is told of its changes. `wake` asks the planner for a cycle, and may be called anywhere.

    Until `run_here` there is no loop, and everybody asks in his own thread.
    """

    def __init__(self, state: State, *, wake: Callable[[], None]) -> None:
        self.state = state
        """For callbacks of the loop; other threads `ask`."""
        self._wake = wake
        self._waiting: set[asyncio.Event] = set()
        """Who waits for a change; told of the first one."""
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def synced(self) -> bool:
        """Whether the state shows the whole cluster."""
        return True

    def run_here(self) -> None:
        """From now on the state belongs to the loop that is running."""
        self._loop = asyncio.get_running_loop()

    def ask(self, question: Callable[[State], T]) -> T:
        """What `question` says of the state, or what it raises; it may change the state, and must not block.

        From the loop itself it is a plain call. Raises RuntimeError if the loop has ended, TimeoutError if it is stuck.
        """
        if self._loop is None or runs_on(self._loop):
            return question(self.state)
        answer: Future[T] = Future()
        self._loop.call_soon_threadsafe(self._answer, question, answer)
        return answer.result(ANSWER_S)

    def change(self, change: Callable[[State], bool | None]) -> None:
        """Has the state changed, and tells of it: the planner too, unless the answer is False, nothing follows."""
        self.ask(lambda state: self.changed(change(state)))

    def changed(self, matters: bool | None = None) -> None:  # noqa: FBT001 - what an `on_*` method of the state says
        """Tells those who wait of a change, and unless it does not matter the planner, too. Runs on the loop."""
        if self._waiting:
            for changed in self._waiting:
                changed.set()
            self._waiting.clear()
        if matters is not False:
            self._wake()

    async def until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Waits until the state fulfils a condition; False if it did not in time."""
        if condition():
            return True
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while loop.time() < deadline:
            changed = asyncio.Event()
            self._waiting.add(changed)
            try:
                async with asyncio.timeout_at(deadline):
                    await changed.wait()
            except TimeoutError:
                break
            finally:
                self._waiting.discard(changed)
            if condition():
                return True
        return condition()

    def _answer(self, question: Callable[[State], T], answer: "Future[T]") -> None:
        try:
            answer.set_result(question(self.state))
        except BaseException as error:  # noqa: BLE001 - it belongs to the thread that has asked
            answer.set_exception(error)
