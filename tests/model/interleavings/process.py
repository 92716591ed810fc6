"""Runs a process of Muster one input at a time: what it does between two depends on nothing else.

Code of threads (a planning cycle, a write, a pass of the controller) runs in a greenlet, which stops at each call of
the API server; code of the event loop runs on a loop whose clock is the world's. So each call and each `await` ends a
step, and between two steps anything may happen to the world, or the process may die.
"""

import asyncio
import heapq
import itertools
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from typing import Any

import greenlet
import msgspec

from interleavings.api import Request, Stored
from muster.api.base import Resource
from muster.api.kubernetes.core import PODS
from muster.kube.codec import content_of
from muster.kube.errors import APIError

Answer = Stored | APIError


class Loop(asyncio.BaseEventLoop):
    """An event loop without sockets, whose time is set from outside."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self._selector = self

    def time(self) -> float:
        """Return the world's clock."""
        return self.now_s

    def select(self, timeout: float | None) -> list[Any]:
        """Find nothing to read: this is its own selector."""
        del timeout
        return []

    def _process_events(self, events: list[Any]) -> None:
        """There are none."""

    def settle(self) -> None:
        """Run everything that can run now."""
        asyncio._set_running_loop(self)
        try:
            while self._ready or (self._scheduled and self._due()):
                self._run_once()  # type: ignore[attr-defined]
        finally:
            asyncio._set_running_loop(None)

    def next_s(self) -> float | None:
        """Return the time of the next timer; None without any."""
        times = [timer.when() for timer in self._scheduled if not timer.cancelled()]
        return min(times, default=None)

    def _due(self) -> bool:
        while self._scheduled and self._scheduled[0].cancelled():
            heapq.heappop(self._scheduled)._scheduled = False
        return bool(self._scheduled) and self._scheduled[0].when() <= self.now_s


class Calls:
    """The API client of a process: each call is noted in `open`, and goes on when it is answered."""

    def __init__(self, process: "Process") -> None:
        self._process = process
        self.on_loop = LoopCalls(process)

    def get(self, res: Resource[Any], name: str, namespace: str | None = None, **_: Any) -> Any:
        """See Client."""
        return self._call(Request("get", res, namespace or "", name))

    def list(self, res: Resource[Any], namespace: str | None = None, **_: Any) -> Any:
        """See Client."""
        return self._call(Request("list", res, namespace or "", ""))

    def create(self, res: Resource[Any], obj: Any, namespace: str | None = None, **_: Any) -> Any:
        """See Client."""
        content = content_of(res, obj)
        where = namespace or content["metadata"].get("namespace") or ""
        name = content["metadata"].get("name") or content["metadata"]["generateName"]
        return self._call(Request("create", res, where, name, encoded(content)))

    def apply(self, res: Resource[Any], obj: Any, **_: Any) -> Any:
        """See Client; the whole of what is applied is the caller's own."""
        content = content_of(res, obj)
        meta = content["metadata"]
        return self._call(Request("apply", res, meta.get("namespace") or "", meta["name"], encoded(content)))

    def merge_patch(
        self, res: Resource[Any], name: str, patch: Mapping[str, Any], namespace: str | None = None, **more: Any
    ) -> Any:
        """See Client."""
        subresource = more.get("subresource") or ""
        return self._call(Request("patch", res, namespace or "", name, encoded(patch), subresource))

    strategic_patch = merge_patch

    def delete(self, res: Resource[Any], name: str, namespace: str | None = None, **more: Any) -> None:
        """See Client."""
        self._remove("delete", res, name, namespace or "", more)

    def evict(self, namespace: str, name: str, uid: str, **more: Any) -> None:
        """See Client."""
        self._remove("evict", PODS, name, namespace, {**more, "uid": uid})

    def _remove(self, verb: str, res: Resource[Any], name: str, namespace: str, more: Mapping[str, Any]) -> None:
        grace, propagation = more.get("grace_period_s"), more.get("propagation")
        options = {"gracePeriodSeconds": grace, "propagationPolicy": propagation}
        given = {name: value for name, value in options.items() if value is not None}
        body = encoded(given) if given else b""
        version = more.get("resource_version") or ""
        self._call(Request(verb, res, namespace, name, body, "", more.get("uid") or "", version))

    def _call(self, request: Request) -> Any:
        answer = self._process.wait(request)
        if isinstance(answer, APIError):
            raise answer
        return answer.as_(request.resource.type)


class LoopCalls:
    """The same client for code on the loop."""

    def __init__(self, process: "Process") -> None:
        self._process = process

    async def get(self, res: Resource[Any], name: str, namespace: str | None = None, **_: Any) -> Any:
        """See LoopClient."""
        return (await self._call(Request("get", res, namespace or "", name))).as_(res.type)

    async def bind(self, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str]) -> None:
        """See LoopClient."""
        body = encoded({"node": node, "annotations": dict(annotations)})
        await self._call(Request("bind", PODS, namespace, name, body, "binding", uid))

    async def _call(self, request: Request) -> Stored:
        future: asyncio.Future[Stored] = self._process.loop.create_future()
        self._process.ask(request, future)
        return await future


def encoded(content: Any) -> bytes:
    """JSON of which equal contents have the same."""
    return msgspec.json.encode(content, order="deterministic")


Call = tuple[Request, int]
"""A request, and a number that tells it from equal ones that are under way."""


class Process:
    """One life of a process. `open` are its unanswered requests, in the order in which they were made."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.loop = Loop()
        self.open: list[Call] = []
        self.said: list[tuple[Any, ...]] = []
        """What it has answered to others since the last input."""
        self._waiting: dict[Call, greenlet.greenlet | asyncio.Future[Stored]] = {}
        self._hub = greenlet.getcurrent()
        self._runnable: list[greenlet.greenlet] = []
        self.running: dict[str, greenlet.greenlet] = {}
        """What runs in a thread, by a name."""
        self.tasks: dict[object, asyncio.Task[Any]] = {}
        """What runs on the loop, by a name."""

    # What runs inside it.

    def ask(self, request: Request, waiting: "greenlet.greenlet | asyncio.Future[Stored]") -> None:
        """Note a request and who waits for its answer."""
        call = next(call for number in itertools.count() if (call := (request, number)) not in self._waiting)
        self.open.append(call)
        self._waiting[call] = waiting

    def wait(self, request: Request) -> Answer:
        """Stop the present greenlet until the request is answered."""
        mine = greenlet.getcurrent()
        if mine is self._hub:
            raise RuntimeError(f"a call of the API server on the loop: {request}")
        self.ask(request, mine)
        return self._hub.switch()  # type: ignore[no-any-return]

    def thread(self, name: str, run: Callable[[], object]) -> None:
        """Run something as a thread of its own, soon."""

        def body() -> None:
            try:
                run()
            finally:
                self.running.pop(name, None)

        self.running[name] = greenlet.greenlet(body, parent=self._hub)
        self._runnable.append(self.running[name])

    def task(self, name: object, coroutine: Coroutine[Any, Any, Any], done: Callable[[Any], None]) -> None:
        """Run a coroutine on the loop, by a name; `done` gets its result."""

        def ended(task: asyncio.Task[Any]) -> None:
            self.tasks.pop(name, None)
            done(task.result())

        task = self.loop.create_task(coroutine)
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # a process may die with it
        task.add_done_callback(ended)
        self.tasks[name] = task

    # What comes from outside.

    def answer(self, call: Call, answer: Answer) -> None:
        """Answer one of its requests."""
        self.open.remove(call)
        waiting = self._waiting.pop(call)
        if isinstance(waiting, asyncio.Future):
            if waiting.done():
                return
            if isinstance(answer, APIError):
                waiting.set_exception(answer)
            else:
                waiting.set_result(answer)
        else:
            self._resume(waiting, answer)

    def settle(self) -> None:
        """Run everything that can run without an answer."""
        self.loop.settle()
        while self._runnable:
            self._resume(self._runnable.pop(0))
            self.loop.settle()

    def rest(self) -> None:
        """Bring up to date what is worked out lazily; see the kinds of processes."""

    keys: tuple[tuple[str, str], ...] = ()
    """Worker and key of each pass that may begin."""

    def next_s(self) -> float | None:
        """Return when it does something next by itself; None if never."""
        return self.loop.next_s()

    def at(self, now_s: float) -> None:
        """Set its clocks."""
        self.now_s = self.loop.now_s = now_s

    def end(self) -> None:
        """Drop what waits: the process is no more."""
        for waiting in self._waiting.values():
            if isinstance(waiting, asyncio.Future):
                waiting.cancel()
            else:
                waiting.throw(greenlet.GreenletExit)
        self._waiting.clear()
        self.open.clear()

    def _resume(self, one: greenlet.greenlet, *value: Any) -> None:
        self._hub = one.parent = greenlet.getcurrent()
        one.switch(*value)


class Pool:
    """In place of a ThreadPoolExecutor: `map` works one by one in the caller's greenlet, `submit` in one of its own."""

    def __init__(self, process: Process, name: str) -> None:
        self._process = process
        self._name = name

    def map(self, fn: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """See Executor; one after the other is one of the orders in which threads may do it."""
        results, left = [], [*items]  # not an iterator: what is left tells states apart
        while left:
            results.append(fn(left.pop(0)))
        return results

    def submit(self, fn: Callable[..., Any], *args: Any) -> "Future[Any]":
        """See Executor."""
        future: Future[Any] = Future()
        about = " ".join(arg for arg in args if isinstance(arg, str)) or self._name
        number = next(each for each in itertools.count() if f"{about} {each}" not in self._process.running)

        def run() -> None:
            try:
                future.set_result(fn(*args))
            except Exception as error:  # noqa: BLE001 - it belongs to who asks the future
                future.set_exception(error)

        self._process.thread(f"{about} {number}", run)
        return future

    def shutdown(self, **_: Any) -> None:
        """See Executor."""
