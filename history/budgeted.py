"""Resources that the budgets of queues count, from the cluster's Queues."""

import threading

from history.tally import Budgeted
from muster.api.names import ROOT_QUEUE
from muster.api.volcano.scheduling import QUEUES, Queue
from muster.kube.client import Client
from muster.kube.reflector import Reflector
from muster.volcano.access import lineage
from muster.volcano.queuelimits import limits_of


class BudgetedQueues:
    """Watcher of Queues; `resources` returns the current resources of their budgets."""

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
        """Return queue → resources of its own and its ancestors' budgets; None until all Queues are read."""
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
    """Return the resources of all budgets that count each queue; circles of parents are below the root."""
    own = {
        name: frozenset(each.resource for each in limits_of(queue.metadata.annotations).budgets)
        for name, queue in queues.items()
    }
    root = own.get(ROOT_QUEUE, frozenset())
    return {name: root.union(*(own[each.metadata.name] for each in lineage(name, queues.get))) for name in queues}
