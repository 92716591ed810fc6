"""Resources that the budgets of queues count, by the Queues of the cluster."""

from collections.abc import Set as AbstractSet

from history.tally import Budgeted
from muster.api.names import QUEUE_LIMIT_KEYS, ROOT_QUEUE
from muster.api.volcano.scheduling import QUEUES, Queue
from muster.kube.client import Client
from muster.kube.reflector import Reflector
from muster.volcano.queuelimits import limits_of


class BudgetedQueues:
    """Follows the Queues; `resources` is what they say now."""

    def __init__(self, client: Client) -> None:
        self._known: dict[str, tuple[str, AbstractSet[str]]] = {}
        """Queue → the one above it, and the resources of its own budgets."""
        self._answer: Budgeted | None = None
        self._reflector: Reflector[Queue] = Reflector(client, QUEUES)
        self._reflector.add_handler(self.on_change)

    def start(self) -> None:
        """Start to follow them."""
        self._reflector.start()

    def stop(self) -> None:
        """End that."""
        self._reflector.stop()

    def on_change(self, old: Queue | None, new: Queue | None) -> None:
        """Take a Queue that came, changed or went."""
        known = new or old
        if known is None:
            return
        if new is None:
            self._known.pop(known.metadata.name, None)
        else:
            said = {key: text for key, text in new.metadata.annotations.items() if key in QUEUE_LIMIT_KEYS}
            own = frozenset(each.resource for each in limits_of(said).budgets)
            self._known[known.metadata.name] = new.spec.parent or ROOT_QUEUE, own
        self._answer = None

    def resources(self) -> Budgeted | None:
        """Return queue → resources of its budgets and of those above it; None until all Queues are read."""
        if not self._reflector.synced:
            return None
        if self._answer is None:
            known = dict(self._known)
            self._answer = {name: _above(name, known) for name in known}
        return self._answer


def _above(name: str, known: dict[str, tuple[str, AbstractSet[str]]]) -> AbstractSet[str]:
    """Return the resources of all budgets that count a queue; circles of parents are below the root."""
    found: set[str] = set()
    seen: set[str] = set()
    at = name
    while at in known and at not in seen:
        seen.add(at)
        parent, own = known[at]
        found |= own
        at = parent
    return found | (known[ROOT_QUEUE][1] if ROOT_QUEUE in known else set())
