"""Each commit has one of the steps that take turns, and all of them can be asked for."""

import pytest
from check.steps import chosen, turns
from hypothesis import given
from hypothesis import strategies as st

NAMES = ["a", "b", "c"]


@given(st.integers(0, 2**160 - 1), st.lists(st.text(min_size=1), min_size=1, unique=True))
def test_a_commit_has_one_turn_always_the_same(number: int, names: list[str]) -> None:
    """The others stand in for it in the order of the list, each once."""
    commit = f"{number:040x}"
    first, others = chosen(names, commit, "")
    assert len(first) == 1
    order = [*first, *others]
    start = names.index(first[0])
    assert order == names[start:] + names[:start]
    assert chosen(names, commit, "") == (first, others)


def test_commits_share_the_turns() -> None:
    """Those whose hashes follow each other have one after the other."""
    assert [chosen(NAMES, f"{number:07x}" + "0" * 33, "")[0] for number in range(4)] == [["a"], ["b"], ["c"], ["a"]]


@pytest.mark.parametrize(("asked", "names"), [("all", ["a", "b", "c"]), ("c a", ["c", "a"])])
def test_turns_are_asked_for(asked: str, names: list[str]) -> None:
    """Nobody stands in for what was asked for."""
    assert chosen(NAMES, "0" * 40, asked) == (names, [])


def test_an_unknown_turn_is_refused() -> None:
    """With the names that there are."""
    with pytest.raises(ValueError, match="no turn is called d: --turns takes all, or some of a, b, c"):
        chosen(NAMES, "0" * 40, "a d")


def test_a_turn_has_the_tests_of_its_second_chance() -> None:
    """The oldest Kubernetes counts for the files that run again, too."""
    step = turns("1.32")["test-versions"]
    assert "VERSIONS=1.32" in step.command
    assert step.variables == {"MUSTER_KUBERNETES": "1.32"}
