"""Whose past goes first: nobody's, as long as he has no more than an even share of the room."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from history.retain import FoldablePart, to_fold

NAMESPACES = st.sampled_from("abcde")
PIECES = st.lists(st.builds(FoldablePart, NAMESPACES, st.integers(0, 20), st.integers(1, 100)), max_size=40)
FIXED = st.dictionaries(NAMESPACES, st.integers(0, 200))
ROOM = st.integers(0, 2_000)


def left(pieces: list[FoldablePart], fixed: dict[str, int], folded: dict[str, int]) -> Counter[str]:
    """What each namespace has after it was folded, pieces of the same end together."""
    has = Counter(fixed)
    for piece in pieces:
        has[piece.namespace] += piece.size * (piece.until > folded.get(piece.namespace, -1))
    return has


def last_piece(pieces: list[FoldablePart], namespace: str, until: int) -> int:
    """The bytes of what a namespace gave last."""
    return sum(each.size for each in pieces if (each.namespace, each.until) == (namespace, until))


@given(PIECES, FIXED, ROOM)
def test_who_has_most_gives_and_nobody_without_need(
    pieces: list[FoldablePart], fixed: dict[str, int], room: int
) -> None:
    """Before their last piece went, who gave had more than an even share, and no less than who still could give.

    What fits stays as it is, and of all the pieces that went none could have stayed as the last one. What is over the
    room in the end is of namespaces that have nothing more to fold, or no more than an even share.
    """
    folded = to_fold(pieces, fixed, room)
    has = left(pieces, fixed, folded)
    more = {each.namespace for each in pieces if each.until > folded.get(each.namespace, -1)}
    last = {namespace: last_piece(pieces, namespace, until) for namespace, until in folded.items()}
    for namespace, size in last.items():
        before = has[namespace] + size
        assert before * len(has) > room
        assert all(has[other] <= before for other in more)
    if sum(has.values()) > room:
        assert all(has[namespace] * len(has) <= room for namespace in more)
    assert bool(folded) <= (sum(left(pieces, fixed, {}).values()) > room)
    assert not folded or sum(has.values()) + max(last.values()) > room
