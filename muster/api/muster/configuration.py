"""The planner's configuration, which the leading extender publishes and commands read.

The published configuration consists of the scheduler configuration, the timing, and the rules for suspect nodes. The
ConfigMap with the configuration also stores the data that the planner keeps between cycles (extender.planner.memory).

The configuration is in a ConfigMap, not in a Queue or Lease: only users who may read the chart's configuration can read
it.
"""

import hashlib
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct, field

from muster.api.base import Resource
from muster.api.kubernetes.meta import Object

NAME: Final = "muster-planner"
"""Name of the ConfigMap for the default node pool."""
AVOIDED: Final = "avoided.json"
"""Key in the ConfigMap under which an extender stores the nodes that gangs avoid, for its successor
(extender.publish)."""
TIMING: Final = "timing.json"
"""Key in the ConfigMap for the times and limits of planner cycles."""
MEMORY: Final = "memory.json"
"""Key in the ConfigMap for the data that the planner keeps between cycles."""
_TEXT, _SEEN, _REFUSED, _SUSPECTS = "config.yaml", "seen", "refused", "suspects.json"


class Suspects(Struct, frozen=True):
    """Rules that make a node suspect (docs/faults.md): the complete list, including changes by settings."""

    conditions: tuple[str, ...] = ()
    """Node conditions that make a node suspect, each as type=status."""
    taints: tuple[str, ...] = ()
    """Keys of the taints that make a node suspect."""


class PublishedConfig(Object):
    """The ConfigMap with the published configuration.

    The `data` of the ConfigMap is None until an extender has led for the first time.
    """

    data: Mapping[str, str] | None = field(default_factory=dict)

    @property
    def text(self) -> str | None:
        """The text of the configuration file in use, empty for the defaults; None before the first publication."""
        return (self.data or {}).get(_TEXT)

    @property
    def suspects(self) -> Suspects | None:
        """Return the rules for suspect nodes; None if they are unreadable or, by an older extender, not published."""
        text = (self.data or {}).get(_SUSPECTS)
        try:
            return msgspec.json.decode(text, type=Suspects) if text else None
        except msgspec.DecodeError:
            return None

    def answer_to(self, text: str) -> str | None:
        """Return why the extender has rejected this file; "" if the file is in use, None if it was not read yet."""
        data = self.data or {}
        return data.get(_REFUSED, "") if data.get(_SEEN) == digest(text) else None


PUBLISHED: Final = Resource("", "v1", "configmaps", "ConfigMap", PublishedConfig)


def name_for(pool: str) -> str:
    """Return the name of the ConfigMap of a node pool."""
    return f"{NAME}-{pool}" if pool else NAME


def digest(text: str) -> str:
    """Return the digest of a configuration file's text."""
    return hashlib.sha256(text.encode()).hexdigest()


def published(used: str, seen: str, refused: str, suspects: Suspects) -> dict[str, str]:
    """Return the ConfigMap's data: the configuration in use, an error in the last file, and rules for suspect nodes."""
    text = msgspec.json.encode(suspects).decode()
    return {_TEXT: used, _SEEN: digest(seen), _REFUSED: refused, _SUSPECTS: text}
