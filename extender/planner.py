"""The planner thread: one cycle after every burst of changes, while this replica leads."""

import threading
import time
from collections.abc import Callable

import structlog
from prometheus_client import Counter, Gauge, Histogram

from extender.actions.progress import AVOID_S, TrackPlacements
from extender.cluster import Cluster
from extender.commit import Committer
from extender.framework.decisions import Unschedulable
from extender.framework.hooks import Causes
from extender.framework.registry import Action, Plugin, run
from extender.framework.session import Session
from extender.framework.snapshot import Snapshot, take
from extender.state.gangs import avoided_nodes
from muster.api.gang import Seat

log = structlog.get_logger()
CYCLE = Histogram(
    "muster_cycle_seconds", "Duration of a planning cycle", ["part"], buckets=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3)
)
WAITING = Gauge("muster_gangs_waiting", "Gangs that wait for a placement, with a reason")
FAILED_CYCLES = Counter("muster_cycles_failed_total", "Planning cycles that ended with an exception")

DEBOUNCE_S = 0.005
REST = 2.0
"""After a cycle the planner rests so many times the CPU time that it took: while events pour in, more time is left to
those who answer kube-scheduler, and each cycle sees more of them."""
MAX_REST_S = 0.05
IDLE_S = 1.0


class Planner:
    """Plans whenever `wake` was called, and at least every second for what depends on time (deadlines)."""

    def __init__(
        self,
        cluster: Cluster,
        committer: Committer,
        actions: list[Action],
        plugins: list[Plugin],
        *,
        active: Callable[[], bool],
        arrived: Callable[[], dict[str, frozenset[Seat]]],
        wall_s: Callable[[], float],
        monotonic_s: Callable[[], float],
        recovery_s: float = 30.0,
        staleness_grace_s: float = 60.0,
    ) -> None:
        self._cluster = cluster
        self._committer = committer
        self._actions: list[Action] = [TrackPlacements({}, recovery_s), *actions]
        self._plugins = plugins
        self._staleness_grace_s = staleness_grace_s
        self.pages: dict[str, Callable[[], object]] = {}
        """What plugins show over HTTP, by name; as of the last cycle."""
        self.session: Session | None = None
        """The last cycle."""
        self._active = active
        self._arrived = arrived
        self._wall_s = wall_s
        self._monotonic_s = monotonic_s
        self._causes = Causes()
        self._avoided: dict[tuple[str, str], float] = {}
        self._was_active = False
        self._woken = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="planner", daemon=True)

    def wake(self) -> None:
        """Something changed."""
        self._woken.set()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the cycle it is in."""
        self._stopped.set()
        self._woken.set()
        self._thread.join(timeout=10)

    def _run(self) -> None:
        took_s = 0.0
        while not self._stopped.is_set():
            self._woken.wait(IDLE_S)
            self._stopped.wait(min(max(DEBOUNCE_S, REST * took_s), MAX_REST_S))
            self._woken.clear()
            if self._stopped.is_set() or not self._ready():
                continue
            began_s = time.thread_time()
            try:
                self.cycle()
            except Exception:
                FAILED_CYCLES.inc()
                log.exception("planning cycle failed; the next change or second tries again")
            took_s = time.thread_time() - began_s

    def _ready(self) -> bool:
        active = self._active() and self._cluster.synced
        if active and not self._was_active:
            log.info("planning")
            with self._cluster.lock:
                self._cluster.state.touch_all()
        self._was_active = active
        return active

    def cycle(self) -> None:
        """Plan once and carry the decisions out."""
        started = self._monotonic_s()
        with self._cluster.lock:
            snapshot = take(self._cluster.state)
        now = self._wall_s()
        session = Session(snapshot, now=now, causes=self._causes)
        session.avoided = self._still_avoided(snapshot, now)
        session.staleness_grace_s = self._staleness_grace_s
        session.arrived = self._arrived()
        run(session, self._actions, self._plugins)
        self.pages, self.session = session.ask("http_handler"), session
        self._remember_avoided(session, now)
        WAITING.set(len(session.decided(Unschedulable)))
        CYCLE.labels("plan").observe(self._monotonic_s() - started)
        if self._active():
            self._committer.carry_out(session)
            CYCLE.labels("whole").observe(self._monotonic_s() - started)

    def _still_avoided(self, snapshot: Snapshot, now: float) -> dict[str, set[str]]:
        """What this process remembers, and what placements say (it may have been an earlier process that was told)."""
        self._avoided = {pair: until for pair, until in self._avoided.items() if until > now}
        result = avoided_nodes(snapshot.gangs, now)
        for gang, node in self._avoided:
            result.setdefault(gang, set()).add(node)
        return result

    def _remember_avoided(self, session: Session, now: float) -> None:
        for gang, nodes in session.avoided.items():
            for node in nodes:
                self._avoided.setdefault((gang, node), now + AVOID_S)
