"""What a pair of one node pool takes in, and what becomes of a node that enters or leaves the pool."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from builders import pod as a_pod
from msgspec import convert

from extender import poolfeed
from extender.planner.framework.snapshot import take_snapshot
from extender.planner.state.state import PlannerState
from extender.poolfeed import PoolFeed
from muster.api.kubernetes.core import Node, Pod
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.pools import labels_of
from muster.api.names import NODE_POOL
from muster.api.volcano.scheduling import PodGroup, PodGroupSpec, Queue, QueueSpec, QueueStatus
from muster.kube.errors import Unreachable
from muster.kube.store import Mirror, ObjectStore

pytestmark = pytest.mark.anyio


def node(name: str, version: int = 1) -> Node:
    """A node of 8 CPUs."""
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}
    content = {"metadata": metadata, "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110"}}}
    return convert(content, Node)


def pod(name: str, scheduler: str = "default-scheduler", at: str = "", version: int = 1, gang: str = "") -> Pod:
    """A pod of one CPU."""
    requests = {"cpu": "1"}
    uid = f"uid-{name}"
    return a_pod(name, uid=uid, version=str(version), node=at, gang=gang, scheduler=scheduler, requests=requests)


class Lists:
    """A client whose lists of pods are answered when the test lets them; `wrong` fails the next ones."""

    def __init__(self) -> None:
        self.on_loop = self
        self.pods: list[Pod] = []
        self.asked: list[str] = []
        self.wrong = 0
        self.answer = asyncio.Event()

    async def list(self, _resource: object, *, field_selector: str, timeout_s: float) -> list[Pod]:
        """See `Reads.list`."""
        assert timeout_s > 0
        self.asked.append(field_selector)
        found = [each for each in self.pods if field_selector == f"spec.nodeName={each.spec.node_name}"]
        await self.answer.wait()
        if self.wrong:
            self.wrong -= 1
            raise Unreachable("no answer")
        return found


class World:
    """A feed with its state and the store of pods, as the process has them."""

    def __init__(self, pool: str) -> None:
        self.state, self.client = PlannerState(pool=pool), Lists()
        self.feed = PoolFeed(self.client, self.state, self.state.on_node, lambda: 0.0)  # type: ignore[arg-type]
        self.pods: Mirror[Pod] = Mirror("pods", ObjectStore[Pod](), wants=self.feed.wants_pod)
        self.pods.handlers.append(self.state.on_pod)
        self.pods.gone.append(self.feed.pod_gone)
        self.feed.pods = self.pods

    def tell(self, *pods: Pod) -> set[str]:
        """The watch shows pods; returns the names of those that the state has."""
        for each in pods:
            self.pods.add_object(each)
        return self.names

    @property
    def names(self) -> set[str]:
        """The names of the pods that the state has."""
        return {record.name for record in self.state.pods.values()}

    def free(self, name: str) -> int:
        """The CPUs that are free on a node, in milli-CPU; KeyError if the planner does not have it."""
        snapshot = take_snapshot(self.state)
        return int(snapshot.free[snapshot.axis["cpu"], snapshot.index[name]])


@asynccontextmanager
async def running(pool: str = "b") -> AsyncIterator[World]:
    """A world of a pool, whose feed stops in the end."""
    world = World(pool)
    async with asyncio.timeout(20):
        yield world
    world.feed.stop()


async def settled(condition: Callable[[], Any]) -> None:
    """Give others turns until it holds."""
    while not condition():  # noqa: ASYNC110 - no event tells
        await asyncio.sleep(0.001)


async def test_pods_are_the_pools_by_scheduler_or_by_node() -> None:
    """Those of other pools are dropped, also while they have no node; the default pool has all that wait elsewhere."""
    pods = (
        pod("own", "muster-b"), pod("own-away", "muster-b", "c-1"), pod("daemon", at="b-1"),
        pod("guest", "muster", "b-1"),
        pod("other", "muster-c"), pod("other-away", at="c-1"), pod("free"), pod("plain", "muster"),
    )  # fmt: skip
    async with running() as world:
        world.feed.on_node(None, node("b-1"))
        assert world.tell(*pods) == {"own", "own-away", "daemon", "guest"}
        guest = world.state.pods["uid-guest"]
        assert (guest.ours, guest.gang, world.state.pods["uid-own"].ours) == (False, None, True)
    async with running("") as world:
        world.feed.on_node(None, node("d-1"))
        assert world.tell(*pods) == {"free", "plain", "guest"}


async def test_a_pod_that_goes_to_another_pool_is_gone() -> None:
    """One of a foreign scheduler waits in the default pool until it is bound elsewhere."""
    async with running("") as world:
        assert (world.tell(pod("free")), world.tell(pod("free", at="b-1", version=2))) == ({"free"}, set())


async def test_a_gang_of_the_pool_keeps_members_of_other_schedulers() -> None:
    """Its members are wherever their scheduler has put them."""
    async with running() as world:
        group = PodGroup(metadata=ObjectMeta(name="g", namespace="ns", uid="g"), spec=PodGroupSpec(min_member=1))
        world.state.on_pod_group(None, group)
        assert world.tell(pod("member", at="c-1", gang="g"), pod("other", at="c-1", gang="h")) == {"member"}


async def test_a_node_that_leaves_takes_along_all_but_the_pools_own() -> None:
    """Gangs go on there; the planner has neither the node nor what others run on it."""
    async with running() as world:
        world.feed.on_node(None, node("b-1"))
        assert world.tell(pod("own", "muster-b", "b-1", gang="g"), pod("daemon", at="b-1")) == {"own", "daemon"}
        assert world.free("b-1") == 6_000
        world.feed.on_node(node("b-1"), None)
        assert world.names == {"own"}
        with pytest.raises(KeyError):
            world.free("b-1")
        world.client.pods = [pod("daemon", at="b-1")]
        world.client.answer.set()
        world.feed.on_node(None, node("b-1"))
        assert world.feed.held_back
        await settled(lambda: not world.feed.held_back)
        assert world.names == {"own", "daemon"}


async def test_a_node_that_enters_comes_with_its_pods() -> None:
    """It is not planned before they are listed, or it would look empty; what ends meanwhile does not come back."""
    async with running() as world:
        there = [pod("daemon", at="b-1"), pod("guest", "muster", "b-1"), pod("ends", at="b-1")]
        world.client.pods = there
        assert world.tell(*there) == set()
        world.feed.on_node(None, node("b-1"))
        await settled(lambda: world.client.asked)
        assert world.feed.held_back
        assert "b-1" not in world.state.nodes.index
        world.pods.remove("ns/ends")
        world.tell(pod("late", at="b-1"))
        world.feed.on_node(node("b-1"), node("b-1", 2))
        assert "b-1" not in world.state.nodes.index
        world.client.answer.set()
        await settled(lambda: not world.feed.held_back)
        assert (world.names, world.free("b-1")) == ({"daemon", "guest", "late"}, 5_000)
        assert world.client.asked == ["spec.nodeName=b-1"]


async def test_a_list_that_fails_is_tried_again() -> None:
    """The node waits for it."""
    async with running() as world:
        world.client.pods = [pod("daemon", at="b-1")]
        world.tell(*world.client.pods)
        world.client.wrong = 1
        world.client.answer.set()
        world.feed.on_node(None, node("b-1"))
        await settled(lambda: world.client.asked)
        assert world.feed.held_back
        await settled(lambda: not world.feed.held_back)
        assert world.free("b-1") == 7_000
        assert len(world.client.asked) == 2


async def test_a_node_that_leaves_while_it_enters_stays_away() -> None:
    """Its list comes too late, and it can come again."""
    async with running() as world:
        world.client.pods = [pod("daemon", at="b-1")]
        world.tell(*world.client.pods)
        world.feed.on_node(None, node("b-1"))
        await settled(lambda: world.client.asked)
        world.feed.on_node(node("b-1"), None)
        assert not world.feed.held_back
        world.client.answer.set()
        await asyncio.sleep(0)
        assert "b-1" not in world.state.nodes.index
        world.feed.on_node(None, node("b-1"))
        await settled(lambda: not world.feed.held_back)
        assert world.free("b-1") == 7_000


async def test_nodes_without_dropped_pods_cost_no_list() -> None:
    """In a cluster without pools there are no others."""
    async with running("") as world:
        for number in range(3):
            world.feed.on_node(None, node(f"d-{number}"))
            world.tell(pod(f"p-{number}", at=f"d-{number}"))
        world.feed.on_node(node("d-0"), node("d-0", 2))
        assert not world.client.asked
        assert len(world.names) == 3


async def test_of_too_many_nodes_with_dropped_pods_none_is_known_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the pods of every new node are listed."""
    monkeypatch.setattr(poolfeed, "MOST_NAMES", 2)
    async with running() as world:
        world.client.answer.set()
        for number in range(3):
            world.tell(pod(f"p{number}", at=f"n{number}"))
        for name in ("n2", "never-seen"):
            world.feed.on_node(None, node(name))
            await settled(lambda: not world.feed.held_back)
        assert world.client.asked == ["spec.nodeName=n2", "spec.nodeName=never-seen"]
        assert not world.feed._elsewhere


def a_queue(name: str, parent: str = "", pool: str = "") -> Queue:
    """An open queue."""
    meta = ObjectMeta(name=name, uid=name, labels=labels_of(pool))
    return Queue(metadata=meta, spec=QueueSpec(parent=parent), status=QueueStatus(state="Open"))


def test_queues_of_other_pools_are_known_and_not_planned() -> None:
    """A new label of a root queue takes its whole tree along, in whatever order they are told."""
    for pool, expected in (("", {"root", "default", "plain"}), ("b", {"team", "one", "deep"})):
        state = PlannerState(pool=pool)
        for each in (
            a_queue("deep", "one"), a_queue("one", "team"), a_queue("root"), a_queue("default"),
            a_queue("team", pool="b"), a_queue("plain"), a_queue("c", pool="c"),
        ):  # fmt: skip
            state.on_queue(None, each)
        assert state.queues.keys() == expected
        state.on_queue(a_queue("team", pool="b"), a_queue("team"))
        assert state.queues.keys() == (expected | {"team", "one", "deep"} if not pool else set())
        state.on_queue(a_queue("one", "team"), a_queue("one", "c"))
        state.on_queue(a_queue("c", pool="c"), a_queue("c", pool=pool))
        assert {"one", "deep", "c"} <= state.queues.keys()
        state.on_queue(a_queue("one", "c"), None)
        assert ("deep" in state.queues) is (not pool)  # its parent is gone: it is right below the root


def test_a_gang_in_a_queue_of_another_pool_waits() -> None:
    """The label of its PodGroup says whose it is; the reason has both pools."""
    state = PlannerState(pool="b")
    state.on_queue(None, a_queue("plain"))
    meta = ObjectMeta(name="g", namespace="ns", uid="g", labels={NODE_POOL: "b"})
    state.on_pod_group(None, PodGroup(metadata=meta, spec=PodGroupSpec(min_member=1, queue="plain")))
    barrier = take_snapshot(state).barred["ns/g"]
    assert str(barrier) == "queue 'plain' is of the default node pool, and the pods are of node pool 'b'"
