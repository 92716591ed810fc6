"""Whose past goes first where the store has no room: an even share of it is everybody's own. Pure."""

import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Piece(NamedTuple):
    """A part of the past of one namespace that can be folded."""

    namespace: str
    until: int
    """Its end (ms); what was before it goes with it, or before it."""
    size: int
    """Bytes that come free."""


def to_fold(pieces: Iterable[Piece], fixed: Mapping[str, int], room: int) -> dict[str, int]:
    """Return up to when which namespaces have to be folded, so that all of it fits into `room` bytes.

    `fixed` are the bytes of each namespace that cannot be folded. Always the namespace that has most gives its oldest
    piece. Who has no more than an even share of the room gives nothing: what then does not fit cannot be helped.
    """
    past: dict[str, deque[Piece]] = defaultdict(deque)
    has = Counter(fixed)
    for piece in sorted(pieces, key=lambda each: each.until):
        past[piece.namespace].append(piece)
        has[piece.namespace] += piece.size
    over, found = sum(has.values()) - room, dict[str, int]()
    largest = [(-size, namespace) for namespace, size in has.items()]
    heapq.heapify(largest)
    while over > 0 and largest and has[largest[0][1]] * len(has) > room:
        _, namespace = heapq.heappop(largest)
        if past[namespace]:
            piece = past[namespace].popleft()
            found[namespace] = piece.until
            over -= piece.size
            has[namespace] -= piece.size
            heapq.heappush(largest, (-has[namespace], namespace))
    return found
