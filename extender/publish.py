"""Publishes what the planner runs with, so that commands which plan elsewhere use the same.

The ConfigMap is made with the extender's roles: the extender may only change it. Where it is missing, or may not be
changed, planning goes on; the log says so once, and it is tried again later.
"""

from collections.abc import Callable

import structlog

from extender.configfile import ConfigFile
from extender.writes import Lane, Writes
from muster.api.muster.configuration import PUBLISHED, Suspects, name_for, published
from muster.api.muster.pools import DEFAULT_POOL
from muster.kube.client import Client
from muster.kube.errors import APIError

log = structlog.get_logger()
AGAIN_S = 60.0
"""Time after which it is written again, if that failed, or as another replica may have led and written its own."""


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
        wall_s: Callable[[], float],
    ) -> None:
        self._name = name_for(pool)
        self._client = client
        self._namespace = namespace
        self._config_file = config_file
        self._writes = writes
        self._suspects = suspects
        self._wall_s = wall_s
        self._said: dict[str, str] | None = None
        self._again = 0.0
        self._failed = ""
        """The last error, which is logged once."""

    def write(self) -> None:
        """Start a write, if something has changed or a minute is over."""
        data = published(*self._config_file.told, self._suspects)
        if data != self._said or self._wall_s() >= self._again:
            self._writes.start(Lane.WORDS, "configuration", self._name, lambda: self._patch(data))

    def _patch(self, data: dict[str, str]) -> None:
        self._said, self._again = data, self._wall_s() + AGAIN_S
        try:
            self._client.merge_patch(PUBLISHED, self._name, {"data": data}, self._namespace)
        except APIError as error:  # not raised: it would be tried again in a second, and nothing waits for it
            if str(error) != self._failed:
                where = f"ConfigMap {self._namespace}/{self._name}"
                log.warning("the configuration is not published", where=where, why=str(error), again_s=AGAIN_S)
            self._failed = str(error)
        else:
            self._failed = ""
