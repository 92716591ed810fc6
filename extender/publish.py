"""Publishes the planner's configuration, timing and memory, so that commands which plan elsewhere use the same.

The ConfigMap is made with the extender's roles: the extender may only change it. Where it is missing, or may not be
changed, planning goes on; the log says so once, and it is tried again later.
"""

from collections.abc import Callable

import structlog

from extender.configfile import ConfigFile
from extender.planner.framework.session import Session
from extender.planner.memory import memory_of, memory_text, timing_text
from extender.planner.timing import Timing
from extender.writes import Lane, Writes
from muster.api.muster.configuration import PUBLISHED, Suspects, name_for, published
from muster.api.muster.pools import DEFAULT_POOL
from muster.kube.client import Client
from muster.kube.errors import APIError

log = structlog.get_logger()
AGAIN_S = 60.0
"""Time after which it is written again, if that failed, or as another replica may have led and written its own."""
MEMORY_S = 5.0
"""Least time between two writes for a change of the planner's memory alone: it changes with most cycles."""


class ConfigPublisher:
    """Writes the ConfigMap in this namespace when there is something else to say, and now and then."""

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
        wall_s: Callable[[], float],
    ) -> None:
        self._name = name_for(pool)
        self._client = client
        self._namespace = namespace
        self._config_file = config_file
        self._writes = writes
        self._suspects = suspects
        self._timing = timing_text(timing)
        self._wall_s = wall_s
        self._said: dict[str, str] = {}
        self._memory_at, self._again = 0.0, 0.0
        """Times from which on the memory is written if it has changed, and all is written again."""
        self._failed = ""
        """The last error, which is logged once."""

    def write(self, session: Session) -> None:
        """Start a write after a cycle, if something has changed or a minute is over."""
        now, data = self._wall_s(), published(*self._config_file.told, self._suspects) | self._timing
        changed = bool(data.items() - self._said.items())
        if not changed and now < self._memory_at:
            return
        memory = memory_text(memory_of(session))
        if changed or memory.items() - self._said.items() or now >= self._again:
            self._writes.start(Lane.WORDS, "configuration", self._name, lambda: self._patch(data | memory))

    def _patch(self, data: dict[str, str]) -> None:
        now = self._wall_s()
        self._said, self._memory_at, self._again = data, now + MEMORY_S, now + AGAIN_S
        try:
            self._client.merge_patch(PUBLISHED, self._name, {"data": data}, self._namespace)
        except APIError as error:  # not raised: it would be tried again in a second, and nothing waits for it
            if str(error) != self._failed:
                where = f"ConfigMap {self._namespace}/{self._name}"
                log.warning("the configuration is not published", where=where, why=str(error), again_s=AGAIN_S)
            self._failed = str(error)
        else:
            self._failed = ""
