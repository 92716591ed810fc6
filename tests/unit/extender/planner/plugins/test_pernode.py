"""Results and labels of nodes are cached from cycle to cycle, and equal newly computed ones."""

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from extender_world import CPU, World
from hypothesis import given
from hypothesis import strategies as st

from extender.planner.framework import nodelabels
from extender.planner.framework.nodelabels import Columns, LabelCache, NodeLabels, tolerated_by
from extender.planner.framework.snapshot import Snapshot, take_snapshot
from extender.planner.plugins.nodeorder import Preferences
from extender.planner.plugins.pernode import Answers, PerNode
from extender.planner.state.podclass import ClassTable, PodClass
from muster.api.kubernetes.constraints import NodeSelector, NodeSelectorTerm, Toleration
from muster.api.kubernetes.core import Node, PodSpec, Taint
from muster.api.kubernetes.meta import LabelSelectorRequirement

CHANGES = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["", "a", "b", "3", "gone"])), max_size=4)
VALUES = st.sampled_from(["a", "b", "2", "3", "node-1"])
REQUIREMENTS = st.builds(
    LabelSelectorRequirement,
    st.sampled_from(["zone", "none", "metadata.name"]),
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Like"]),
    st.lists(VALUES, max_size=2),
)
TERMS = st.builds(NodeSelectorTerm, st.lists(REQUIREMENTS, max_size=2), st.lists(REQUIREMENTS, max_size=1))
SELECTORS = st.builds(NodeSelector, st.lists(TERMS, max_size=2))


def labels_of(cache: LabelCache, snapshot: Snapshot) -> NodeLabels:
    """The labels of a snapshot's nodes."""
    return NodeLabels(cache, snapshot.nodes, snapshot.changed, snapshot.generation)


def holds(requirement: LabelSelectorRequirement, labels: Mapping[str, str]) -> bool:
    """kube-scheduler's rule, for one node."""
    value, values = labels.get(requirement.key), requirement.values
    match requirement.operator:
        case "In" | "NotIn":
            return (value in values) == (requirement.operator == "In")
        case "Exists" | "DoesNotExist":
            return (value is None) == (requirement.operator == "DoesNotExist")
        case "Gt" | "Lt" if len(values) == 1 and re.fullmatch("[0-9]", value or "") and values[0].isdigit():
            return (
                int(value or 0) > int(values[0]) if requirement.operator == "Gt" else int(value or 0) < int(values[0])
            )
        case _:
            return False


def matches(selector: NodeSelector, node: Node | None, *, labels_only: bool) -> bool:
    """The rule of alternatives, for one node."""
    meta = node.metadata if node else None
    labels, fields = (meta.labels, {"metadata.name": meta.name}) if meta else ({}, {})
    return any(
        all(holds(each, labels) for each in term.match_expressions)
        and (labels_only or all(holds(each, fields) for each in term.match_fields))
        for term in selector.node_selector_terms
        if term.match_expressions or term.match_fields
    )


@given(rounds=st.lists(st.tuples(CHANGES, SELECTORS), min_size=1, max_size=6), labels_only=st.booleans())
def test_cached_results_are_correct(
    rounds: Sequence[tuple[Sequence[tuple[int, str]], NodeSelector]], *, labels_only: bool
) -> None:
    """As nodes are added, deleted and changed; only changed nodes are evaluated again."""
    world, kept, cache, cls = World(checked=False), PerNode(), LabelCache(), ClassTable().of_spec(PodSpec())
    asked: list[int] = []
    for changes, selector in rounds:
        for number, zone in changes:
            known = world.state.nodes.index.get(f"node-{number}")
            if zone != "gone":
                world.node(f"node-{number}", labels={"zone": zone} if zone else {})
            elif known is not None:
                world.state.on_node(world.state.nodes.nodes[known], None)
        snapshot = take_snapshot(world.state)
        labels, everywhere = labels_of(cache, snapshot), np.arange(len(snapshot.nodes))
        right = [matches(selector, node, labels_only=labels_only) for node in snapshot.nodes]
        there = labels.there(everywhere)
        assert there.tolist() == [node is not None for node in snapshot.nodes]
        found = labels.matching(selector, everywhere, labels_only=labels_only)
        assert (found & there).tolist() == (np.array(right, dtype=np.bool_) & there).tolist()
        asked.clear()

        zones = [node.metadata.labels.get("zone") if node else None for node in snapshot.nodes]
        numbers = np.array([ord(zone or "-") for zone in zones], dtype=np.int16)

        def number_of(_cls: PodClass, columns: Columns, numbers: Answers = numbers) -> Answers:
            asked.extend(columns)
            return numbers[columns]

        answers = kept.answers_for(cls, snapshot, number_of)
        assert {snapshot.name(column) for column in asked} <= {f"node-{number}" for number, _ in changes} | {""}
        assert kept.answers_for(cls, snapshot, number_of) is answers
        assert answers.tolist() == numbers.tolist()
        codes, count = labels.of("zone")
        assert [code < 0 for code in codes] == [zone is None for zone in zones]
        assert len({*zip(codes.tolist(), zones, strict=True)}) == len({*zones}) == len({*codes.tolist()})
        assert codes.max(initial=-1) < count


def test_answers_that_depend_on_something_else_are_asked_for_again_when_that_is_other() -> None:
    """Of nodes that did not change, too."""
    snapshot, kept, cls = take_snapshot(World().nodes(2).state), PerNode(), ClassTable().of_spec(PodSpec())
    first = kept.answers_for(cls, snapshot, lambda _, columns: columns, other="x")
    assert kept.answers_for(cls, snapshot, lambda _, columns: columns, other="x") is first
    assert kept.answers_for(cls, snapshot, lambda _, columns: columns * 0 + 7, other="y")[:2].tolist() == [7, 7]


def test_keys_and_values_that_are_gone_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody can name a key that no node has, and nodes that are replaced for ever have ever new keys and values."""
    world, cache, counts = World().nodes(1), LabelCache(), []
    size = len(take_snapshot(world.state).nodes)
    monkeypatch.setattr(nodelabels, "MOST_CELLS", 3 * size)
    for number in range(300):
        labels_of(cache, take_snapshot(world.state)).of(f"never-{number}")
        world.node("node-0", labels={"zone": str(number), f"key-{number}": ""})
        labels = labels_of(cache, take_snapshot(world.state))
        counts.append(labels.of("zone")[1])
        labels.of(f"key-{number}")
        assert len(cache.known) <= 3
    assert max(counts) <= 2 * size + 1
    assert len(cache.present) <= 2 * size + 2


def test_a_session_that_is_over_is_answered_of_its_own_nodes() -> None:
    """The verb prioritize may ask the last one while the next cycle runs."""
    world, cache = World().nodes(1, labels={"zone": "a"}), LabelCache()
    before = labels_of(cache, take_snapshot(world.state))
    world.node("node-0", labels={"zone": "b"})
    world.nodes(70)
    labels_of(cache, take_snapshot(world.state)).of("zone")
    only_a = LabelSelectorRequirement("zone", "In", ["a"])
    assert before.having(only_a, np.array([0])).tolist() == [True]
    other = World().nodes(1, labels={"rack": "a"})
    assert labels_of(cache, take_snapshot(other.state)).of("rack")[1] == 1, "nodes of another cluster"


class CountedLabels(dict[str, str]):
    """Labels of a node that count how often they are read."""

    read = 0

    def get(self, key: str, default: str | None = None) -> str | None:  # type: ignore[override]
        """Count it."""
        CountedLabels.read += 1
        return super().get(key, default)


def test_conditions_of_pods_are_evaluated_once_per_node() -> None:
    """Conditions of 500 pods of different shapes cost one evaluation per node and label key."""
    world = World(checked=False)
    world.plugins.append(Preferences({}))
    for number in range(50):
        labels = CountedLabels({"zone": str(number % 3), "kubernetes.io/hostname": str(number)})
        world.node(f"node-{number}", labels={}, taints=[Taint("soft", "PreferNoSchedule")]).metadata.labels = labels
        world.state.on_node(None, world.state.nodes.nodes[number])  # type: ignore[arg-type]
    for number in range(500):
        conditions = [
            {"key": key, "operator": "NotIn", "values": [f"x{number}"]}
            for key in ("zone", "kubernetes.io/hostname", "none")
        ]
        term = {"matchExpressions": conditions}
        wish = {"weight": 1, "preference": term}
        node_affinity = {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]},
            "preferredDuringSchedulingIgnoredDuringExecution": [wish],
        }
        world.gang(f"g{number}", {"w": (1, CPU)}, spec={"affinity": {"nodeAffinity": node_affinity}})
    CountedLabels.read = 0
    world.plan()
    assert CountedLabels.read <= 2 * 50 + 50


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        (Toleration("a", "Exists"), True), (Toleration("", "Exists"), True), (Toleration("", "Equal", "x"), False),
        (Toleration("a", "", "x"), True), (Toleration("a", "Equal", "y"), False), (Toleration("b", "Exists"), False),
        (Toleration("a", "Exists", "", "NoExecute"), False),
    ],
)  # fmt: skip
def test_tolerations_are_compared_with_taints_of_their_key(toleration: Toleration, *, covers: bool) -> None:
    """And those without a key with all."""
    assert tolerated_by([Toleration("other", "Exists"), toleration])(("a", "x", "NoSchedule")) is covers
