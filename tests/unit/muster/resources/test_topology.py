"""What annotations say of topology, and what is wrong with them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api import names
from muster.api.volcano.scheduling import NetworkTopology
from muster.resources.topology import Nearness, PodTopology, Slices, mistakes, of_gang, of_network, of_pods

KQ = "kueue.x-k8s.io/podset"
KEYS = (*names.TOPOLOGY_KEYS, *names.KUEUE_TOPOLOGY_KEYS, *names.KAI_NEAR_KEYS)


def test_both_spellings_mean_the_same() -> None:
    """Muster's and Kueue's; where both are there, Muster's count."""
    ours = {names.TOPOLOGY_REQUIRED: "rack", names.TOPOLOGY_PREFERRED: "host"}
    theirs = {f"{KQ}-required-topology": "rack", f"{KQ}-preferred-topology": "host"}
    assert of_pods(ours, {}) == of_pods(theirs, {}) == PodTopology(Nearness("", "rack", "host"))
    assert of_pods({**theirs, names.TOPOLOGY_REQUIRED: "block"}, {}) == PodTopology(Nearness("", "block"))


def test_kais_annotations_mean_the_same() -> None:
    """On a gang and on pods; where both are there, Muster's count. The topology's name is not needed."""
    kai = dict(zip(names.KAI_NEAR_KEYS, ("rack", "host"), strict=True))
    assert of_gang({names.KAI_TOPOLOGY: "cluster", **kai}) == Nearness("", "rack", "host")
    assert of_pods(kai, {}) == PodTopology(Nearness("", "rack", "host"))
    assert of_gang({**kai, names.TOPOLOGY_REQUIRED: "block"}) == Nearness("", "block", "host")
    assert of_pods({names.KAI_TOPOLOGY: "cluster"}, {}) is None
    [error] = mistakes({names.KAI_NEAR_KEYS[0]: "no key"}, "a")
    assert error.path == f"a[{names.KAI_NEAR_KEYS[0]}]"


def test_long_annotations_are_not_cached() -> None:
    """A tenant would fill the memory of a process with different ones."""
    short, long = ({names.TOPOLOGY_REQUIRED: "x" * length} for length in (300, 9_000))
    assert of_pods(short, {}) is of_pods(dict(short), {})
    assert of_pods(long, {}) is not of_pods(dict(long), {})
    assert of_pods(long, {}) == of_pods(dict(long), {})


def test_long_lists_of_layers_are_not_read() -> None:
    """Each event of a pod reads them, and reading hundreds of kilobytes takes milliseconds."""
    layer = '{"topology": "block", "size": 16}'
    long = {names.KUEUE_SLICE_LAYERS: f"[{','.join([layer] * 300)}]"}
    assert of_pods(long, {}) is None
    assert ["truncated" in str(error) for error in mistakes(long, "a")] == [True]


def test_slices_and_layers() -> None:
    """One layer by two annotations, several in a list, the outermost first."""
    assert of_pods({names.TOPOLOGY_SLICE_KEYS[0]: "rack", names.TOPOLOGY_SLICE_KEYS[1]: "8"}, {}) == PodTopology(
        slices=(Slices(8, Nearness("", "rack")),)
    )
    layers = '[{"topology": "block", "size": 16}, {"topology": "rack", "size": 4}]'
    assert of_pods({names.KUEUE_SLICE_LAYERS: layers}, {}) == PodTopology(
        slices=(Slices(16, Nearness("", "block")), Slices(4, Nearness("", "rack")))
    )


def test_volcanos_modes() -> None:
    """Hard has a highest tier; without one, and soft, it is as near as possible."""
    assert of_network(None) == Nearness()
    assert of_network(NetworkTopology(highest_tier_allowed=2)) == Nearness("hypernodes", 2)
    assert of_network(NetworkTopology(highest_tier_name="spine")) == Nearness("hypernodes", "spine")
    assert of_network(NetworkTopology(mode="soft", highest_tier_allowed=2)) == Nearness("hypernodes")
    assert of_gang({names.TOPOLOGY: "hypernodes", names.TOPOLOGY_REQUIRED: "2"}) == Nearness("hypernodes", 2)


@pytest.mark.parametrize(
    ("annotations", "pods", "paths"),
    [
        ({names.TOPOLOGY_REQUIRED: "not a key"}, None, [names.TOPOLOGY_REQUIRED]),
        ({names.TOPOLOGY: "hypernodes", names.TOPOLOGY_REQUIRED: "leaf switch"}, None, []),
        ({names.TOPOLOGY: "Not a name"}, None, [names.TOPOLOGY]),
        ({f"{KQ}-required-topology": "a", f"{KQ}-preferred-topology": "b"}, None, [f"{KQ}-preferred-topology"]),
        ({f"{KQ}-unconstrained-topology": "yes"}, None, [f"{KQ}-unconstrained-topology"]),
        ({f"{KQ}-slice-size": "4"}, None, [f"{KQ}-slice-required-topology"]),
        ({f"{KQ}-slice-required-topology": "a"}, None, [f"{KQ}-slice-size"]),
        ({f"{KQ}-slice-required-topology": "a", f"{KQ}-slice-size": "5"}, 4, [f"{KQ}-slice-size"]),
        ({f"{KQ}-slice-required-topology": "?", f"{KQ}-slice-size": "4"}, 4, [f"{KQ}-slice-required-topology"]),
        ({f"{KQ}-group-name": "g"}, None, [f"{KQ}-group-name"]),
        ({f"{KQ}-group-name": "7", f"{KQ}-required-topology": "a"}, None, [f"{KQ}-group-name"]),
        ({names.KUEUE_SLICE_LAYERS: "[]"}, None, [names.KUEUE_SLICE_LAYERS]),
        ({names.KUEUE_SLICE_LAYERS: '[{"topology": "a", "size": 4}, {"topology": "b", "size": 3}]'}, 8,
         [names.KUEUE_SLICE_LAYERS]),
        ({names.KUEUE_SLICE_LAYERS: '[{"topology": "a", "size": 4, "x": 1}]'}, 8, [names.KUEUE_SLICE_LAYERS]),
        ({names.TOPOLOGY_REQUIRED: "?", f"{KQ}-slice-size": "x"}, 1,
         [names.TOPOLOGY_REQUIRED, f"{KQ}-slice-required-topology", f"{KQ}-slice-size"]),
    ],
)  # fmt: skip
def test_all_mistakes_are_told_at_once(annotations: dict[str, str], pods: int | None, paths: list[str]) -> None:
    """Each at its path."""
    assert [error.path for error in mistakes(annotations, "at", pods)] == [f"at[{key}]" for key in paths]


TEXTS = st.sampled_from(["", "0", "1", "rack", "a/b", "true", "hypernodes", "[]", "9" * 30, "x" * 300, "²"])
LAYERS = st.sampled_from(['[{"topology": "a", "size": 2}]', '[{"topology": "a"}]', '{"a": 1}', "[" * 5000])


@given(st.dictionaries(st.sampled_from(KEYS), st.one_of(TEXTS, LAYERS)))
def test_whatever_is_written_is_read(annotations: dict[str, str]) -> None:
    """Nothing raises; what says nothing is None, and what is right has an effect."""
    found = of_pods(annotations, {})
    errors = list(mistakes(annotations, "at"))
    if not errors and any(text for key, text in annotations.items() if "unconstrained" not in key):
        assert found is not None
