"""Writers of the planner's configuration, timing and memory to a ConfigMap, for commands that run their own planner.

The chart creates the ConfigMap, and the extender may only change it. If the ConfigMap is missing or cannot be changed,
planning continues, the error is logged once, and the write is retried later.

The ConfigMap also contains the nodes that gangs avoid because members failed on them. A Placement stores the avoided
nodes of its gang, but a restarted Job has a new PodGroup and a new Placement. The planner's memory carries the avoided
nodes over to the new Placement, but the process may stop in between. Therefore the avoided nodes are written into the
ConfigMap, for the next leader, before any other write that depends on the failure.
"""

from collections.abc import Callable
from math import inf

import msgspec
import structlog

from extender.cluster import Live
from extender.configfile import ConfigFile
from extender.planner.actions.avoidance import is_remembered
from extender.planner.framework.session import Session
from extender.planner.memory import Failures, memory_of, memory_text, timing_text
from extender.planner.timing import Timing
from extender.writes import Lane, Writes
from muster.api.muster.configuration import AVOIDED, PUBLISHED, Suspects, name_for, published
from muster.api.muster.pools import DEFAULT_POOL
from muster.kube.client import Client
from muster.kube.errors import APIError

log = structlog.get_logger()
AGAIN_S = 60.0
"""Time in seconds after which unchanged values are written again. A write may have failed, or another replica may have
written its own values.
"""
MEMORY_S = 5.0
"""Minimum interval in seconds between two writes if only the planner's memory has changed, as in most cycles."""
MOST_BYTES = 256 * 1024
"""Maximum size in bytes of the published failures of gangs; the whole ConfigMap may have 1 MiB. Beyond this size, the
gangs with the oldest failures are left out."""


class ConfigPublisher:
    """Writer of the ConfigMap with the planner's inputs, which writes after changes and periodically."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        config_file: ConfigFile,
        writes: Writes,
        *,
        pool: str = DEFAULT_POOL,
        suspects: Suspects,
        timing: Timing,
        monotonic_s: Callable[[], float],
    ) -> None:
        self._name = name_for(pool)
        self._client = client
        self._namespace = namespace
        self._config_file = config_file
        self._writes = writes
        self._suspects = suspects
        self._timing = timing_text(timing)
        self._monotonic_s = monotonic_s
        self._published: dict[str, str] = {}
        self._memory_at, self._again = -inf, -inf
        """Times of the next write if only the planner's memory has changed, and of the next write of unchanged values.
        """
        self._failed = ""
        """The last error, which has already been logged."""

    def write(self, session: Session) -> None:
        """Start a write after a cycle if the planner's inputs have changed, or if a minute has passed."""
        now, data = self._monotonic_s(), published(*self._config_file.last_report, self._suspects) | self._timing
        changed = bool(data.items() - self._published.items())
        if not changed and now < self._memory_at:
            return
        memory = memory_text(memory_of(session))
        if changed or memory.items() - self._published.items() or now >= self._again:
            self._writes.start(Lane.WORDS, "configuration", self._name, lambda: self._patch(data | memory))

    def _patch(self, data: dict[str, str]) -> None:
        now = self._monotonic_s()
        self._published, self._memory_at, self._again = data, now + MEMORY_S, now + AGAIN_S
        try:
            self._client.merge_patch(PUBLISHED, self._name, {"data": data}, self._namespace)
        except APIError as error:  # not raised, because a retry a second later is useless
            if str(error) != self._failed:
                where = f"ConfigMap {self._namespace}/{self._name}"
                log.warning("the configuration is not published", where=where, why=str(error), again_s=AGAIN_S)
            self._failed = str(error)
        else:
            self._failed = ""


class FailureMemory:
    """Reader and writer of the ConfigMap's list of nodes that gangs avoid; `wall_s` returns seconds since the epoch."""

    def __init__(
        self, client: Client, cluster: Live, namespace: str, name: str, *, wall_s: Callable[[], float]
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._namespace = namespace
        self._name = name
        self._wall_s = wall_s

    def keep(self) -> None:
        """Write the nodes that gangs avoid.

        An error is logged but not raised, because the gangs' Placements also contain the nodes to avoid.
        """
        known = self._cluster.ask(lambda state: dict(state.failures.remembered))
        try:
            self._patch({AVOIDED: encoded(known, self._wall_s())})
        except APIError as error:
            log.warning("nodes that gangs avoid are not saved for the next process", why=str(error))

    def recall(self) -> None:
        """Load the avoided nodes that the previous leader wrote; keep newer entries of this process."""
        try:
            kept = read_failures(self._patch({}).get(AVOIDED, ""))
        except APIError as error:
            log.warning("nodes that gangs avoided earlier are known only from their Placements", why=str(error))
            return
        except msgspec.DecodeError as error:
            log.warning("the list of nodes that gangs avoid cannot be read", where=self._name, why=str(error))
            return
        known = self._cluster.ask(lambda state: set(state.failures.remembered))
        for key, avoided in kept.items():
            if key not in known:
                self._cluster.ask(lambda state, key=key, avoided=avoided: state.failures.remember(key, avoided))  # type: ignore[misc]

    def _patch(self, data: dict[str, str]) -> dict[str, str]:
        """Patch the ConfigMap's data and return the result; the extender is allowed to patch but not to read it."""
        patch = {"data": data} if data else {}
        return dict(self._client.merge_patch(PUBLISHED, self._name, patch, self._namespace).data or {})


def encoded(known: Failures, now: float) -> str:
    """Return the entries that are still valid as JSON; if they are too large, only the latest gangs' entries."""
    entries: list[str] = []
    size = 0
    for key, avoided in reversed(known.items()):
        left = [each for each in avoided if is_remembered(each, now)]
        entry = f"{msgspec.json.encode(key).decode()}:{msgspec.json.encode(left).decode()}" if left else ""
        size += len(entry) + bool(left)
        if size > MOST_BYTES:
            break
        entries += [entry] if left else []
    return "{" + ",".join(reversed(entries)) + "}"


def read_failures(text: str) -> Failures:
    """Decode a text that `encoded` has returned. Raises msgspec.DecodeError for any other text."""
    return msgspec.json.decode(text, type=Failures) if text else {}
