"""Sub-groups by labels cost what exists: neither policies times pods, nor the same refusal again and again."""

from collections.abc import Iterator
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st
from topology_world import Racks

from extender.planner.state.pods import PodRecord
from extender.planner.state.podset import PodSetView
from extender.planner.state.queries import Labels, Requirement, requirements
from extender.planner.topology.parts import SlotsLeft, part_of
from extender.planner.topology.requests import RequestKind, Units, by_labels, request_of
from muster.api import names
from muster.api.kubernetes.meta import LabelSelector, LabelSelectorRequirement
from muster.api.limits import LimitError
from muster.api.volcano.scheduling import NetworkTopology, SubGroupPolicy
from muster.resources.topology import Nearness, PodTopology, Slices

PODS = 200
TIER = NetworkTopology(highest_tier_allowed=1)
KEYS = ("a", "b")
VALUES = ("0", "1", "2")
LABELS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
CONDITIONS = st.builds(
    LabelSelectorRequirement, key=st.sampled_from(KEYS),
    operator=st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    values=st.lists(st.sampled_from(VALUES), min_size=1, max_size=2),
)  # fmt: skip
WANTS = st.builds(LabelSelector, match_labels=LABELS, match_expressions=st.lists(CONDITIONS, max_size=2))
POLICIES = st.builds(
    SubGroupPolicy, name=st.sampled_from(["p", "q"]), label_selector=st.none() | WANTS,
    match_label_keys=st.lists(st.sampled_from(KEYS), max_size=2, unique=True), network_topology=st.just(TIER),
)  # fmt: skip


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The keys of the conditions that are compared with labels."""
    seen: list[str] = []
    holds = Requirement.holds

    def counted(self: Requirement, labels: Labels) -> bool:
        seen.append(self.key)
        return holds(self, labels)

    monkeypatch.setattr(Requirement, "holds", counted)
    return seen


def gang_of(policies: list[SubGroupPolicy], labels: list[dict[str, str]]) -> tuple[Racks, str]:
    """A gang with pods of these labels, by its key."""
    world = Racks(1, 1, 1, checked=False)
    key = world.asks("a", len(labels), policies=policies)
    for rank, own in enumerate(labels):
        world.pod(key, "worker", rank, {"nvidia.com/gpu": 8}, gated=True, labels=own)
    return world, key


def test_a_policy_looks_only_at_pods_with_its_label(looks: list[str]) -> None:
    """As many policies as pods, each with a label of one pod."""
    labels = [{"all": "yes", "role": f"r{number}"} for number in range(PODS)]
    wants = [LabelSelector(match_labels=each) for each in labels]
    policies = [SubGroupPolicy(f"p{at}", label_selector=each, network_topology=TIER) for at, each in enumerate(wants)]
    world, key = gang_of(policies, labels)
    gang = world.view(key)
    request = request_of(gang)
    assert [dict(sets) for _, _, sets in request.sub_groups] == [{"worker": {rank}} for rank in range(PODS)]
    assert len(looks) <= 2 * PODS
    parts = part_of(gang, request, gang.open_slots).children
    assert [part.slots for part in parts] == [{"worker": [rank]} for rank in range(PODS)]


def test_too_many_looks_are_refused_once_for_a_view(looks: list[str]) -> None:
    """Policies that demand no label are compared with all pods, up to a limit; a cycle asks for the request often."""
    other = LabelSelectorRequirement(key="role", operator="NotIn", values=["none"])
    wants = LabelSelector(match_expressions=[other])
    policies = [SubGroupPolicy(f"p{each}", label_selector=wants, network_topology=TIER) for each in range(1_000)]
    world, key = gang_of(policies, [{"role": str(rank)} for rank in range(PODS)])
    asked = 0
    for _ in range(2):
        session = world.session()
        gang = session.gang(key)
        with pytest.raises(LimitError, match="too many pods"):
            _ = session.ask(gang).request
        asked = asked or len(looks)
    assert 0 < len(looks) == asked <= 200_000


@given(st.lists(POLICIES, max_size=4), st.lists(LABELS, max_size=6))
def test_the_sub_groups_are_those_of_all_pods(policies: list[SubGroupPolicy], labels: list[dict[str, str]]) -> None:
    """The index leaves no pod out."""
    world, key = gang_of([], labels)
    pods = world.view(key).pods
    found = [(name, dict(sets)) for name, _, sets in by_labels(pods, policies)]
    assert found == [each for policy in policies for each in _naive(pods, policy)]


def _naive(pods: list[PodRecord], policy: SubGroupPolicy) -> list[tuple[str, dict[str, set[int]]]]:
    wanted = requirements(policy.label_selector) if policy.label_selector else ()
    found: dict[tuple[str, ...], set[int]] = {}
    for pod in pods:
        if pod.slot is not None and all(each.holds(pod.labels) for each in wanted):
            values = tuple(pod.labels.get(key, "") for key in policy.match_label_keys)
            found.setdefault(values, set()).add(pod.slot.rank)
    return [("/".join((policy.name, *values)), {"worker": ranks}) for values, ranks in sorted(found.items())]


def pod_with(world: Racks, key: str, rank: int, level: str) -> None:
    """A worker that requires this level, or asks for nothing."""
    notes = {names.GROUP_NAME: "a", names.TASK_SPEC: "worker", names.TASK_INDEX: str(rank)}
    notes |= {names.TOPOLOGY_REQUIRED: level} if level != "no" else {}
    world.pod(key, "worker", rank, {"nvidia.com/gpu": 8}, gated=True, annotations=notes)


@pytest.mark.parametrize(("template", "pods", "kinds"), [
    pytest.param("rack", ["", "", ""], [("rack", None)], id="the template alone"),
    pytest.param("rack", ["rack", "rack", "rack"], [("rack", None)], id="pods like their template"),
    pytest.param("rack", ["host", "host", "host"], [("host", None)], id="all pods otherwise"),
    pytest.param("rack", ["host", "rack", "rack"], [("host", {0}), ("rack", {1, 2})], id="one pod otherwise"),
    pytest.param("rack", ["host", "host", ""], [("host", {0, 1}), ("rack", {2})], id="one that does not exist"),
    pytest.param("rack", ["host", "no", "no"], [("host", {0}), (None, {1, 2})], id="pods that ask for nothing"),
    pytest.param("", ["host", "host", ""], [("host", {0, 1}), (None, {2})], id="a template that asks for nothing"),
    pytest.param("", ["no", "no", "no"], None, id="nobody asks"),
])  # fmt: skip
def test_pods_of_a_set_are_of_a_kind_for_each_thing_that_they_ask_for(
    template: str, pods: list[str], kinds: list[tuple[str | None, set[int] | None]] | None
) -> None:
    """A pod that exists ("no": and asks for nothing) counts more than the template."""
    world = Racks(1, 1, 1, checked=False)
    key = world.asks("a", len(pods), template={names.TOPOLOGY_REQUIRED: template} if template else None)
    for rank, level in enumerate(pods):
        if level:
            pod_with(world, key, rank, level)
    request = request_of(world.view(key))
    found = request and [(kind.topology.near.required, kind.ranks) for kind in request.kinds]
    assert found == kinds


@pytest.mark.parametrize(("different", "refused"), [(64, False), (65, True)])
def test_a_pod_set_asks_for_64_different_things_at_most(different: int, *, refused: bool) -> None:
    """Each is tried by itself."""
    world = Racks(1, 1, 1, checked=False)
    key = world.asks("a", different)
    for rank in range(different):
        pod_with(world, key, rank, f"level-{rank}")
    with pytest.raises(LimitError, match="request 65 different topologies") if refused else nullcontext():
        request_of(world.view(key))


@pytest.mark.parametrize(("policies", "refused"), [(1_024, False), (1_025, True)])
def test_a_gang_has_1024_sub_groups_at_most(policies: int, *, refused: bool) -> None:
    """Policies count, and so do the groups that pods make by their labels."""
    named = [SubGroupPolicy(name=f"p{each}", network_topology=TIER) for each in range(policies)]
    by_label = [SubGroupPolicy(name="p", match_label_keys=["pair"], network_topology=TIER)]
    for world, key in (gang_of(named, [{}]), gang_of(by_label, [{"pair": str(each)} for each in range(policies)])):
        with pytest.raises(LimitError, match="1025 sub-groups by labels; at most 1024") if refused else nullcontext():
            request_of(world.view(key))


def sliced(*ranks: set[int] | None) -> Units:
    """Units of workers, of which these ask for slices of two."""
    kinds = [RequestKind("worker", PodTopology(), own and frozenset(own), (Slices(2, Nearness()),)) for own in ranks]
    return Units(frozenset({"worker"}), {"worker": kinds} if kinds else {})


@pytest.mark.parametrize(("units", "unit", "ranks", "found"), [
    pytest.param(sliced(), 1, [0, 1, 3], [[0], [1], [3]], id="singly"),
    pytest.param(sliced(), 2, [0, 1, 3, 4, 5], [[0, 1], [3], [4, 5]], id="partitions"),
    pytest.param(sliced(None), 1, [0, 1, 3, 4], [[0, 1], [3], [4]], id="slices"),
    pytest.param(sliced(None), 3, [0, 1, 2, 3], [[0, 1, 2], [3]], id="partitions around slices"),
    pytest.param(sliced({1, 3, 5}), 1, [*range(6)], [[0], [1, 3], [2], [4], [5]], id="slices by place"),
    pytest.param(sliced({4, 5}, {2, 3}), 1, [*range(6)], [[0], [1], [2, 3], [4, 5]], id="slices of two kinds"),
])  # fmt: skip
def test_units_of_ranks(units: Units, unit: int, ranks: list[int], found: list[list[int]]) -> None:
    """In their order; ranks that ask for nothing are placed singly."""
    assert units.units_of_ranks(PodSetView("worker", None, 6, 6, unit=unit), ranks) == found


@pytest.mark.parametrize(
    ("failed", "complete"), [(set(), [[0, 1], [4]]), ({3}, [[0, 1], [2], [4]]), ({1, 3}, [[0, 1], [2], [4]])]
)
def test_a_unit_is_complete_when_none_of_it_is_to_come_later(failed: set[int], complete: list[list[int]]) -> None:
    """Of ranks 0 to 5 all but 3 exist, and 5 has a node."""
    pod_set = PodSetView("worker", None, 6, 6, taken={5: "node-0"}, failed=failed, unit=2)
    assert sliced().complete(pod_set, [[0, 1], [2], [4]]) == complete
    whole = PodSetView("worker", None, 6, 6, taken={5: "node-0"}, failed=failed | {3}, unit=2)
    assert sliced().complete(whole, [[0, 1], [2], [4]]) == [[0, 1], [2], [4]]


@given(st.permutations(range(8)), st.lists(st.none() | st.frozensets(st.integers(0, 9)), max_size=4))
def test_each_slot_is_in_the_first_part_that_takes_it(ranks: list[int], asked: list[frozenset[int] | None]) -> None:
    """In the order in which the slots came."""
    left, rest = SlotsLeft({"worker": ranks}), list(ranks)
    for inside in asked:
        expected = [rank for rank in rest if inside is None or rank in inside]
        assert left.take_ranks("worker", inside) == expected
        rest = [rank for rank in rest if rank not in expected]
