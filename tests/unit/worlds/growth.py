"""Sizes of all collections that an object holds, so that a test can find collections that never shrink."""

from collections import Counter
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import msgspec

OURS = ("extender", "controller", "webhook", "web", "history", "muster", "certs", "gangs")


def sizes(root: object) -> Counter[str]:
    """Path of attributes → the entries of all collections there, together; objects of the API have none of their own.

    Collections within collections are counted at one path.
    """
    found: Counter[str] = Counter()
    seen: set[int] = set()
    todo: list[tuple[str, object]] = [(type(root).__name__, root)]
    while todo:
        path, each = todo.pop()
        if id(each) in seen or isinstance(each, msgspec.Struct | type):
            continue
        seen.add(id(each))
        inside = _entries(each)
        if inside is not None:
            entries = [*inside]
            found[path] += len(entries)
            todo += ((f"{path}[]", one) for one in entries if not isinstance(one, str | bytes | int | float))
        elif type(each).__module__.partition(".")[0] in OURS:
            todo += ((f"{path}.{name}", value) for name, value in _attributes(each))
    return found


def _entries(each: object) -> Iterator[object] | None:
    if isinstance(each, Mapping | WeakKeyDictionary | WeakValueDictionary):
        return (one for pair in list(each.items()) for one in (pair[1],))
    if isinstance(each, AbstractSet | list | tuple) or type(each).__name__ == "deque":
        return iter(list(each))  # type: ignore[call-overload]
    return None


def _attributes(each: Any) -> Iterator[tuple[str, object]]:
    names = {
        *getattr(each, "__dict__", {}),
        *(name for kind in type(each).__mro__ for name in getattr(kind, "__slots__", ())),
    }
    for name in sorted(names):
        if hasattr(each, name):
            yield name, getattr(each, name)


def grown(before: Counter[str], after: Counter[str], slack: int) -> dict[str, tuple[int, int]]:
    """Return the paths with more entries than before, beyond what may always be there."""
    return {path: (before[path], count) for path, count in sorted(after.items()) if count > before[path] + slack}
