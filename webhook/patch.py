"""JSON patches (RFC 6902) built operation by operation, which is hundreds of times cheaper than comparing documents."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from webhook.objects.documents import find

Operation = dict[str, Any]
Part = str | int


class Why(NamedTuple):
    """Why something is added, and who says so: for `muster shape --explain`."""

    reason: str
    source: str


UNSAID = Why("", "")


def pointer(*path: Part) -> str:
    """A JSON pointer (RFC 6901): in a part `~` is written `~0` and `/` is written `~1`."""
    return "".join(map(_step, path))


@lru_cache(maxsize=4096)
def _step(part: Part) -> str:
    return "/" + str(part).replace("~", "~0").replace("/", "~1")


class Patch:
    """Operations on one document, which stays as it is. Missing parents are added; null counts as missing.

    `reasons` holds one reason for each operation.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.operations: list[Operation] = []
        self.reasons: list[Why] = []
        self._document = document
        self._made: set[tuple[Part, ...]] = set()

    def set(self, *path: Part, value: Any, why: Why = UNSAID) -> None:
        """Sets a member, whether it exists or not."""
        *parent, _ = path
        self._parent(tuple(parent), why)
        self._add(path, value, why)

    def append(self, *path: Part, value: Any, why: Why = UNSAID) -> None:
        """Adds an element at the end of a list, which is made when it is missing."""
        if path in self._made or find(self._document, path) is not None:
            self._add((*path, "-"), value, why)
        else:
            self.set(*path, value=[value], why=why)
            self._made.add(path)

    def _parent(self, path: tuple[Part, ...], why: Why) -> None:
        """Makes the maps above a member."""
        if not path or path in self._made or find(self._document, path) is not None:
            return
        self.set(*path, value={}, why=why)
        self._made.add(path)

    def _add(self, path: tuple[Part, ...], value: Any, why: Why) -> None:
        self.reasons.append(why)
        self.operations.append({"op": "add", "path": pointer(*path), "value": value})
