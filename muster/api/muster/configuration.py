"""The configuration that the planner runs with, as the leading extender publishes it and commands read it.

It is a ConfigMap, and not part of a Queue or Lease: only those read it who may read the chart's own configuration.
"""

import hashlib
from collections.abc import Mapping
from typing import Final

from msgspec import field

from muster.api.base import Resource
from muster.api.kubernetes.meta import Object

NAME: Final = "muster-planner"
"""Of the default node pool's."""
_TEXT, _SEEN, _REFUSED = "config.yaml", "seen", "refused"


class PublishedConfig(Object):
    """The ConfigMap: its `data` is None until an extender has led."""

    data: Mapping[str, str] | None = field(default_factory=dict)

    @property
    def text(self) -> str | None:
        """The file as it is used, empty for the defaults; None if none was published yet."""
        return (self.data or {}).get(_TEXT)

    def answer_to(self, text: str) -> str | None:
        """Return the reason why the extender refused this file, "" if it uses it, None if it has not seen it yet."""
        data = self.data or {}
        return data.get(_REFUSED, "") if data.get(_SEEN) == digest(text) else None


PUBLISHED: Final = Resource("", "v1", "configmaps", "ConfigMap", PublishedConfig)


def name_for(pool: str) -> str:
    """Return the name of the ConfigMap of a node pool's pair."""
    return f"{NAME}-{pool}" if pool else NAME


def digest(text: str) -> str:
    """Return what stands for a whole file."""
    return hashlib.sha256(text.encode()).hexdigest()


def published(used: str, seen: str, refused: str) -> dict[str, str]:
    """Return the data: the text that is used, and what became of the one that was seen last."""
    return {_TEXT: used, _SEEN: digest(seen), _REFUSED: refused}
