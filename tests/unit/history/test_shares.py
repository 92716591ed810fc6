"""Whose past goes first: nobody's, as long as he has no more than an even share of the room."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from history.retain import Piece, to_fold

NAMESPACES = st.sampled_from("abcde")
PIECES = st.lists(st.builds(Piece, NAMESPACES, st.integers(0, 20), st.integers(1, 100)), max_size=40)
FIXED = st.dictionaries(NAMESPACES, st.integers(0, 200))
ROOM = st.integers(0, 2_000)


def left(pieces: list[Piece], fixed: dict[str, int], folded: dict[str, int]) -> Counter[str]:
    """What each namespace has after it was folded, pieces of the same end together."""
    has = Counter(fixed)
    for piece in pieces:
        has[piece.namespace] += piece.size * (piece.until > folded.get(piece.namespace, -1))
    return has


@given(PIECES, FIXED, ROOM)
def test_nobody_gives_while_he_has_no_more_than_his_share(
    pieces: list[Piece], fixed: dict[str, int], room: int
) -> None:
    """Who is folded had more than an even share of the room before his last piece went."""
    folded = to_fold(pieces, fixed, room)
    has = left(pieces, fixed, folded)
    for namespace, until in folded.items():
        last = sum(each.size for each in pieces if each.namespace == namespace and each.until == until)
        assert (has[namespace] + last) * len(has) > room


@given(PIECES, FIXED, ROOM)
def test_all_fits_or_nobody_can_give_more(pieces: list[Piece], fixed: dict[str, int], room: int) -> None:
    """What is over the room in the end is of namespaces that have nothing more to fold."""
    folded = to_fold(pieces, fixed, room)
    has = left(pieces, fixed, folded)
    if sum(has.values()) > room:
        for namespace, size in has.items():
            more = any(each.namespace == namespace and each.until > folded.get(namespace, -1) for each in pieces)
            assert not more or size * len(has) <= room


@given(PIECES, FIXED, ROOM)
def test_nothing_goes_without_need(pieces: list[Piece], fixed: dict[str, int], room: int) -> None:
    """What fits stays as it is, and of all the pieces that go none could have stayed as the last one."""
    folded = to_fold(pieces, fixed, room)
    before, after = (sum(left(pieces, fixed, each).values()) for each in ({}, folded))
    assert bool(folded) <= (before > room)
    last = [
        sum(each.size for each in pieces if (each.namespace, each.until) == (namespace, until))
        for namespace, until in folded.items()
    ]
    assert not last or after + max(last) > room


@given(PIECES, FIXED, ROOM)
def test_who_has_more_gives_first(pieces: list[Piece], fixed: dict[str, int], room: int) -> None:
    """Who still has a past to give never has more than who gave had before his last piece."""
    folded = to_fold(pieces, fixed, room)
    has = left(pieces, fixed, folded)
    for namespace, until in folded.items():
        last = sum(each.size for each in pieces if (each.namespace, each.until) == (namespace, until))
        for piece in pieces:
            if piece.until > folded.get(piece.namespace, -1):
                assert has[piece.namespace] <= has[namespace] + last
