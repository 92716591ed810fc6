"""Whatever stands in a HyperNode that admission did not see: there is a tree, and the others are in it."""

import msgspec
from hypernode_world import HyperNodeWorld, hyper_node, named, node
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.planner.topology.hypernodes import HyperNodeTree
from muster.api.limits import TIERS
from muster.api.volcano.topology import HyperNode
from muster.kube.codec import decoder

TEXTS = st.sampled_from(
    ["", "a", "mine", "node-0", "(", "[", "x{999}", ".{0,999}", "\\", "\u0000", "é", "$^", "a" * 5_000]
)
TIERS_WRITTEN = st.sampled_from([0, 1, 2, 7, 2**31 - 1, 2**31, 2**62, 2**63, 2**64, 10**30, -1, "1", None, 1.5])
SELECTORS = st.fixed_dictionaries(
    {},
    optional={
        "exactMatch": st.one_of(st.none(), st.fixed_dictionaries({"name": TEXTS})),
        "regexMatch": st.one_of(st.none(), st.fixed_dictionaries({"pattern": TEXTS})),
        "labelMatch": st.one_of(
            st.none(),
            st.fixed_dictionaries(
                {},
                optional={
                    "matchLabels": st.dictionaries(TEXTS, TEXTS, max_size=70),
                    "matchExpressions": st.lists(
                        st.fixed_dictionaries(
                            {"key": TEXTS, "operator": TEXTS | st.just("In"), "values": st.lists(TEXTS)}
                        ),
                        max_size=3,
                    ),
                },
            ),
        ),
    },
)
MEMBERS = st.fixed_dictionaries({"type": st.sampled_from(["Node", "HyperNode", "x"])}, optional={"selector": SELECTORS})
SPECS = st.fixed_dictionaries(
    {"tier": TIERS_WRITTEN},
    optional={
        "tierName": TEXTS,
        "members": st.lists(MEMBERS, max_size=5)
        | st.lists(MEMBERS, min_size=1, max_size=1).map(lambda one: one * 10_001),
    },
)


@settings(max_examples=settings().max_examples * 2)
@given(st.lists(st.tuples(st.sampled_from("abcd"), SPECS), max_size=6))
def test_there_is_always_a_tree(written: list[tuple[str, object]]) -> None:
    """What does not decode never comes; of the rest each is in the tree or says why not."""
    world = HyperNodeWorld().tell(node("own-7"), node("node-0"), hyper_node("mine", 1, named("own-7")))
    kept = HyperNodeTree()
    for name, spec in written:
        try:
            made = decoder(HyperNode).decode(msgspec.json.encode({"metadata": {"name": name}, "spec": spec}))
        except msgspec.ValidationError:
            continue
        found = kept.of(world.tell(made))
        assert found.node_counts.keys() == world.hyper_nodes.keys()
        assert len(found.tree.levels) <= TIERS.value
        domains = {each for names in found.tree.domains for each in names}
        assert domains | found.problems.keys() >= world.hyper_nodes.keys()
        assert "mine" in domains
