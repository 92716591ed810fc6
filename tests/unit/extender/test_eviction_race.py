"""A pod that never ran is evicted without grace, unless a binding that was under way comes first."""

from collections.abc import Callable
from copy import deepcopy
from types import SimpleNamespace
from typing import Any, cast

import pytest
from extender_world import NOW, World

from extender.cluster import Cluster
from extender.evictions import Evictions
from extender.gangevents import GangEvents
from extender.notices import NoticeWriter
from extender.planner.framework import decisions
from extender.writes import Writes
from muster.api.kubernetes.core import Pod
from muster.api.muster.reason import reason_of
from muster.kube.errors import Conflict, NotFound

A_TEST = reason_of("a test")


class Api:
    """One pod as the API server has it; `before` is told of each call and may change the pod first."""

    def __init__(self, pod: Pod, before: Callable[["Api", str], None]) -> None:
        self.pod: Pod | None = pod
        self.running_evicted: list[str] = []
        self._before = before

    def bind(self) -> None:
        """What the bind call that is under way does."""
        assert self.pod is not None
        self.pod.spec.node_name = "node-0"
        self.changed()

    def get(self, _resource: object, _name: str, _namespace: str) -> Pod:
        """The pod as it is; nothing but these two calls is made."""
        self._before(self, "get")
        if self.pod is None:
            raise NotFound("there is no such pod")
        return deepcopy(self.pod)

    def evict(self, _namespace: str, name: str, _uid: str, **options: Any) -> None:
        """Evicts the pod if it is as it was seen; another member runs."""
        seen = options["resource_version"]
        if self.pod is None or name != self.pod.metadata.name:
            self.running_evicted.append(name)
            return
        self._before(self, "evict")
        if seen != self.pod.metadata.resource_version:
            raise Conflict("the resource version is another one")
        assert options["grace_period_s"] == 0
        self.pod = None

    def changed(self) -> None:
        """Somebody writes into its status."""
        assert self.pod is not None
        self.pod.metadata.resource_version = str(int(self.pod.metadata.resource_version) + 1)


def bind_before(call: str) -> Callable[[Api, str], None]:
    """The binding comes just before the first call of this kind."""
    done: list[str] = []

    def before(api: Api, what: str) -> None:
        if what == call and not done:
            done.append(what)
            api.bind()

    return before


def evict(before: Callable[[Api, str], None], cycles: int = 1) -> tuple[Api, World]:
    """Carries the evictions of a gang out that is bound in part: one member has a node, the other is pinned to one.

    So do more cycles, in the same moment.
    """
    world = World().nodes(2)
    key = world.gang("a", {"worker": (2, {"cpu": 1})})
    running = world.pod(key, "worker", 1, {"cpu": 1}, node="node-1", epoch=1)
    pod = world.pod(key, "worker", 0, {"cpu": 1}, pin="node-0", epoch=1)
    api = Api(pod, before)
    cluster = Cluster(cast("Any", None), wake=lambda: None)
    cluster.state = world.state
    events = GangEvents(cast("Any", SimpleNamespace(event=lambda *_: None)), wall_s=lambda: NOW)
    notices = NoticeWriter(cast("Any", api), cluster, events, wall_s=lambda: NOW)
    evictions = Evictions(cast("Any", api), cluster, events, notices, close=lambda *_: None, wall_s=lambda: NOW)
    both = [
        decisions.Evict(world.view(key), world.state.pods[each.metadata.uid], A_TEST, started=each is running)
        for each in (running, pod)
    ]
    writes = Writes(active=lambda: True, wake=lambda: None, wall_s=lambda: NOW)
    for _ in range(cycles):
        evictions.delete_all(cast("Any", SimpleNamespace(decided=lambda _: both)), writes)
    writes.stop()
    return api, world


def test_a_pod_without_a_node_goes_at_once() -> None:
    """Nothing of it runs; the member that does goes after it."""
    api, _ = evict(lambda *_: None)
    assert api.pod is None
    assert len(api.running_evicted) == 1


@pytest.mark.parametrize("call", ["get", "evict"])
def test_a_pod_that_is_bound_meanwhile_stays_and_is_known_as_bound(call: str) -> None:
    """Its kubelet may have started it, and a later cycle decides about it anew; nothing was written into it."""
    api, world = evict(bind_before(call))
    assert api.pod is not None
    assert sorted(record.node for record in world.state.pods.values()) == ["node-0", "node-1"]
    assert not api.running_evicted, "the gang is whole now"


@pytest.mark.parametrize("changes", [1, 2])
def test_a_pod_whose_status_changes_meanwhile_goes_with_the_next_cycle(changes: int) -> None:
    """kube-scheduler has just said that it finds no node for it; this costs the gang no time."""
    left = [changes]

    def said(api: Api, call: str) -> None:
        if call == "evict" and left[0]:
            left[0] -= 1
            api.changed()

    api, _ = evict(said, cycles=changes)
    assert api.pod is not None
    assert not api.running_evicted
    left[0] = changes
    api, _ = evict(said, cycles=changes + 1)
    assert api.pod is None
    assert api.running_evicted == ["a-worker-1"]


def test_another_pod_of_that_name_stays() -> None:
    """It is the successor of one that is gone."""

    def replaced(api: Api, call: str) -> None:
        assert call == "get"
        assert api.pod is not None
        api.pod.metadata.uid = "another"

    api, world = evict(replaced)
    assert api.pod is not None
    assert "another" not in world.state.pods, "only the watch tells of it"
