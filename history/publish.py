"""Publication of usage: the ConfigMap `muster-usage` for budgets of queues, and counters for Prometheus."""

import threading
import time
from collections.abc import Callable, Iterator

import msgspec
import structlog
from prometheus_client import Gauge
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from history.integral import TimeSpan
from history.model import MS
from history.recorder import HistoryRecorder
from history.tally import Budgeted, spans_of
from muster.api import names
from muster.api.kubernetes.core import CONFIG_MAPS
from muster.api.muster.configuration import PUBLISHED
from muster.api.muster.usage import AGAIN_S, KEY, PublishedUsage, read_usage
from muster.api.volcano.scheduling import QUEUES, Queue
from muster.kube.client import Client
from muster.kube.errors import APIError, Forbidden, NotFound
from muster.kube.reflector import Reflector
from muster.resources.vector import unit
from muster.volcano.access import lineage
from muster.volcano.queuelimits import limits_of

log = structlog.get_logger(__name__)

EVERY_S = 10.0
"""Minimum interval in seconds between two writes of the ConfigMap."""
SHOWN = 20
"""Maximum number of queues that a log line names."""
LEFT_OUT = Gauge(
    "muster_history_queues_left_out",
    "Queues with a budget whose usage is too long to be published: their gangs wait where the budget is enforced",
)
_MANAGER = "muster-history"
_TIMEOUT_S = 5.0


class Publisher:
    """Writer of the ConfigMap with the usage of queues.

    The ConfigMap is written if a member has got or left a node since the last write. The programs that read the
    ConfigMap add the usage of members that hold nodes at present. The ConfigMap is also written from time to time
    without a change, because it may have been deleted or overwritten.
    """

    def __init__(self, client: Client, namespace: str, clock_s: Callable[[], float] = time.time) -> None:
        self._client = client
        self._namespace = namespace
        self._clock_s = clock_s
        self._written_s = float("-inf")
        self._written: object = None

    def published(self) -> PublishedUsage | None:
        """Return the usage that any recorder published last; None if there is none.

        Raises APIError if the ConfigMap cannot be read.
        """
        try:
            return read_usage(self._client.get(PUBLISHED, names.USAGE, self._namespace).data or {})
        except NotFound:
            return None
        except Forbidden as error:  # the role of an earlier chart: the recorder runs without budgets
            log.warning("the role does not allow reading the published usage", configMap=names.USAGE, why=str(error))
            return None
        except ValueError as error:
            log.warning(
                "the published usage is unreadable, so it is not continued", configMap=names.USAGE, why=str(error)
            )
            return None

    def changed(self, recorder: HistoryRecorder) -> None:
        """Write the ConfigMap if a write is due. A failed write is retried when the next write is due."""
        tallies, now_s = recorder.tallies, self._clock_s()
        if tallies is None or 0 <= now_s - self._written_s < EVERY_S:
            return
        charged = frozenset((uid, each.queue) for uid, each in [*recorder.entries.holdings.items()])
        state = tallies.names, charged, tallies.closings, tallies.budgeted()
        if state == self._written and 0 <= now_s - self._written_s < AGAIN_S:
            return
        self._written_s = now_s
        document = tallies.document(round(now_s * MS), held(recorder))
        if document["left_out"]:
            shown = document["left_out"][:SHOWN]
            log.error("the usage of some queues is too long to be published", number=tallies.left_out, queues=shown)
        LEFT_OUT.set(tallies.left_out)
        content = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": names.USAGE, "labels": {names.MANAGED_BY: names.MANAGER}},
            "data": {KEY: msgspec.json.encode(document).decode()},
        }
        try:
            self._client.apply(
                CONFIG_MAPS, content, namespace=self._namespace, field_manager=_MANAGER, timeout_s=_TIMEOUT_S
            )
            self._written = state
        except APIError as error:
            log.warning("usage was not published; the write is retried", configMap=names.USAGE, why=str(error))


def held(recorder: HistoryRecorder) -> Iterator[TimeSpan[str]]:
    """Return the time spans in which members hold nodes at present, by queue.

    The recorder's entries are copied first, because the recorder may change them meanwhile.
    """
    return spans_of([*recorder.entries.holdings.values()])


class UsageCounters(Collector):
    """Collector of counters: resource-seconds that each queue has held and used this month; reset to 0 each month."""

    def __init__(self, recorder: HistoryRecorder, clock_s: Callable[[], float] = time.time) -> None:
        self._recorder = recorder
        self._clock_s = clock_s

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Yield the counters of held and of used resource-seconds, with their current values."""
        of_held = CounterMetricFamily(
            "muster_history_held_seconds",
            "Unit-seconds that members have held this month, by queue and resource; reset to 0 each month",
            labels=["queue", "resource"],
        )
        of_used = CounterMetricFamily(
            "muster_history_used_seconds",
            "The part of the held seconds during which a container was running, by queue and resource",
            labels=["queue", "resource"],
        )
        tallies = self._recorder.tallies
        amounts = {} if tallies is None else tallies.of["month"].at(round(self._clock_s() * MS), held(self._recorder))
        for (queue, resource), each in sorted(amounts.items()):
            whole = unit(resource) * MS
            of_held.add_metric([queue, resource], each.held / whole)
            of_used.add_metric([queue, resource], each.used / whole)
        yield of_held
        yield of_used


class BudgetedQueues:
    """Watcher of Queues and of the resources in their budgets."""

    def __init__(self, client: Client) -> None:
        self._lock = threading.Lock()
        self._answer: Budgeted | None = None
        self._reflector: Reflector[Queue] = Reflector(client, QUEUES)
        self._reflector.add_handler(self._changed)

    def start(self) -> None:
        """Start watching Queues."""
        self._reflector.start()

    def stop(self) -> None:
        """Stop watching."""
        self._reflector.stop()

    def resources(self) -> Budgeted | None:
        """Return the resources in the budgets that apply to each queue, keyed by queue; None until Queues are read."""
        if not self._reflector.synced:
            return None
        with self._lock:  # a Queue that changes meanwhile invalidates the result afterwards
            if self._answer is None:
                self._answer = _resources({each.metadata.name: each for each in self._reflector.store.list()})
            return self._answer

    def _changed(self, *_: Queue | None) -> None:
        with self._lock:
            self._answer = None


def _resources(queues: dict[str, Queue]) -> Budgeted:
    """Return a mapping from a queue to the resources of all budgets that include the queue.

    Queues whose parents form a cycle count as children of the root.
    """
    own = {
        name: frozenset(each.resource for each in limits_of(queue.metadata.annotations).budgets)
        for name, queue in queues.items()
    }
    root = own.get(names.ROOT_QUEUE, frozenset())
    return {name: root.union(*(own[each.metadata.name] for each in lineage(name, queues.get))) for name in queues}
