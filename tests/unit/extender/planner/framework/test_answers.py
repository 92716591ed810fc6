"""Answers of plugins: sets of nodes in their order, and causes by their codes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.planner import reasons
from extender.planner.framework import answers
from extender.planner.framework.answers import EVERYWHERE, Causes, NodeSet
from extender.planner.state.podclass import ClassTable

NODES = 6
COLUMNS = st.none() | st.permutations(range(NODES)).flatmap(lambda all_: st.integers(0, NODES).map(lambda n: all_[:n]))
NUMBERS = st.lists(st.integers(0, 3), min_size=NODES, max_size=NODES)


@given(COLUMNS, st.booleans(), st.none() | NUMBERS, st.none() | NUMBERS, NUMBERS, st.permutations(range(NODES)))
def test_a_set_of_nodes_has_an_order_and_bounds(
    columns: list[int] | None, ranked: bool, along: list[int] | None, most: list[int] | None, room: list[int],  # noqa: FBT001 - drawn
    by_name: list[int],
) -> None:  # fmt: skip
    """As ranked, else beside each other, else by the names; outside of it there is no room."""
    own = None if columns is None else np.array(columns, dtype=np.int64)
    nodes = NodeSet(own, ranked, *(None if each is None else np.array(each) for each in (along, most)), sliced=True)
    members = list(range(NODES)) if columns is None else columns
    allowed = np.array([number > 1 for number in room])
    within = nodes.within(allowed)
    assert within.columns.tolist() == [column for column in members if room[column] > 1]
    assert (within.ranked, within.sliced) == (ranked, False)
    if columns is None:
        expected = by_name
    elif ranked:
        expected = columns
    elif along is not None:
        expected = sorted(columns, key=lambda column: along[column])
    else:
        expected = [column for column in by_name if column in columns]
    assert nodes.order(np.array(by_name)).tolist() == expected
    bound = [room[n] if most is None or columns is None else min(room[n], most[n]) for n in range(NODES)]
    cls = ClassTable().of_amounts({"cpu": 1})
    inside = [number in members for number in range(NODES)]
    assert nodes.limit(np.array(room), cls).tolist() == [bound[n] * inside[n] for n in range(NODES)]
    assert EVERYWHERE.limit(np.array(room), cls).tolist() == room
    other = replace(nodes, most_of=b"another class").limit(np.array(room), cls)
    assert other.tolist() == [room[n] * inside[n] for n in range(NODES)]


def test_equal_words_have_one_code_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Further ones share that of others; code 0 is no cause."""
    monkeypatch.setattr(answers, "MAX_CAUSES", 3)
    causes = Causes()
    codes = [causes.code(words) for words in ("", "a", "b", "a", "c", "d", "e")]
    assert codes[:6] == [0, 1, 2, 1, 3, 4]
    assert causes.of[4] == reasons.cause.OTHER
    assert (codes[6], causes.code("f"), causes.code(reasons.cause.OTHER), causes.code("b")) == (4, 4, 4, 2)
    assert [str(each) for each in causes.of[:3]] == ["fits", "a", "b"]
