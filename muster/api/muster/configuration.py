"""The planner's configuration, which the leading extender publishes and commands read.

The configuration contains the scheduler configuration, the timing, the rules for suspect nodes, and the memory that the
process keeps between cycles (extender.planner.memory).

The configuration is a ConfigMap, not part of a Queue or Lease, so that only users who may read the chart's
configuration can read it.
"""

import hashlib
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct, field

from muster.api.base import Resource
from muster.api.kubernetes.meta import Object

NAME: Final = "muster-planner"
"""Name for the default node pool."""
AVOIDED: Final = "avoided.json"
"""Key of the nodes that gangs avoid, which an extender stores for its successor (extender.publish)."""
TIMING: Final = "timing.json"
"""Key of the times and limits for cycles."""
MEMORY: Final = "memory.json"
"""Key of the short-term memory of the planner's process."""
_TEXT, _SEEN, _REFUSED, _SUSPECTS = "config.yaml", "seen", "refused", "suspects.json"


class Suspects(Struct, frozen=True):
    """Rules that make a node suspect (docs/faults.md): the complete list, including changes by settings."""

    conditions: tuple[str, ...] = ()
    """Conditions, each as type=status."""
    taints: tuple[str, ...] = ()
    """Their keys."""


class PublishedConfig(Object):
    """The ConfigMap: its `data` is None until an extender has led."""

    data: Mapping[str, str] | None = field(default_factory=dict)

    @property
    def text(self) -> str | None:
        """The active file, empty for the defaults; None before the first publication."""
        return (self.data or {}).get(_TEXT)

    @property
    def suspects(self) -> Suspects | None:
        """Return the rules for suspect nodes; None if unpublished, as by an older extender, or unreadable."""
        text = (self.data or {}).get(_SUSPECTS)
        try:
            return msgspec.json.decode(text, type=Suspects) if text else None
        except msgspec.DecodeError:
            return None

    def answer_to(self, text: str) -> str | None:
        """Return the reason why the extender refused this file; "" if it uses the file, None if it has not seen it."""
        data = self.data or {}
        return data.get(_REFUSED, "") if data.get(_SEEN) == digest(text) else None


PUBLISHED: Final = Resource("", "v1", "configmaps", "ConfigMap", PublishedConfig)


def name_for(pool: str) -> str:
    """Return the name of the ConfigMap of a node pool's pair."""
    return f"{NAME}-{pool}" if pool else NAME


def digest(text: str) -> str:
    """Return the digest of a file."""
    return hashlib.sha256(text.encode()).hexdigest()


def published(used: str, seen: str, refused: str, suspects: Suspects) -> dict[str, str]:
    """Return the data: the active text, the result of the last seen text, and the rules for suspect nodes."""
    text = msgspec.json.encode(suspects).decode()
    return {_TEXT: used, _SEEN: digest(seen), _REFUSED: refused, _SUSPECTS: text}
