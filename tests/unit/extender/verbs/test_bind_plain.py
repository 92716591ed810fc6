"""A pod without a gang is bound only if it is Muster's, and only where filter has let it pass."""

from collections.abc import Mapping
from typing import Any

import pytest
from prometheus_client import REGISTRY
from verbs_world import NODES, Extender

from extender.planner.reasons.verbs import VerbReason
from extender.verbs import bind
from muster.api.kubernetes.core import Pod
from muster.api.names import BINDING_MARKER, MARKERS


@pytest.fixture
def extender(monkeypatch: pytest.MonkeyPatch) -> Extender:
    """An extender that waits for no watch."""
    monkeypatch.setattr(bind, "LAG_S", 0.0)
    return Extender()


def test_it_is_bound_where_filter_let_it_pass_and_nowhere_else(extender: Extender) -> None:
    """node-1 was not named, since a selector of the pod excludes it."""
    pod = extender.pod("p")
    assert extender.passed(pod, "node-0") == ["node-0"]
    answers = [extender.error(pod, node) for node in ("node-1", "node-unknown", "node-0")]
    assert (answers, extender.bound) == ([VerbReason.NOT_ASKED, VerbReason.NOT_ASKED, ""], {"p": "node-0"})


def test_after_a_restart_of_the_extender_kube_scheduler_asks_filter_again(extender: Extender) -> None:
    """The answer is lost, so the call is an error, and the next try of kube-scheduler goes through."""
    pod = extender.pod("p")
    assert extender.error(pod, "node-0") == VerbReason.NOT_ASKED
    assert extender.passed(pod, *NODES) == NODES
    assert extender.error(pod, "node-0") == ""


def test_a_call_for_a_pod_that_is_bound_there_already_is_no_error(extender: Extender) -> None:
    """kube-scheduler did not get the answer; another node is still refused."""
    pod = extender.pod("p")
    extender.passed(pod, *NODES)
    answers = [extender.error(pod, node) for node in ("node-0", "node-0", "node-1")]
    assert answers == ["", "", VerbReason.NOT_ASKED]


@pytest.mark.parametrize("limits", [{}, {BINDING_MARKER: 1}])
def test_a_pod_of_another_scheduler_is_not_bound(extender: Extender, limits: Mapping[str, Any]) -> None:
    """Not even where filter was asked about it by whoever calls bind."""
    pod = extender.pod("p", scheduler="default-scheduler", limits=limits)
    extender.passed(pod, *NODES)
    assert (extender.error(pod, "node-0"), extender.bound) == (VerbReason.NOT_OURS, {})


def test_a_marked_pod_of_a_shared_scheduler_passes_where_there_is_room_and_is_bound(extender: Extender) -> None:
    """No node offers the markers: they are no resources, and are not counted."""
    pod = extender.pod("p", scheduler="default-scheduler", limits=dict.fromkeys(MARKERS, 1))
    assert extender.passed(pod, *NODES) == NODES
    assert extender.error(pod, "node-1") == ""
    assert not MARKERS & extender.world.state.nodes.axis.keys()


class Sharing(Extender):
    """Two nodes of two GPUs, and what bindings said."""

    def __init__(self) -> None:
        super().__init__()
        self.annotations: dict[str, Mapping[str, str]] = {}
        for name in ("node-0", "node-1"):
            self.world.node(name, gpus=2)

    async def bind(self, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str]) -> None:
        """Remembers the annotations too."""
        await super().bind(namespace, name, uid, node, annotations)
        self.annotations[name] = annotations

    def sharer(self, name: str, fraction: str) -> Pod:
        """A pod that shares a GPU."""
        return self.pod(name, cpu=0, notes={"gpu-fraction": fraction})


def test_pods_are_put_together_until_a_device_is_full() -> None:
    """0.6 and 0.4 share one, the next gets the other; then no node has room for 0.8, and one for the whole GPU."""
    extender = Sharing()
    for name, fraction, device in (("a", "0.6", "0"), ("b", "0.4", "0"), ("c", "0.5", "1")):
        extender.done(extender.sharer(name, fraction), "node-0")
        assert extender.annotations[name] == {"muster.dev/gpu-devices": device, "muster.dev/gpu-portion": fraction}
    assert extender.passed(extender.sharer("d", "0.8"), "node-0", "node-1") == ["node-1"]
    assert extender.passed(extender.pod("whole", limits={"nvidia.com/gpu": 1}), "node-0", "node-1") == ["node-1"]


def test_room_in_pieces_is_none() -> None:
    """Two devices with 0.4 left each have room for two such pods, and for none of 0.5."""
    extender = Sharing()
    for name in ("a", "b"):
        extender.done(extender.sharer(name, "0.6"), "node-0")
    assert extender.passed(extender.sharer("c", "0.5"), "node-0", "node-1") == ["node-1"]
    assert extender.passed(extender.sharer("d", "0.4"), "node-0") == ["node-0"]


def test_a_binding_says_what_volcanos_device_plugin_reads() -> None:
    """Of a pod that asks for GPU memory by a resource; its portion is that of the node's devices."""
    extender = Sharing()
    node = extender.world.node("node-0", gpus=2)
    offered = {"cpu": 8, "pods": 9, "volcano.sh/gpu-memory": 81920, "volcano.sh/gpu-number": 2}
    extender.world.change(node, status={"allocatable": offered})
    extender.done(extender.pod("p", limits={"volcano.sh/gpu-memory": 20480}), "node-0")
    told = dict(extender.annotations["p"])
    assert int(told.pop("volcano.sh/predicate-time")) > 10**18
    assert told == {"muster.dev/gpu-devices": "0", "muster.dev/gpu-portion": "0.5", "volcano.sh/gpu-index": "0"}


@pytest.mark.parametrize("active", [False, True])
def test_who_does_not_lead_or_has_not_seen_the_pod_binds_nothing(extender: Extender, *, active: bool) -> None:
    """An error, which kube-scheduler tries again; each is counted by its reason."""
    pod, reason = extender.pod("p"), VerbReason.NOT_SEEN if active else VerbReason.NOT_LEADING
    extender.passed(pod, "node-0")
    extender._bind._active = lambda: active
    if active:
        extender.world.state.on_pod(pod, None)
    labels = {"pod": "plain", "verdict": "error", "reason": reason.tag}
    before = REGISTRY.get_sample_value("muster_bind_total", labels) or 0.0
    assert extender.error(pod, "node-0") == reason
    assert (REGISTRY.get_sample_value("muster_bind_total", labels), extender.bound) == (before + 1, {})


@pytest.mark.parametrize("fraction", ["0.5", "0.7"])
def test_room_that_is_gone_by_then_is_an_error(fraction: str) -> None:
    """Both passed filter; the second one to be bound finds the devices full."""
    extender = Sharing()
    pods = [extender.sharer(f"p{number}", fraction) for number in range(5)]
    for pod in pods:
        assert extender.passed(pod, "node-0") == ["node-0"]
    answers = [extender.error(pod, "node-0") for pod in pods]
    fit = 4 if fraction == "0.5" else 2
    assert answers == [""] * fit + [VerbReason.ROOM_TAKEN] * (5 - fit)
