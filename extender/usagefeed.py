"""Reads what queues have used from the ConfigMap `muster-usage` of Muster's namespace.

The recorder of the history writes it, and no other account has the right to. Where it is missing or cannot be read
budgets are not enforced: a history that is down costs money, and keeps nobody from working.
"""

from collections.abc import Callable
from typing import Any, Final

import structlog
from msgspec import field

from muster.api.base import Resource
from muster.api.kubernetes import core, meta
from muster.api.muster.usage import Usage, read_usage
from muster.api.names import USAGE
from muster.kube.client import Client
from muster.kube.reflector import Reflector

log = structlog.get_logger()


WAIT_S: Final = 15.0
"""Time for which the planner waits for it at the start, so that no gang slips by."""


class _ConfigMap(meta.Object):
    data: dict[str, Any] = field(default_factory=dict)


_USAGE: Final = Resource(
    core.CONFIG_MAPS.group, core.CONFIG_MAPS.version, core.CONFIG_MAPS.plural, core.CONFIG_MAPS.kind, _ConfigMap
)


class UsageFeed:
    """Follows the ConfigMap; `current` is what it said last."""

    def __init__(self, client: Client, namespace: str, *, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._began_s = monotonic_s()
        self.current: Usage | None = None
        """None while there is none that can be read."""
        self._failed = ""
        """The last reason, which is logged once."""
        self._reflector: Reflector[_ConfigMap] = Reflector(
            client, _USAGE, namespace=namespace, field_selector=f"metadata.name={USAGE}"
        )
        self._reflector.add_handler(self.on_change)

    def ready(self) -> bool:
        """Return True once it was read, if there is one, or was waited for long enough."""
        return self._reflector.synced or self._monotonic_s() - self._began_s > WAIT_S

    def start(self) -> None:
        """Start to follow it. Runs on the loop."""
        self._reflector.start()

    def stop(self) -> None:
        """End that."""
        self._reflector.stop()

    def on_change(self, old: _ConfigMap | None, new: _ConfigMap | None) -> None:
        """Take the ConfigMap; None: it is gone."""
        del old
        try:
            self.current = read_usage(new.data) if new is not None else None
            why = ""
        except ValueError as error:
            self.current, why = None, str(error)
        if why and why != self._failed:
            log.warning("the usage of queues cannot be read, so budgets are not enforced", configmap=USAGE, why=why)
        self._failed = why
