"""The order of the tests: groups of equal length for planes, and durations that are stored."""

import itertools
import json
from pathlib import Path
from typing import Any, NamedTuple

import ordering
import pytest
from hypothesis import given
from hypothesis import strategies as st

PARTS = ("one", "two", "three")
SECONDS = st.dictionaries(st.text("abc", min_size=1, max_size=3), st.floats(0.1, 100), max_size=12)


@given(SECONDS)
def test_modules_are_divided_among_parts_of_about_equal_length(seconds: dict[str, float]) -> None:
    """Each module is in one part; no part is longer than the shortest one by more than its longest module."""
    found = ordering.divided(seconds, PARTS)
    assert found.keys() == seconds.keys()
    load = {part: sum(each for name, each in seconds.items() if found[name] == part) for part in PARTS}
    assert max(load.values()) - min(load.values()) <= max(seconds.values(), default=0.0) + 1e-6


@given(SECONDS)
def test_every_worker_divides_them_alike(seconds: dict[str, float]) -> None:
    """Whatever the order in which it found them."""
    backwards = dict(reversed(seconds.items()))
    assert ordering.divided(seconds, PARTS) == ordering.divided(backwards, PARTS)


class Named(NamedTuple):
    """What the order of a test follows."""

    nodeid: str


@given(st.integers(0, 100))
def test_a_seed_shuffles_groups_files_and_tests(seed: int) -> None:
    """Groups stay together, and so do files within a group; another seed gives another order."""
    items: list[Any] = [Named(f"file{n % 5}.py::test_{n}") for n in range(40)]
    groups = {item.nodeid: f"group{int(item.nodeid[4]) % 2}" for item in items}
    first = list(items)
    ordering.shuffle(first, groups, seed)
    assert sorted(first) == sorted(items)
    for names in ([groups[item.nodeid] for item in first], [item.nodeid[:5] for item in first]):
        assert len(list(itertools.groupby(names))) == len(set(names))
    again, other = list(reversed(items)), list(items)
    ordering.shuffle(again, groups, seed)
    ordering.shuffle(other, groups, seed + 1)
    assert again == first != other


def test_durations_are_stored_for_what_ran_and_kept_for_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short ones are not worth a line, and a test that has become short loses its line."""
    monkeypatch.setattr(ordering, "FILE", tmp_path / "durations.json")
    ordering.store({"a": 3.04, "b": 5.0, "short": 0.001})
    assert ordering.stored() == {"a": 3.0, "b": 5.0}
    ordering.store({"a": 0.001, "c": 1.0})
    assert ordering.stored() == {"b": 5.0, "c": 1.0}
    assert json.loads((tmp_path / "durations.json").read_text()) == {"b": 5.0, "c": 1.0}
