"""Keeps the nodes that gangs leave out, as members failed there, for the next process.

A Placement says which nodes its gang leaves out. A Job that restarts gets another PodGroup, and with that another
Placement, which has the words of the first from memory. So that a process which ends between the two takes nothing
with it, they also stand in the ConfigMap that the extender publishes its configuration in: written before anything
acts on the failure, read when a process begins to lead.
"""

from collections.abc import Callable, Iterable, Iterator

import msgspec
import structlog

from extender.cluster import Live
from extender.planner.actions.avoidance import is_remembered
from extender.planner.memory import Failures
from muster.api.muster.configuration import AVOIDED, PUBLISHED
from muster.kube.client import Client
from muster.kube.errors import APIError

log = structlog.get_logger()
MOST_BYTES = 256 * 1024
"""A ConfigMap may have a megabyte; beyond this the gangs whose members failed first are left out."""


class FailureMemory:
    """Writes and reads that ConfigMap in this namespace; `wall_s` returns seconds since the epoch."""

    def __init__(
        self, client: Client, cluster: Live, namespace: str, name: str, *, wall_s: Callable[[], float]
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._namespace = namespace
        self._name = name
        self._wall_s = wall_s

    def keep(self) -> None:
        """Write what is remembered now. A failure is logged: the Placements say it still."""
        known = self._cluster.ask(lambda state: dict(state.failures.remembered))
        try:
            self._patch({AVOIDED: encoded(known, self._wall_s())})
        except APIError as error:
            log.warning("nodes that gangs leave out are not kept for the next process", why=str(error))

    def recall(self) -> None:
        """Take over what the leader before has kept; what is known here already is newer."""
        try:
            kept = read(self._patch({}).get(AVOIDED, ""))
        except APIError as error:
            log.warning("nodes that gangs left out before are only known from their Placements", why=str(error))
            return
        except msgspec.DecodeError as error:
            log.warning("the list of nodes that gangs leave out cannot be read", where=self._name, why=str(error))
            return
        known = self._cluster.ask(lambda state: set(state.failures.remembered))
        for key, avoided in kept.items():
            if key not in known:
                self._cluster.ask(lambda state, key=key, avoided=avoided: state.failures.remember(key, avoided))  # type: ignore[misc]

    def _patch(self, data: dict[str, str]) -> dict[str, str]:
        """Change the data and return it as it is then: the extender may change this ConfigMap, and not read it."""
        patch = {"data": data} if data else {}
        return dict(self._client.merge_patch(PUBLISHED, self._name, patch, self._namespace).data or {})


def encoded(known: Failures, now: float) -> str:
    """Return the entries that count still, of the gangs that came last as far as there is room, as JSON."""
    return "{" + ",".join(reversed([*_that_fit(_newest_first(known, now))])) + "}"


def _newest_first(known: Failures, now: float) -> Iterator[str]:
    for key, avoided in reversed(known.items()):
        left = [each for each in avoided if is_remembered(each, now)]
        if left:
            yield f"{msgspec.json.encode(key).decode()}:{msgspec.json.encode(left).decode()}"


def _that_fit(items: Iterable[str]) -> Iterator[str]:
    size = 0
    for item in items:
        size += len(item) + 1
        if size > MOST_BYTES:
            return
        yield item


def read(text: str) -> Failures:
    """Return what `encoded` has written; raises DecodeError."""
    return msgspec.json.decode(text, type=Failures) if text else {}
