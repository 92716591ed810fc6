"""JSON patches (RFC 6902) for unvalidated JSON, built operation by operation.

Building a patch from operations is hundreds of times cheaper than comparing two documents.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from muster.api.unchecked import value_at

Operation = dict[str, Any]
Part = str | int


class Why(NamedTuple):
    """The reason and the source of an addition, for `muster shape --explain`."""

    reason: str
    source: str


NO_REASON = Why("", "")


def pointer(*path: Part) -> str:
    """Return a JSON pointer (RFC 6901), in which `~` in a key is escaped as `~0` and `/` as `~1`."""
    return "".join(map(_step, path))


@lru_cache(maxsize=4096)
def _step(part: Part) -> str:
    return "/" + str(part).replace("~", "~0").replace("/", "~1")


class Patch:
    """Operations on one document, each with a reason.

    The document itself is not changed. Operations for missing parents are added automatically. No operation is added
    below a value of the wrong type. The API server could not apply such an operation, and its error message would not
    help.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.operations: list[Operation] = []
        self.reasons: list[Why] = []
        self._document = document
        self._made: set[tuple[Part, ...]] = set()

    def set(self, *path: Part, value: Any, why: Why = NO_REASON) -> None:
        """Set the value of a field, which may already exist."""
        *parent, _ = path
        if parent and not self._exists(tuple(parent)):
            self.set(*parent, value={}, why=why)
            self._made.add(tuple(parent))
        self._add(path, value, why)

    def append_item(self, *path: Part, value: Any, why: Why = NO_REASON) -> None:
        """Append an element to a list, which is created if it is missing."""
        if self._exists(path):
            self._add((*path, "-"), value, why)
        else:
            self.set(*path, value=[value], why=why)
            self._made.add(path)

    def _exists(self, path: tuple[Part, ...]) -> bool:
        return path in self._made or value_at(self._document, path) is not None

    def _add(self, path: tuple[Part, ...], value: Any, why: Why) -> None:
        if _fits(self._document, path):
            self.reasons.append(why)
            self.operations.append({"op": "add", "path": pointer(*path), "value": value})


def _fits(document: Any, path: tuple[Part, ...]) -> bool:
    """Return True if each parent on the path has the right type: a list if an index follows, otherwise a map."""
    value = document
    for part in path:
        if value is None or part == "-":
            return value is None or isinstance(value, list)
        if not isinstance(value, list if isinstance(part, int) else dict):
            return False
        value = value_at(value, (part,))
    return True
