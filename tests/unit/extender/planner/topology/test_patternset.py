"""Many patterns at once find what each finds by itself."""

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from extender.planner.topology import members
from extender.planner.topology.members import PatternSet

ATOMS = ["a", "b", "node", "-", "[0-9]", "\\d", ".", "(a|b)", "^", "$", "\\b", "[^a]", "(?i)A", "\\x{e9}"]
PATTERNS = st.lists(
    st.tuples(st.sampled_from(ATOMS), st.sampled_from(["", "", "*", "+", "?", "{0,3}"])), min_size=1, max_size=5
)
TEXTS = st.text(alphabet="abAnode-019é\n", max_size=12)


@given(st.lists(PATTERNS, max_size=12), TEXTS)
def test_a_set_finds_what_single_patterns_find(parts: list[list[tuple[str, str]]], text: str) -> None:
    """In any order, and with equal patterns in it."""
    patterns = ["".join(atom + (often if atom not in "^$\\b" else "") for atom, often in each) for each in parts]
    found = PatternSet(patterns).found_in(text)
    assert sorted(found) == [number for number, each in enumerate(patterns) if re2.search(each, text)]


def test_more_patterns_than_fit_into_one_set() -> None:
    """They are spread over several, by their number and by their steps."""
    one = PatternSet([f"^n{number}$" for number in range(2 * members.MOST_PATTERNS + 5)])
    assert [one.found_in(f"n{number}") for number in (0, 255, 256, 516)] == [[0], [255], [256], [516]]
    assert one.found_in(f"n7\n{members._CANARY}") == []
    assert PatternSet([f"x{{900}}{number}" for number in range(100)]).found_in("x" * 900 + "77") == [7, 77]


def test_a_set_that_lacks_memory_is_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Down to single patterns, each of which has enough."""
    monkeypatch.setattr(members, "_MEMORY_BYTES", 20_000)
    patterns = [f"r.{{0,{number % 20}}}k.*{number}" for number in range(60)]
    found = PatternSet(patterns).found_in("rack-17")
    assert sorted(found) == [number for number, each in enumerate(patterns) if re2.search(each, "rack-17")]
