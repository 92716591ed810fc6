"""Devices as resources: requests fit by amounts exactly where each can be given devices of its own."""

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from extender.planner.dynamic import rows as module
from extender.planner.dynamic.claims import DeviceAlternative, DeviceKind
from extender.planner.dynamic.rows import WHOLE, Rows, rows_of

MOST_KINDS = 4
KINDS = [DeviceKind((DeviceAlternative(name),)) for name in "abcd"]


def rows(patterns: list[int], alls: tuple[DeviceKind, ...] = ()) -> Rows:
    """The resources of four kinds where there are devices of these patterns."""
    bits = {kind: number for number, kind in enumerate(KINDS)}
    return rows_of(bits, {kind: kind.name for kind in KINDS}, alls, sorted(set(patterns)))


def fits(resources: Rows, devices: list[int], requests: list[int]) -> bool:
    """Whether a node with these devices holds the requests (numbers of kinds, one device each), by amounts."""
    offered = resources.amounts(Counter(devices))
    asked: Counter[str] = Counter()
    for request in requests:
        asked.update(resources.asked(KINDS[request], 1))
    return all(offered.get(name, 0) >= amount for name, amount in asked.items())


def matched(devices: list[int], requests: list[int]) -> bool:
    """Whether each request can be given a device of its own: by trying (a path that augments, request by request)."""
    holder: dict[int, int] = {}

    def give(request: int, seen: set[int]) -> bool:
        for number, pattern in enumerate(devices):
            if pattern >> requests[request] & 1 and number not in seen:
                seen.add(number)
                if number not in holder or give(holder[number], seen):
                    holder[number] = request
                    return True
        return False

    return all(give(request, set()) for request in range(len(requests)))


NODES = st.lists(st.lists(st.integers(0, 2**MOST_KINDS - 1), max_size=5), min_size=1, max_size=4)


@given(NODES, st.lists(st.integers(0, MOST_KINDS - 1), max_size=6))
@example([[0b1001, 0b1100, 0b0110], [0b0001, 0b0010, 0b0100, 0b1000]], [0, 1, 2, 3])  # a union of two unions is short
def test_amounts_say_exactly_whether_every_request_gets_devices(nodes: list[list[int]], requests: list[int]) -> None:
    """On each node of a cluster, whatever kinds its devices are of together."""
    resources = rows([pattern for node in nodes for pattern in node])
    for node in nodes:
        assert fits(resources, node, requests) == matched(node, requests)


@given(NODES, st.data())
def test_what_is_in_use_leaves_what_the_other_devices_are(nodes: list[list[int]], data: st.DataObject) -> None:
    """Amounts of a node less those of some of its devices are the amounts of the rest."""
    resources = rows([pattern for node in nodes for pattern in node])
    for node in nodes:
        gone = data.draw(st.integers(0, len(node)))
        whole, used = Counter(resources.amounts(Counter(node))), resources.used(Counter(node[:gone]))
        whole.subtract(used)
        assert +whole == Counter(resources.amounts(Counter(node[gone:])))


@given(NODES, st.integers(0, MOST_KINDS - 1))
def test_all_devices_of_a_kind_are_had_only_where_nobody_has_one(nodes: list[list[int]], number: int) -> None:
    """And once somebody has all of them nobody gets one."""
    kind = KINDS[number]
    resources = rows([pattern for node in nodes for pattern in node], alls=(kind,))
    asked = resources.asked_all(kind)
    for node in nodes:
        offered = resources.amounts(Counter(node))
        mine = [pattern for pattern in node if pattern >> number & 1]
        assert all(offered.get(name, 0) >= amount for name, amount in asked.items()) == bool(mine)
        for one in mine:
            left = Counter(offered)
            left.subtract(resources.used({one: 1}))
            assert any(left[name] < amount for name, amount in asked.items())
        left = Counter(offered)
        left.subtract(asked)
        if mine:
            assert any(left[name] < amount for name, amount in resources.asked(kind, 1).items())


def test_a_large_gpu_is_one_of_the_gpus() -> None:
    """Kind b is a part of kind a: of two a's of which one is a b, who has the b leaves one a and no b."""
    resources = rows([0b01, 0b11])
    node = [0b01, 0b11]
    assert [fits(resources, node, asked) for asked in ([0, 1], [0, 0], [1, 1])] == [True, True, False]
    assert set(resources.asked(KINDS[1], 1)) == {KINDS[0].name, KINDS[1].name}
    assert set(resources.asked(KINDS[0], 1)) == {KINDS[0].name}


def test_all_is_more_than_any_node_has() -> None:
    """A slice holds 128 devices, and a node has some slices."""
    assert WHOLE > 128 * 1024


def test_a_few_unions_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Further ones are left to kube-scheduler: the number of resources stays small, whatever claims ask for."""
    patterns = list(range(1, 16))
    whole = rows(patterns)
    monkeypatch.setattr(module, "MOST_UNIONS", 3)
    assert (len(whole.masks), len(rows(patterns).masks)) == (15, 7)
