"""Sub-groups by labels cost what exists: neither policies times pods, nor the same refusal again and again."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from topology_world import Racks

from extender.planner.state.pods import PodRecord
from extender.planner.state.queries import Labels, Requirement, requirements
from extender.planner.topology.parts import SlotsLeft, part_of
from extender.planner.topology.requests import by_labels, request_of
from muster.api.kubernetes.meta import LabelSelector, LabelSelectorRequirement
from muster.api.limits import LimitError
from muster.api.volcano.scheduling import NetworkTopology, SubGroupPolicy

PODS = 200
TIER = NetworkTopology(highest_tier_allowed=1)
KEYS = ("a", "b")
VALUES = ("0", "1", "2")
LABELS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
CONDITIONS = st.builds(
    LabelSelectorRequirement,
    key=st.sampled_from(KEYS),
    operator=st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    values=st.lists(st.sampled_from(VALUES), min_size=1, max_size=2),
)
POLICIES = st.builds(
    SubGroupPolicy,
    name=st.sampled_from(["p", "q"]),
    label_selector=st.none()
    | st.builds(LabelSelector, match_labels=LABELS, match_expressions=st.lists(CONDITIONS, max_size=2)),
    match_label_keys=st.lists(st.sampled_from(KEYS), max_size=2, unique=True),
    network_topology=st.just(TIER),
)


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
    selectors = [LabelSelector(match_labels={"all": "yes", "role": f"r{number}"}) for number in range(PODS)]
    policies = [
        SubGroupPolicy(name=f"p{number}", label_selector=each, network_topology=TIER)
        for number, each in enumerate(selectors)
    ]
    world, key = gang_of(policies, [{"all": "yes", "role": f"r{number}"} for number in range(PODS)])
    gang = world.view(key)
    request = request_of(gang)
    assert request is not None
    assert [dict(sets) for _, _, sets in request.sub_groups] == [{"worker": {rank}} for rank in range(PODS)]
    assert len(looks) <= 2 * PODS
    assert [part.slots for part in part_of(gang, request, gang.open_slots).children] == [
        {"worker": [rank]} for rank in range(PODS)
    ]


def test_too_many_looks_are_refused_once_for_a_view(looks: list[str]) -> None:
    """Policies that demand no label are compared with all pods, up to a limit; a cycle asks for the request often."""
    other = [LabelSelectorRequirement(key="role", operator="NotIn", values=["none"])]
    policies = [
        SubGroupPolicy(name=f"p{each}", label_selector=LabelSelector(match_expressions=other), network_topology=TIER)
        for each in range(1_000)
    ]
    world, key = gang_of(policies, [{"role": str(rank)} for rank in range(PODS)])
    asked = 0
    for _ in range(2):
        session = world.session()
        gang = session.gang(key)
        assert gang is not None
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


@given(st.permutations(range(8)), st.lists(st.none() | st.frozensets(st.integers(0, 9)), max_size=4))
def test_each_slot_is_in_the_first_part_that_takes_it(ranks: list[int], asked: list[frozenset[int] | None]) -> None:
    """In the order in which the slots came."""
    left, rest = SlotsLeft({"worker": ranks}), list(ranks)
    for inside in asked:
        expected = [rank for rank in rest if inside is None or rank in inside]
        assert left.take("worker", inside) == expected
        rest = [rank for rank in rest if rank not in expected]
