"""A pod without a gang is bound only if it is Muster's, and only where filter has let it pass."""

import time
from collections.abc import Mapping
from typing import Any, cast

import msgspec
import pytest
from extender_world import World

from extender.barrier import Barrier
from extender.cluster import Cluster
from extender.verbs import bind
from extender.verbs.bind import Bind
from extender.verbs.filter import Filter
from extender.verbs.reasons import Reason
from muster.api.core import Pod
from muster.api.extender import ExtenderArgs, ExtenderBindingArgs
from muster.api.names import BINDING_MARKER, MARKERS

NODES = ["node-0", "node-1"]


class Filled(Cluster):
    """A cluster whose caches are filled by hand."""

    synced = True  # type: ignore[assignment]


class Extender:
    """Two nodes, and both verbs over them."""

    def __init__(self) -> None:
        self.world = World()
        self.world.nodes(2)
        self.bound: dict[str, str] = {}
        cluster = Filled(cast("Any", None), wake=lambda: None)
        cluster.state = self.world.state
        self.filter = Filter(cluster, active=lambda: True)
        barrier = Barrier(timeout_s=1, monotonic_s=time.monotonic)
        self._bind = Bind(cluster, barrier, cast("Any", self), active=lambda: True, on_release=lambda *_: None)

    def bind(self, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str]) -> None:
        """Takes a binding as the API server would."""
        del namespace, uid, annotations
        self.bound[name] = node

    def pod(self, name: str, *, scheduler: str = "muster", limits: Mapping[str, Any] | None = None) -> Pod:
        """A pod without a gang."""
        resources = {"requests": {"cpu": 1}, "limits": dict(limits or {})}
        spec = {"schedulerName": scheduler, "containers": [{"name": "main", "resources": resources}]}
        meta = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": "1"}
        pod = msgspec.convert({"metadata": meta, "spec": spec}, Pod)
        self.world.state.on_pod(None, pod)
        return pod

    def passed(self, pod: Pod, *nodes: str) -> list[str]:
        """What filter answers."""
        return self.filter(ExtenderArgs(pod=pod, node_names=list(nodes))).node_names

    def error(self, pod: Pod, node: str) -> str:
        """What bind answers."""
        meta = pod.metadata
        args = ExtenderBindingArgs(pod_name=meta.name, pod_namespace="ns", pod_uid=meta.uid, node=node)
        return self._bind(args).error


@pytest.fixture
def extender(monkeypatch: pytest.MonkeyPatch) -> Extender:
    """An extender that waits for no watch."""
    monkeypatch.setattr(bind, "LAG_S", 0.0)
    return Extender()


def test_it_is_bound_where_filter_let_it_pass_and_nowhere_else(extender: Extender) -> None:
    """node-1 was not named, since a selector of the pod excludes it."""
    pod = extender.pod("p")
    assert extender.passed(pod, "node-0") == ["node-0"]
    assert extender.error(pod, "node-1") == Reason.NOT_ASKED
    assert extender.error(pod, "node-unknown") == Reason.NOT_ASKED
    assert extender.error(pod, "node-0") == ""
    assert extender.bound == {"p": "node-0"}


def test_after_a_restart_of_the_extender_kube_scheduler_asks_filter_again(extender: Extender) -> None:
    """The answer is lost, so the call is an error, and the next try of kube-scheduler goes through."""
    pod = extender.pod("p")
    assert extender.error(pod, "node-0") == Reason.NOT_ASKED
    assert extender.passed(pod, *NODES) == NODES
    assert extender.error(pod, "node-0") == ""


def test_a_call_for_a_pod_that_is_bound_there_already_is_no_error(extender: Extender) -> None:
    """kube-scheduler did not get the answer; another node is still refused."""
    pod = extender.pod("p")
    extender.passed(pod, *NODES)
    assert extender.error(pod, "node-0") == ""
    assert extender.error(pod, "node-0") == ""
    assert extender.error(pod, "node-1") == Reason.NOT_ASKED


@pytest.mark.parametrize("limits", [{}, {BINDING_MARKER: 1}])
def test_a_pod_of_another_scheduler_is_not_bound(extender: Extender, limits: Mapping[str, Any]) -> None:
    """Not even where filter was asked about it by whoever calls bind."""
    pod = extender.pod("p", scheduler="default-scheduler", limits=limits)
    extender.passed(pod, *NODES)
    assert extender.error(pod, "node-0") == Reason.NOT_OURS
    assert extender.bound == {}


def test_a_marked_pod_of_a_shared_scheduler_passes_where_there_is_room_and_is_bound(extender: Extender) -> None:
    """No node offers the markers: they are no resources, and are not counted."""
    pod = extender.pod("p", scheduler="default-scheduler", limits=dict.fromkeys(MARKERS, 1))
    assert extender.passed(pod, *NODES) == NODES
    assert extender.error(pod, "node-1") == ""
    assert not MARKERS & extender.world.state.nodes.axis.keys()
