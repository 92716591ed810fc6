"""Names of resources that are nearly known ones, for messages about slips of the pen."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final

EVERYWHERE: Final = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})
"""Resources that every node has, also without listing them."""
_CLOSE: Final = 0.7


def near_resource(name: str, known: Iterable[str]) -> str:
    """Return the known resource that was meant: nearly the same name, with or without its domain; empty if none is."""
    there = sorted(known)
    lower = {each.lower(): each for each in there}
    if found := get_close_matches(name.lower(), lower, n=1, cutoff=_CLOSE):
        return lower[found[0]]
    bare = name.lower().rpartition("/")[2]
    ends: Sequence[str] = [
        each for each in there if get_close_matches(bare, [each.lower().rpartition("/")[2]], 1, _CLOSE)
    ]
    return ends[0] if ends and bare else ""
