"""What `muster queue create` and `update` make of their options, and names of resources that are nearly right."""

from typing import Any

import click
import pytest

from muster.resources.typos import similar_resource
from musterctl.commands.queuechange import queue_content

KNOWN = {"cpu", "memory", "nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "rdma/hca", "pods"}


@pytest.mark.parametrize(("typed", "meant"), [
    ("nvidia.com/gpus", "nvidia.com/gpu"),
    ("gpu", "nvidia.com/gpu"),
    ("nvidia/gpu", "nvidia.com/gpu"),
    ("CPU", "cpu"),
    ("cpus", "cpu"),
    ("memroy", "memory"),
    ("example.com/fpga", ""),
    ("amd.com/gpu", ""),
    ("intel.com/gpu", ""),
    ("nvida.com/gpu", "nvidia.com/gpu"),
    ("nvdia/gpu", "nvidia.com/gpu"),
    ("nvidia.com/gpu" * 10_000, ""),
    ("x", ""),
    ("a/", ""),
])  # fmt: skip
def test_a_near_name(typed: str, meant: str) -> None:
    """Misspelt, without its domain, or with capital letters; what is far from everything has none."""
    assert similar_resource(typed, KNOWN) == meant


def options(**given: Any) -> dict[str, Any]:
    """What click gives for these; nothing is the default of `update`."""
    names = ("parent", "weight", "priority", "reclaimable", "namespace_selector", "pool")
    return dict.fromkeys(names) | dict.fromkeys(("capability", "deserved", "guarantee"), ()) | given


def test_only_what_is_given_is_changed() -> None:
    """Numbers of 0 and the answer no are given, too; an empty selector goes away."""
    assert queue_content(options()) == {}
    assert queue_content(options(priority=0, reclaimable=False)) == {"spec": {"priority": 0, "reclaimable": False}}
    changed = queue_content(options(capability=("cpu=4,memory=none",), guarantee=("cpu=1",), namespace_selector=""))
    assert changed["spec"] == {"capability": {"cpu": "4", "memory": None}, "guarantee": {"resource": {"cpu": "1"}}}
    assert changed["metadata"] == {"annotations": {"muster.dev/namespace-selector": None}}


def test_a_node_pool_is_a_label() -> None:
    """Which `none` takes off again."""
    assert queue_content(options(pool="b")) == {"metadata": {"labels": {"muster.dev/node-pool": "b"}}}
    assert queue_content(options(pool="none")) == {"metadata": {"labels": {"muster.dev/node-pool": None}}}


def test_a_selector_that_cannot_be_read() -> None:
    """It is refused before anything is sent."""
    with pytest.raises(click.BadParameter, match="not a condition on a label"):
        queue_content(options(namespace_selector="a b"))
