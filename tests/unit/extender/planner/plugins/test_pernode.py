"""Answers and domains per node are kept from cycle to cycle, and are as if each node had been asked again."""

from extender_world import World
from hypothesis import given
from hypothesis import strategies as st

from extender.planner.framework.snapshot import take
from extender.planner.plugins.pernode import MOST_KEYS, Domains, PerNode
from extender.planner.state.podclass import ClassTable, PodClass
from muster.api.kubernetes.core import Node, PodSpec

CHANGES = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["", "a", "b", "c", "gone"])), max_size=4)


def zone_of(_cls: PodClass, node: Node | None) -> int:
    """A number for the node's zone."""
    return -1 if node is None else ord(node.metadata.labels.get("zone", "-"))


@given(st.lists(CHANGES, min_size=1, max_size=6))
def test_what_is_kept_is_what_is_right(rounds: list[list[tuple[int, str]]]) -> None:
    """As nodes come, go and change; only those are asked again."""
    world, kept, domains, cls = World(checked=False), PerNode(), Domains(), ClassTable().of_spec(PodSpec())
    asked: list[str] = []

    def counted(cls: PodClass, node: Node | None) -> int:
        asked.append(node.metadata.name if node else "")
        return zone_of(cls, node)

    for changes in rounds:
        for number, zone in changes:
            known = world.state.nodes.index.get(f"node-{number}")
            if zone != "gone":
                world.node(f"node-{number}", labels={"zone": zone} if zone else {})
            elif known is not None:
                world.state.on_node(world.state.nodes.nodes[known], None)
        snapshot = take(world.state)
        asked.clear()
        right = [zone_of(cls, node) for node in snapshot.nodes]
        assert kept.of(cls, snapshot, counted).tolist() == right
        assert set(asked) <= {f"node-{number}" for number, _ in changes} | {""}
        assert kept.of(cls, snapshot, counted) is kept.of(cls, snapshot, counted)
        codes, count = domains.of("zone", snapshot)
        zones = [node.metadata.labels.get("zone") if node else None for node in snapshot.nodes]
        assert [code < 0 for code in codes] == [zone is None for zone in zones]
        assert len({*zip(codes.tolist(), zones, strict=True)}) == len({*zones}) == len({*codes.tolist()})
        assert codes.max(initial=-1) < count


def test_answers_that_depend_on_something_else_are_asked_for_again_when_that_is_other() -> None:
    """Of nodes that did not change, too."""
    snapshot, kept, cls = take(World().nodes(2).state), PerNode(), ClassTable().of_spec(PodSpec())
    first = kept.of(cls, snapshot, zone_of, other="x")
    assert kept.of(cls, snapshot, zone_of, other="x") is first
    assert kept.of(cls, snapshot, lambda *_: 7, other="y")[:2].tolist() == [7, 7]


def test_keys_and_values_that_are_gone_are_forgotten() -> None:
    """Anybody can name a key that no node has, and nodes that are replaced for ever have ever new values."""
    world, domains = World().nodes(1), Domains()
    snapshot, counts = take(world.state), []
    for number in range(MOST_KEYS + 10):
        domains.of(f"key-{number}", snapshot)
    assert list(domains._known) == [f"key-{number}" for number in range(10, MOST_KEYS + 10)]
    for number in range(300):
        world.node("node-0", labels={"zone": str(number)})
        counts.append(domains.of("zone", take(world.state))[1])
    assert max(counts) == 2 * len(snapshot.nodes) + 1
