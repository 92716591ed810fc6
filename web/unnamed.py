"""Takes the names of what a caller may not see out of a report. Pure.

The planner's own messages name nobody in another namespace; but what would help a gang is told with the names of those
in its way. In reports these are written `Job namespace/name`, and queues as `queue name`.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from history.scope import Scope

T = TypeVar("T")
_NAMED: Final = re.compile(
    r"(?P<kind>\b[A-Z][A-Za-z]* )?(?<![-\w./])(?P<namespace>[a-z0-9][-a-z0-9]*)/"
    r"(?P<name>[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?)"
)
_QUEUE: Final = re.compile(r"\b(?P<word>[Qq]ueue) (?P<name>[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?)")


@dataclass(frozen=True)
class Unnamed:
    """Words without the names of others."""

    scope: Scope
    namespaces: Collection[str]
    """All that there are: what looks like a name in one of them is one."""
    queues: Collection[str]
    """Those of which the caller may not know."""
    called: Callable[[str, str], str]
    """Namespace and name of a gang, its workload or a pod → what to call it."""

    def text(self, value: str) -> str:
        """Return a sentence."""
        if value in self.queues:
            return ""
        return _QUEUE.sub(self._queue, _NAMED.sub(self._name, value))

    def of(self, report: T) -> T:
        """Return a report."""
        return msgspec.convert(self._walk(msgspec.to_builtins(report)), type(report))

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self._walk(each) for each in value]
        if isinstance(value, dict):
            return {self.text(key): self._walk(each) for key, each in value.items()}
        return value

    def _name(self, found: re.Match[str]) -> str:
        namespace = found["namespace"]
        other = not self.scope.has(namespace) and (found["kind"] is not None or namespace in self.namespaces)
        return self.called(namespace, found["name"]) if other else found[0]

    def _queue(self, found: re.Match[str]) -> str:
        return f"another {found['word'].lower()}" if found["name"] in self.queues else found[0]
