"""The planner's configuration, as the leading extender publishes it and commands read it.

That is the scheduler configuration, and of the extender's settings timing and the list of what makes a node suspect.
It is also what its process remembers from one cycle to the next (extender.planner.memory).

It is a ConfigMap, and not part of a Queue or Lease: only those read it who may read the chart's own configuration.
"""

import hashlib
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct, field

from muster.api.base import Resource
from muster.api.kubernetes.meta import Object

NAME: Final = "muster-planner"
"""Of the default node pool's."""
AVOIDED: Final = "avoided.json"
"""Key of the nodes that gangs leave out, which an extender keeps for the next one (extender.publish)."""
TIMING: Final = "timing.json"
"""Key of the times and limits that cycles depend on."""
MEMORY: Final = "memory.json"
"""Key of what the planner's process remembers for some seconds."""
_TEXT, _SEEN, _REFUSED, _SUSPECTS = "config.yaml", "seen", "refused", "suspects.json"


class Suspects(Struct, frozen=True):
    """Rules by which a node is suspect (docs/faults.md): the whole list, with what the settings add and take away."""

    conditions: tuple[str, ...] = ()
    """Each as type=status."""
    taints: tuple[str, ...] = ()
    """Their keys."""


class PublishedConfig(Object):
    """The ConfigMap: its `data` is None until an extender has led."""

    data: Mapping[str, str] | None = field(default_factory=dict)

    @property
    def text(self) -> str | None:
        """The file as it is used, empty for the defaults; None if none was published yet."""
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


def published(used: str, seen: str, refused: str, suspects: Suspects) -> dict[str, str]:
    """Return the data: the text that is used, what became of the one that was seen last, and the list of suspects."""
    told = msgspec.json.encode(suspects).decode()
    return {_TEXT: used, _SEEN: digest(seen), _REFUSED: refused, _SUSPECTS: told}
