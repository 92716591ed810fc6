"""The largest allocatable resources of nodes, to which charges are limited."""

from typing import Any

import msgspec
import pytest

from muster.api.kubernetes.core import Node
from muster.kube.offers import NodeOffers


def node(uid: str, gpus: str) -> Node:
    """Node `n` with so many GPUs."""
    content: dict[str, Any] = {
        "metadata": {"name": "n", "uid": uid},
        "status": {"allocatable": {"nvidia.com/gpu": gpus}},
    }
    return msgspec.convert(content, Node)


@pytest.fixture
def offers() -> NodeOffers:
    """Of a cluster in which node `n` has offered eight GPUs."""
    found = NodeOffers(None)  # type: ignore[arg-type]  # never started
    found.node_seen(None, node("first", "8"))
    return found


def gpus(offers: NodeOffers) -> int | None:
    """Largest number of GPUs that node `n` has offered, in thousandths."""
    most = offers.of("n")
    return None if most is None else most.get("nvidia.com/gpu", 0)


def test_a_node_keeps_what_it_has_offered(offers: NodeOffers) -> None:
    """Its pods keep their devices while a device plugin restarts."""
    offers.node_seen(node("first", "8"), node("first", "0"))
    assert gpus(offers) == 8000


def test_another_node_of_its_name_starts_without(offers: NodeOffers) -> None:
    """Also if both are seen in one update."""
    offers.node_seen(node("first", "8"), node("second", "2"))
    assert gpus(offers) == 2000


def test_a_deleted_node_has_offered_nothing(offers: NodeOffers) -> None:
    """A later node of its name is limited by its own resources."""
    offers.node_seen(node("first", "8"), None)
    assert gpus(offers) is None


def test_an_unreadable_amount_changes_nothing(offers: NodeOffers) -> None:
    """The kubelet writes it, but nothing that is read is trusted."""
    offers.node_seen(node("first", "8"), node("first", "many"))
    assert gpus(offers) == 8000
