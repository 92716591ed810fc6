"""Spares in the ledger: each seat once, on its node, or in the queue alone while it is lent."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.planner.ledger import Ledger
from extender.planner.ledgerentry import EntryKind
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import ClassTable
from extender.planner.state.podset import PodSetView
from extender.planner.state.spareentries import MOST_BORROWED, SpareEntries, borrowed_spares_of, lent, spare_runs_of
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.limits import PODS, SPARES
from muster.api.muster.placement import BorrowedSpares, NodeSpares, Placement, PlacementSpec, PlacementStatus
from muster.api.volcano.scheduling import PodGroup, PodGroupSpec

CLASSES = ClassTable()
CPU = CLASSES.of_amounts({"cpu": 7})
Seat, Lent = tuple[str, str, int], tuple[str, str, str, int]
Kept = tuple[list[Seat], list[Lent]]


def gang(
    name: str, seats: Sequence[Seat], loans: Sequence[Lent] = (), *, phase: str = "Planned", alive: int = 0
) -> GangView:
    """A gang that keeps these seats and borrows those: pod sets `a` and `b`, of which nobody knows the class of `b`."""
    spec = PlacementSpec(
        spares=[NodeSpares(pod_set, node, count) for pod_set, node, count in seats],
        borrows=[BorrowedSpares(lender, pod_set, node, count) for lender, pod_set, node, count in loans],
    )
    placement = Placement(spec=spec, status=PlacementStatus(phase=phase))  # type: ignore[arg-type]
    taken = dict.fromkeys(range(alive or 1), "n") if phase == "Bound" else {}
    sets = [PodSetView("a", CPU, 1, 0, taken, alive), PodSetView("b", None, 1, 0)]
    group = PodGroup(metadata=ObjectMeta(name=name, namespace="ns", uid=f"uid-{name}"), spec=PodGroupSpec(min_member=1))
    return GangView(f"ns/{name}", group, 0, sets, [], placement, 0)


COUNT, NODE = st.integers(1, 3), st.sampled_from(["n0", "n1"])
SEATS = st.lists(st.tuples(st.just("a"), NODE, COUNT), max_size=3, unique_by=lambda seat: seat[1])
LOANS = st.lists(st.tuples(st.sampled_from(["uid-g0", "uid-g1", "gone"]), st.just("a"), NODE, COUNT), max_size=2)
STEPS = st.lists(st.tuples(st.sampled_from(["g0", "g1", "g2"]), st.none() | st.tuples(SEATS, LOANS)), max_size=8)


@given(STEPS)
def test_entries_are_those_of_the_seats_that_are_kept_and_lent(steps: list[tuple[str, Kept | None]]) -> None:
    """Whoever keeps or borrows them, and in whatever order they come and go."""
    ledger, now = Ledger(CLASSES), dict[str, Kept]()
    spares = SpareEntries(ledger, CLASSES)
    for name, kept in steps:
        now.pop(name, None)
        now |= {name: kept} if kept is not None else {}
        spares.follow(f"ns/{name}", gang(name, *kept) if kept is not None else None)
        borrowed: Counter[tuple[str, str]] = Counter()
        for _, loans in now.values():
            for lender, _, node, count in loans:
                borrowed[lender, node] += count
        expected: Counter[tuple[str, str, int]] = Counter()
        for owner, (seats, _) in now.items():
            for _, node, count in seats:
                away = min(count, borrowed[f"uid-{owner}", node])
                expected[f"ns/{owner}", node, 7 * (count - away)] += away < count
                expected[f"ns/{owner}", "", 7 * away] += away > 0
        found = Counter((each.gang, each.node, each.cls.requests["cpu"]) for each in ledger.entries.values())
        assert found == +expected
        assert {(each.kind, each.queue) for each in ledger.entries.values()} <= {(EntryKind.SPARE, "default")}


def test_a_gang_that_is_made_again_keeps_its_seats_under_its_new_uid() -> None:
    """Who borrowed from the old one has nothing of the new one's."""
    ledger = Ledger(CLASSES)
    spares, again = SpareEntries(ledger, CLASSES), gang("g", [("a", "n0", 2)])
    spares.follow("ns/g", gang("g", [("a", "n0", 2)]))
    spares.follow("ns/b", gang("b", [], [("uid-g", "a", "n0", 2)]))
    assert [entry.node for entry in ledger.entries.values()] == [""]
    again.group.metadata.uid = "another"
    spares.follow("ns/g", again)
    assert [entry.node for entry in ledger.entries.values()] == ["n0"]


@pytest.mark.parametrize(("phase", "alive", "count"), [
    ("Planned", 0, 1), ("Binding", 0, 1), ("Bound", 1, 1), ("Bound", 0, 0), ("Abandoned", 0, 0),
])  # fmt: skip
def test_seats_count_for_as_long_as_the_gang_may_need_them(phase: str, alive: int, count: int) -> None:
    """While it is placed, and while it runs; loans too."""
    found = gang("g", [("a", "n0", 2)], [("x", "a", "n0", 1)], phase=phase, alive=alive)
    assert (len(spare_runs_of(found)), len(borrowed_spares_of(found))) == (count, count)
    assert spare_runs_of(gang("g", [])) == borrowed_spares_of(gang("g", [])) == []


def test_seats_that_cannot_be_are_none() -> None:
    """Of pods that nobody knows, on no node, or too many; and no gang needs so many loans."""
    seats = [("b", "n0", 1), ("c", "n0", 1), ("a", "", 1), ("a", "n0", PODS.value + 1), ("a", "n1", PODS.value)]
    assert [(each.node, each.count, cls) for each, cls in spare_runs_of(gang("g", seats))] == [("n1", PODS.value, CPU)]
    assert len(spare_runs_of(gang("g", [("a", f"n{number}", 1) for number in range(SPARES.value + 1)]))) == SPARES.value
    assert lent(borrowed_spares_of(gang("g", [], [("x", "a", "n0", 1)] * (MOST_BORROWED + 1)))) == {
        ("x", "a", "n0"): MOST_BORROWED
    }
