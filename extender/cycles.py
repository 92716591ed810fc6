"""The planner thread, which runs a planning cycle after every burst of changes, as long as this replica leads.

The event loop copies the live state; the planner thread makes decisions on the copy; the committer writes the
decisions. Each write names the version of the object or the epoch of the placement. Therefore the API server rejects a
write to an object that has changed meanwhile. After a rejected write, the planner decides again, because the object's
change also wakes the planner.
"""

import threading
import time
from collections import Counter as Counts
from collections.abc import Callable, Mapping
from types import MappingProxyType

import structlog
from prometheus_client import Counter, Gauge, Histogram

from extender.cluster import Live
from extender.commit import Committer
from extender.planner.cycle import Planning
from extender.planner.framework.config import SchedulerConfig
from extender.planner.framework.decisions import Unschedulable
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import Snapshot, take_snapshot
from extender.planner.state.state import PlannerState
from extender.planner.timing import DEFAULTS, Timing
from extender.queuemetrics import QueueMetrics
from extender.record.hook import RecordingHook
from muster.api.muster.gang import Slot
from muster.api.muster.usage import PublishedUsage

log = structlog.get_logger()
CYCLE = Histogram(
    "muster_cycle_seconds",
    "Duration of planning cycles: the whole cycle, or only planning",
    ["part"],
    buckets=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3),
)
WAITING = Gauge("muster_gangs_waiting", "Gangs that wait for a placement, with a reason")
EXCLUDED = Gauge("muster_set_aside", "Objects that are excluded because they cannot be evaluated, by kind", ["kind"])
SUSPECT = Gauge("muster_suspect_nodes", "Nodes that get no new pods because a condition or taint shows a fault")
FAILED_CYCLES = Counter("muster_cycles_failed_total", "Planning cycles that ended with an exception")

DEBOUNCE_S = 0.005
"""Delay in seconds between the first change and the cycle; the pods of a gang are created one after another."""
REST = 10.0
"""Length of the planner's pause after a cycle, as a multiple of the cycle's CPU time.

In a burst of events, the pause leaves CPU time for verbs and watches, and each cycle processes more events. With 5,000
nodes and a pause of only twice the cycle's time, cycles that changed nothing used two thirds of the extender's CPU
time.
"""
MAX_REST_S = 0.1
"""Maximum pause in seconds after a cycle; after a longer cycle, the pause is as long as the cycle."""
BURST_S = 0.3
"""CPU time in seconds that cycles for a namespace may use without a pause, after a quiet period of the namespace.

A new gang causes about five cycles until its pods are bound. If hundreds of gangs wait, each cycle takes ten
milliseconds or more.
"""
EQUAL_WAITING = 100
"""Number of waiting gangs from which their namespaces are charged more than half of a cycle's CPU time."""
IDLE_S = 1.0
IDLE = 10.0
"""Minimum interval between cycles without changes, which only check deadlines, as a multiple of a cycle's CPU time."""


class Pauses:
    """The pauses between cycles, and the namespaces in which a change ends a pause.

    A change ends the pause if its namespace has used less CPU time than `BURST_S`. So a namespace with many changes
    does not delay the gangs of other namespaces. One part of a cycle's CPU time is charged to the namespaces whose
    objects have changed, in proportion to their changes. The other part, at least one half, is charged to the
    namespaces of the waiting gangs, because each waiting gang makes cycles longer. Without waiting gangs, the whole
    time is charged to the changes. All charges together fall by 1/(1 + `REST`) of the time that passes.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changes: dict[str, int] = {}
        """Maps a namespace, or "" for objects without one, to the number of changes since the last cycle."""
        self._used_s: dict[str, float] = {}
        """Maps a namespace to the CPU time charged to it; namespaces without a charge are omitted to save memory."""
        self._since_s = 0.0

    def changed(self, namespace: str) -> bool:
        """Count a change; return True if the change ends a pause. Any thread may call this method."""
        with self._lock:
            self._changes[namespace] = self._changes.get(namespace, 0) + 1
            return self._used_s.get(namespace, 0.0) < BURST_S

    def after(self, took_s: float, now_s: float, waiting: Mapping[str, int] = MappingProxyType({})) -> float:
        """Charge a cycle's CPU time to namespaces; return the pause after the cycle in seconds.

        `waiting` maps a namespace to its number of waiting gangs; `now_s` is the monotonic time at the end of the
        cycle.
        """
        with self._lock:
            changes, self._changes = self._changes, {}
            earned_s = (now_s - self._since_s) / (1 + REST) / max(len(self._used_s), 1)
            left = {name: used_s - earned_s for name, used_s in self._used_s.items()}
            number = sum(waiting.values())
            waiting_s = took_s * max(1 / 2, number / (EQUAL_WAITING + number)) if number else 0.0
            for shares, charge_s in ((changes, took_s - waiting_s), (waiting, waiting_s)):
                each_s = charge_s / max(sum(shares.values()), 1)
                for name, count in shares.items():
                    left[name] = min(BURST_S, max(left.get(name, 0.0), 0.0) + each_s * count)
            self._used_s = {name: used_s for name, used_s in left.items() if used_s > 0}
            self._since_s = now_s
        return min(REST * took_s, max(MAX_REST_S, took_s))


class Planner:
    """The planner thread, which plans after each `wake`, and otherwise every second or, for long cycles, less often."""

    def __init__(
        self,
        cluster: Live,
        committer: Committer,
        configuration: SchedulerConfig,
        *,
        active: Callable[[], bool],
        arrived: Callable[[], dict[str, frozenset[Slot]]],
        wall_s: Callable[[], float],
        monotonic_s: Callable[[], float],
        timing: Timing = DEFAULTS,
        hook: RecordingHook | None = None,
        usage: Callable[[Snapshot, float], PublishedUsage | None] = lambda _, _now: None,
        report_budgets: Callable[[Session], object] = lambda _: None,
    ) -> None:
        """Create the planner; `hook` records planning cycles, and `usage` returns the past usage of queues."""
        self._hook = hook
        self._usage = usage
        self._report_budgets = report_budgets
        self._cluster = cluster
        self._committer = committer
        self._planning = Planning(configuration, timing)
        self._next_configuration: SchedulerConfig | None = None
        self.pages: Mapping[str, Callable[[], object]] = {}
        """Maps the name of a plugin's HTTP page to the page, as of the last cycle."""
        self.session: Session | None = None
        """The session of the last cycle."""
        self._replaced: Session | None = None
        """The session of the cycle before the last, kept because a verb on the loop may still use it."""
        self._active = active
        self._arrived = arrived
        self._wall_s = wall_s
        self._monotonic_s = monotonic_s
        self._reported_exclusions: set[tuple[str, str, str]] = set()
        """Kind, name and reason of each excluded object that has already been logged."""
        self._queue_metrics = QueueMetrics()
        self._was_active = False
        self._pauses = Pauses()
        self._waiting: Mapping[str, int] = {}
        """Maps a namespace to the number of its waiting gangs, as of the last cycle."""
        self._woken = threading.Event()
        self._hurried = threading.Event()
        """Set by a change that ends the current pause."""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="planner", daemon=True)

    def wake(self, namespace: str | None = "") -> None:
        """Request a cycle because of a change in a namespace; calls within a short time cause a single cycle.

        A write by the extender itself (None) ends no pause, because the cycle that decided the write has already taken
        it into account.
        """
        # checks are cheaper than calling set() again, which matters for 50,000 pods
        if namespace is not None and self._pauses.changed(namespace) and not self._hurried.is_set():
            self._hurried.set()
        if not self._woken.is_set():
            self._woken.set()

    def reconfigure(self, configuration: SchedulerConfig) -> None:
        """Use this valid configuration from the next cycle on; the call returns at once."""
        self._next_configuration = configuration
        self.wake()

    def start(self) -> None:
        """Start the thread; cycles begin once this replica leads and its caches are filled."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread after the current cycle."""
        self._stopped.set()
        self._hurried.set()
        self._woken.set()
        self._thread.join(timeout=10)

    def _run(self) -> None:
        rested_s, took_s = 0.0, 0.0
        while not self._stopped.is_set():
            self._woken.wait(max(IDLE_S, IDLE * took_s))
            self._stopped.wait(DEBOUNCE_S)
            self._hurried.wait(max(0.0, rested_s - self._monotonic_s()))
            self._hurried.clear()
            self._woken.clear()
            if self._stopped.is_set() or not self._ready():
                continue
            began_s = time.thread_time()
            try:
                self.cycle()
            except Exception:
                FAILED_CYCLES.inc()
                log.exception("planning cycle failed; the planner repeats it after the next change or after one second")
            took_s = time.thread_time() - began_s
            rested_s = self._monotonic_s() + self._pauses.after(took_s, self._monotonic_s(), self._waiting)

    def _ready(self) -> bool:
        active = self._active() and self._cluster.synced
        if active and not self._was_active:
            log.info("planning")
            self._committer.recall_failures()
            self._cluster.ask(PlannerState.touch_all)
        elif self._was_active and not active:
            # another replica leads now, so this replica's memory of reserved capacity becomes outdated
            self._cluster.ask(lambda state: state.ledger.reserved.replace([], 0.0))
        self._was_active = active
        return active

    def cycle(self) -> None:
        """Run one cycle and carry out its decisions."""
        started = self._monotonic_s()
        configuration, self._next_configuration = self._next_configuration, None
        if configuration is not None:  # between two cycles, so that no cycle uses both configurations
            self._planning.configure(configuration)

        # 1. Snapshot: copy the arrays and the views of gangs. Only this step runs on the loop, because every event and
        # every verb of kube-scheduler waits for it.
        snapshot, arrived, unreadable = self._cluster.ask(self._take_snapshot)

        # 2. Decide: gather the other inputs (each once, because two answers could differ), open a session, call
        # plugins, run actions (see extender.planner.cycle). Nothing outside the session changes.
        now = self._wall_s()
        scaling = self._committer.scaling
        scaling.refresh(now)
        session = self._planning.run(
            snapshot,
            now,
            provisioning=dict(scaling.requests),
            provisioning_served=scaling.served,
            arrived=arrived,
            gone=self._committer.repairs.gone,
            usage=self._usage(snapshot, now),
        )
        if self._hook is not None:
            self._hook.decided(session)

        # 3. Publish: pages of plugins, scores for the prioritize verb, metrics.
        self._replaced, self.pages, self.session = self.session, session.hooks.http_handler.call(), session
        self._report_excluded(session, unreadable)
        waiting = session.decided(Unschedulable)
        self._waiting = Counts(each.gang.group.metadata.namespace for each in waiting)
        WAITING.set(len(waiting))
        SUSPECT.set(sum(fault.kind == "suspect" for fault in snapshot.faults.values()))
        self._queue_metrics.update(session)
        CYCLE.labels("plan").observe(self._monotonic_s() - started)

        # 4. Commit, if this replica still leads; otherwise another one may be planning by now. The next cycle begins
        # once the API server has answered the writes that it depends on: placements and evictions (see
        # extender.writes).
        if self._active():
            self._report_budgets(session)
            self._committer.carry_out(session)
            # after the writes, because the placed slots of a gang that starts now replace its reservation
            start_s = session.reservations.start_s
            self._cluster.ask(lambda state: state.ledger.reserved.replace(session.reserved_rooms, start_s))
            CYCLE.labels("whole").observe(self._monotonic_s() - started)

    def _take_snapshot(
        self, state: PlannerState
    ) -> tuple[Snapshot, dict[str, frozenset[Slot]], dict[str, dict[str, str]]]:
        """Return a snapshot, the members at the barrier, and the reasons for exclusions, all as of one moment."""
        if self._replaced is not None:
            self._replaced.forget()
            self._replaced = None
        snapshot = take_snapshot(state)
        if self._hook is not None:
            self._hook.snapshot_taken()
        state.ledger.reserved.snapshot_taken()
        self._committer.writes.snapshot_taken()
        return snapshot, self._arrived(), {"node": dict(state.exclusions.nodes), "pod": dict(state.exclusions.pods)}

    def _report_excluded(self, session: Session, unreadable: dict[str, dict[str, str]]) -> None:
        """Count the excluded objects, and log each excluded object once, with the reason."""
        gangs = {gang.key: gang.excluded for gang in session.snapshot.excluded}
        seen = set()
        for kind, reasons in {**unreadable, "gang": gangs}.items():
            EXCLUDED.labels(kind).set(len(reasons))
            seen |= {(kind, name, reason) for name, reason in reasons.items()}
        for kind, name, reason in seen - self._reported_exclusions:
            log.warning("excluded because it cannot be evaluated", kind=kind, name=name, why=reason)
        self._reported_exclusions = seen
