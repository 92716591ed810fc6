"""The planner's live state of the cluster, kept on one event loop, and the reflectors that update the state.

Verbs, watches and timers run on the event loop. Only callbacks of this loop change and read the state, so the state
needs no locks. The planner and its writers run in threads; on behalf of a thread, `ask` runs a function on the loop,
between two other callbacks.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from sys import intern
from typing import Any, TypeVar

import structlog
from msgspec.structs import replace

from extender.planner.state.feed import FEED, Fed
from extender.planner.state.queries import Mark
from extender.planner.state.state import PlannerState
from extender.planner.state.templates import planned_job
from extender.poolfeed import PoolFeed
from extender.record.hook import RecordingHook
from muster.api.base import Resource
from muster.api.kubernetes import core
from muster.api.kubernetes.devices import CLAIM_TEMPLATES, RESOURCE_CLAIMS
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.node_faults import DEFAULT_RULES, FaultRules
from muster.api.muster.pools import DEFAULT_POOL, selector_of
from muster.api.volcano.batch import JOBS, Job
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from muster.kube.loop import runs_on
from muster.kube.memorylimit import MemoryLimit, weight_of
from muster.kube.optional import OptionalReflector
from muster.kube.readable import not_ready
from muster.kube.reflector import Reflector
from muster.process import memory

T = TypeVar("T")
ANSWER_S = 30.0
"""Maximum seconds for which a thread waits for the event loop's result; only an ended loop takes longer."""
MAX_DELAY_S = 5.0
"""Longest interval in seconds between two attempts to reach an API server that does not respond. The interval is short
because gangs wait.
"""
_USUAL_JOB_BYTES = 16 * 1024
COMPARISONS = 1_000
"""Number of pods that one callback compares with new affinity queries, in about a millisecond."""
SLICE_COMPARISONS = 1_500
SLICE_S = 0.002
"""Duration in seconds of one slice of comparisons, and of the pause after the slice."""
_POLL_S = 0.02
_NO_META, _NO_SPEC, _NO_STATUS = ObjectMeta(), core.PodSpec(), core.PodStatus()

log = structlog.get_logger()


class Live:
    """The planner's live state on an event loop, with the calls that wait for a condition of the state.

    Before the call of `run_here`, the state belongs to the caller's thread. `wake` requests a planning cycle.
    """

    def __init__(self, state: PlannerState, *, wake: Callable[[str | None], None]) -> None:
        self.state = state
        """The planner's state, for callbacks of the event loop only; other threads use `ask`."""
        self.wake = wake
        """Requests a cycle because of a change in the given namespace, or of a write by the extender itself (None). Any
        thread may call this function.
        """
        self._waiting: dict[asyncio.Event, None] = {}
        """The asyncio events of waiting calls in order of arrival; the calls are woken in the same order."""
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def synced(self) -> bool:
        """True if the state contains the whole cluster."""
        return True

    def run_here(self) -> None:
        """Move the state to the running event loop."""
        self._loop = asyncio.get_running_loop()

    def ask(self, question: Callable[[PlannerState], T]) -> T:
        """Run the function `question` with the state on the loop, and return its result or raise its error.

        The function may change the state, but must not block.

        Raises RuntimeError if the loop has ended, and TimeoutError if the loop is stuck.
        """
        if self._loop is None or runs_on(self._loop):
            return question(self.state)
        answer: Future[T] = Future()
        self._loop.call_soon_threadsafe(self._answer, question, answer)
        return answer.result(ANSWER_S)

    def change(self, change: Callable[[PlannerState], bool | None]) -> None:
        """Apply the extender's own write; wake waiting calls and, unless `change` returns False, the planner."""
        self.ask(lambda state: self.changed(None, change(state)))

    def changed(self, namespace: str | None, matters: bool | None) -> None:  # noqa: FBT001 - result of an `on_*` method
        """Wake waiting calls after a change and, unless `matters` is False, the planner; called on the event loop."""
        if self._waiting:
            for changed in self._waiting:
                changed.set()
            self._waiting.clear()
        if matters is not False:
            self.wake(namespace)

    async def until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until the state satisfies a condition; return False after the timeout."""
        changed = asyncio.Event()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not condition():
                    changed.clear()
                    self._waiting[changed] = None
                    await changed.wait()
        self._waiting.pop(changed, None)
        return condition()

    def _answer(self, question: Callable[[PlannerState], T], answer: "Future[T]") -> None:
        try:
            answer.set_result(question(self.state))
        except BaseException as error:  # noqa: BLE001 - raised in the calling thread
            answer.set_exception(error)


def name_only(pod: core.Pod) -> core.Pod:
    """Return the pod without the fields that the state copies; a complete pod takes 15 KiB of memory."""
    return core.Pod(metadata=_name_of(pod.metadata), spec=_NO_SPEC, status=_NO_STATUS)


def _identity(kind: type[T], obj: Any) -> T:
    """Return an object with only its name, because the state has copies of the other fields that it needs."""
    return kind(metadata=_name_of(obj.metadata))  # type: ignore[call-arg]  # all kinds of objects have metadata


def _name_of(meta: ObjectMeta) -> ObjectMeta:
    namespace, version = intern(meta.namespace), meta.resource_version
    return replace(_NO_META, name=meta.name, namespace=namespace, uid=meta.uid, resource_version=version)


def _planned_weight_of(job: Job) -> int:
    """Return the size in bytes of the fields that the state keeps of a Job, or of all fields of a small Job."""
    whole = weight_of(job)
    return whole if whole <= _USUAL_JOB_BYTES else weight_of(planned_job(job))


def _budget_of(fed: Fed) -> MemoryLimit[Any] | None:
    """Return the memory limit for the objects of a kind; None for a kind that tenants do not create."""
    weigh = _planned_weight_of if fed.resource is JOBS else weight_of
    return MemoryLimit(fed.resource, weigh) if fed.limited else None


_PLURALS = Counter(fed.resource.plural for fed in FEED)


def _called(resource: Resource[Any]) -> str:
    """Return the display name of a kind: its plural, with the group if two kinds have the same plural."""
    return resource.plural if _PLURALS[resource.plural] == 1 else resource.full_name


_KEEP: dict[Resource[Any], Callable[[Any], Any]] = {
    core.PODS: name_only,
    **{kind: partial(_identity, kind.type) for kind in (JOBS, RESOURCE_CLAIMS, CLAIM_TEMPLATES)},
}
"""Maps a kind to the function that removes, from an object of this kind, the fields that the state copies."""


class LiveCluster(Live):
    """The planner's live state, and the reflectors that update the state from the API server's watches."""

    def __init__(
        self,
        client: Client,
        *,
        wake: Callable[[str | None], None],
        pool: str = DEFAULT_POOL,
        rules: FaultRules = DEFAULT_RULES,
        hook: RecordingHook | None = None,
    ) -> None:
        """Create the caches for the objects of a node pool; a given `hook` records all changes of the state."""
        make = hook.state if hook is not None else PlannerState
        super().__init__(make(COMPARISONS, self._compare_on, pool=pool, rules=rules), wake=wake)
        self._hook = hook
        self._comparing = False
        self._first: frozenset[Mark] | None = None
        """The affinity queries that had not been compared with pods when the caches were first filled; None before that
        time.
        """
        on_node_change = next(self._handler_of(fed) for fed in FEED if fed.resource is core.NODES)
        self._pool = PoolFeed(client, self.state, on_node_change, random.random)
        self._reflectors = {fed.resource: self._watch(client, fed) for fed in FEED}
        self._synced = False
        self._later: asyncio.Task[None] | None = None

    @property
    def synced(self) -> bool:
        """Return True once all caches have been filled and their pods have been compared with the queries."""
        if self._synced or self._pool.held_back or not all(each.synced for each in self._reflectors.values()):
            return self._synced
        pending = self.state.comparisons.open_marks
        self._first = pending if self._first is None else self._first & pending
        self._synced = not self._first
        return self._synced

    def not_ready(self) -> str | None:
        """Return a sentence about a kind that was not read yet or is no longer readable, if there is one."""
        unread = not_ready({_called(resource): each for resource, each in self._reflectors.items()})
        if unread or self.synced:
            return unread
        return "affinities are still compared with the pods of the cluster"

    def sizes(self) -> dict[str, int]:
        """Return the number of cached objects by kind."""
        return {_called(resource): each.size for resource, each in self._reflectors.items()}

    def observe(self, resource: Resource[Any], handler: Callable[[Any, Any], None]) -> None:
        """Add a handler for changes of a kind; call this before `start`."""
        reflector = self._reflectors.get(resource)
        if isinstance(reflector, Reflector):
            reflector.add_handler(handler)

    def start(self) -> None:
        """Start the reflectors on the event loop; pods come last, because nodes and gangs determine the pool's pods."""
        self.run_here()
        for resource, reflector in self._reflectors.items():
            if resource is not core.PODS:
                reflector.start()
        self._later = asyncio.get_running_loop().create_task(self._start_pods())

    async def _start_pods(self) -> None:
        while not all(self._reflectors[each].synced for each in (core.NODES, POD_GROUPS)):  # noqa: ASYNC110 - no event
            await asyncio.sleep(_POLL_S)
        self._reflectors[core.PODS].start()

    def stop(self) -> None:
        """Stop the reflectors; the state stays available."""
        later = self._later
        if later is not None:
            loop = later.get_loop()
            with suppress(RuntimeError):  # the loop and the task have ended
                loop.call_soon_threadsafe(later.cancel)
                loop.call_soon_threadsafe(self._pool.stop)
        for reflector in self._reflectors.values():
            reflector.stop()

    def _compare_on(self) -> None:
        """Compare new affinity queries with pods, in slices of 2 ms with equally long pauses for other work."""
        if not self._comparing:
            self._comparing = True
            asyncio.get_running_loop().call_later(SLICE_S, self._compare)

    def _compare(self) -> None:
        self._comparing = False
        matters = self.state.compare(SLICE_COMPARISONS)
        if self.state.comparisons.pending:
            self._compare_on()
        if matters:
            self.changed("", matters)

    def _watch(self, client: Client, fed: Fed) -> Reflector[Any] | OptionalReflector:
        if fed.optional:
            return OptionalReflector(client, fed.resource, self._handler_of(fed), longest_delay_s=MAX_DELAY_S)
        wants: dict[Resource[Any], Any] = {core.PODS: self._pool.wants_pod, JOBS: self._pool.wants_job}
        reflector: Reflector[Any] = Reflector(
            client,
            fed.resource,
            keep=_KEEP.get(fed.resource),
            budget=_budget_of(fed),
            wants=wants.get(fed.resource),
            label_selector=selector_of(self.state.pool) if fed.pooled else "",
            longest_delay_s=MAX_DELAY_S,
            may_be_absent=fed.newer,
        )
        reflector.add_handler(self._pool.on_node if fed.resource is core.NODES else self._handler_of(fed))
        if fed.resource is core.PODS:
            self._pool.pods = reflector.mirror
            reflector.mirror.gone.append(self._pool.pod_gone)
        return reflector

    def _handler_of(self, fed: Fed) -> Callable[[Any, Any], None]:
        apply, own, state = fed.apply, fed.own, self.state

        def handle(old: Any, new: Any) -> None:
            namespace = None if own(old, new) else (new or old).metadata.namespace
            self.changed(namespace, apply(state, old, new))

        return handle if self._hook is None else self._hook.recording_handler(fed.resource, handle)


async def settle(filled: Callable[[], bool], *, poll_s: float = 0.2) -> None:
    """Wait until the caches are filled, then exempt the cached objects from Python's garbage collector."""
    while not filled():  # noqa: ASYNC110 - the end of a list is no event
        await asyncio.sleep(poll_s)
    log.info("caches are filled", objects=memory.freeze())
