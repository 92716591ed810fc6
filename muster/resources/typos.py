"""Names of resources that resemble known ones, for messages about typos."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

EVERYWHERE: Final = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})
"""Resources that every node has, even if the node does not list them."""
_CLOSE: Final = 0.7
_LONGEST: Final = 253 + 1 + 63
"""Maximum length of a domain, a slash and a name, in characters."""


def similar_resource(name: str, known: Iterable[str]) -> str:
    """Return the known resource with a similar name (with or without its domain); empty if there is none.

    The result is never a resource of another domain: `amd.com/gpu` is not a typo of `nvidia.com/gpu`.
    """
    if len(name) > _LONGEST:
        return ""
    domain, _, bare = name.lower().rpartition("/")
    there = {each.lower(): each for each in sorted(known)}
    there = {lower: each for lower, each in there.items() if _same_domain(domain, lower.rpartition("/")[0])}
    if found := get_close_matches(name.lower(), there, n=1, cutoff=_CLOSE):
        return there[found[0]]
    ends = (each for lower, each in there.items() if bare and _close(bare, lower.rpartition("/")[2]))
    return next(ends, "")


def _same_domain(typed: str, known: str) -> bool:
    """Return True if two domains differ by a typo, or if the user has written no domain."""
    return not typed or _close(typed, known) or _close(typed.partition(".")[0], known.partition(".")[0])


def _close(typed: str, known: str) -> bool:
    return bool(get_close_matches(typed, [known], 1, _CLOSE))
