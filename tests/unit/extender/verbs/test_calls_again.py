"""Members of larger gangs call in any order, more than once, and as pods that were made again.

None is bound before enough *different* members are there: bound, or held at the barrier with a pod that still exists.
What a call has taken is free again when it fails.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple, cast

import pytest
from extender_world import World
from hypothesis import given, settings
from hypothesis import strategies as st
from verbs_world import Filled, error_of

from extender.barrier import HELD, Barrier
from extender.planner.reasons.verbs import VerbReason
from extender.verbs.bind import Bind
from muster.api.kubernetes.core import Pod
from muster.api.muster.placement import node_of
from muster.kube.errors import APIError, Conflict, Forbidden, Unreachable

CPU1 = {"cpu": 1}
Member = tuple[str, int]
"""Pod set and rank."""


class Sets(NamedTuple):
    """A gang: its pod sets, how many of each it needs, and how many of all."""

    sizes: Mapping[str, int]
    minimums: Mapping[str, int]
    least: int

    @property
    def members(self) -> list[Member]:
        """All of them."""
        return [(name, rank) for name, size in self.sizes.items() for rank in range(size)]

    def enough(self, members: Iterable[Member]) -> bool:
        """True if these may start."""
        count = Counter(name for name, _ in set(members))
        return count.total() >= self.least and all(count[name] >= least for name, least in self.minimums.items())


class Gang:
    """A placed gang of one-CPU pods, and the calls for them."""

    def __init__(self, sets: Sets) -> None:
        self.sets = sets
        self.world = World(checked=False)
        self.world.nodes(2)
        tasks = {name: (size, CPU1) for name, size in sets.sizes.items()}
        self.key = self.world.gang("a", tasks, min_member=sets.least, min_task_member=sets.minimums)
        self.pods = {member: self.pod(member) for member in sets.members}
        self.world.plan()
        self.bound: dict[str, str] = {}
        self.failures: list[APIError] = []
        self.during: Callable[[], None] = lambda: None
        self.barrier = Barrier(timeout_s=60, monotonic_s=lambda: 0.0)
        cluster = Filled(cast("Any", None), wake=lambda _: None)
        cluster.state = self.world.state
        self._bind = Bind(cluster, self.barrier, cast("Any", self), active=lambda: True, on_release=lambda *_: None)

    async def bind(self, _namespace: str, name: str, uid: str, node: str, _annotations: Mapping[str, str]) -> None:
        """As the API server."""
        self.during()
        if self.failures:
            raise self.failures.pop(0)
        del name
        assert self.bound.setdefault(uid, node) == node

    def pod(self, member: Member, **more: Any) -> Pod:
        """A pod of that member."""
        return self.world.pod(self.key, *member, CPU1, **more)

    def again(self, member: Member, times: int) -> None:
        """Its pod is gone, and another one has come."""
        self.world.state.on_pod(self.pods[member], None)
        self.pods[member] = self.pod(member, uid=f"uid-{member}-{times}", name=f"a-{member}-{times}")

    def node(self, member: Member) -> str:
        """Where the placement has it."""
        return node_of(self.world.state.placements[self.key], *member)

    def epoch(self, epoch: int) -> None:
        """The planner writes another placement, with the same nodes."""
        self.world.change(self.world.state.placements[self.key], spec={"epoch": epoch})

    def call(self, member: Member) -> "asyncio.Task[str]":
        """kube-scheduler's bind call; its error."""
        return asyncio.create_task(error_of(self._bind, self.pods[member], self.node(member)))

    def there(self) -> set[Member]:
        """The members that are bound."""
        return {member for member, pod in self.pods.items() if pod.metadata.uid in self.bound}

    def is_free(self) -> bool:
        """True if no call is held, and nothing is counted for one."""
        return not (self.barrier.waiting() or self.barrier.arrived())


async def quiet() -> None:
    """Lets every call come as far as it can."""
    for _ in range(12):
        await asyncio.sleep(0)


def tell(story: Callable[[], Awaitable[None]]) -> None:
    """Runs it."""

    async def timed() -> None:
        async with asyncio.timeout(60):
            await story()

    asyncio.run(timed())


THREE = Sets({"worker": 3}, {"worker": 3}, 3)


@st.composite
def gangs(draw: st.DrawFn) -> Sets:
    """Three to six members in one or two pod sets, and minimums that the gang can reach."""
    two = draw(st.booleans())
    sizes = {"a": draw(st.integers(1, 3)), "b": draw(st.integers(2, 3))} if two else {"a": draw(st.integers(3, 6))}
    minimums = {name: draw(st.integers(0, size)) for name, size in sizes.items()}
    return Sets(sizes, minimums, draw(st.integers(max(2, sum(minimums.values())), max(2, sum(sizes.values())))))


@settings(deadline=None, max_examples=settings().max_examples * 6 // 5)
@given(data=st.data())
def test_nobody_is_bound_before_enough_different_members_are_there(data: st.DataObject) -> None:
    """Some may be bound before; each may call again, and its pod may be made again while a call of it is held."""
    sets = data.draw(gangs())
    before = data.draw(st.sets(st.sampled_from(sets.members), max_size=len(sets.members) - 1))
    before = set() if sets.enough(before) else before
    steps = data.draw(st.lists(st.tuples(st.sampled_from(sets.members), st.booleans()), min_size=1, max_size=14))

    async def story() -> None:
        gang = Gang(sets)
        placed = [member for member in sets.members if node_of(gang.world.state.placements[gang.key], *member)]
        for member in before & set(placed):
            gang.pods[member] = gang.pod(member, node=gang.node(member), epoch=1)
            gang.bound[gang.pods[member].metadata.uid] = gang.node(member)
        first = gang.there()
        called: set[Member] = set()
        calls = []
        for times, (member, made_again) in enumerate(steps):
            if member not in placed:
                continue
            if made_again and member not in gang.there():
                gang.again(member, times)
                called.discard(member)
            else:
                called.add(member)
                calls.append(gang.call(member))
            await quiet()
            if sets.enough(first | called) or gang.there() != first:
                assert sets.enough(gang.there()), "a start is that of enough members"
                assert called <= gang.there(), "a call of a gang that has started does not wait"
                break
            assert gang.there() == first, "too few are there"
        gang.barrier.cancel_all()
        await asyncio.gather(*calls)
        assert gang.is_free()

    tell(story)


def test_a_bound_member_that_calls_again_counts_once() -> None:
    """kube-scheduler did not get the answer to its binding; the third member is not there yet."""

    async def story() -> None:
        gang = Gang(THREE)
        first = ("worker", 0)
        gang.pods[first] = gang.pod(first, node=gang.node(first), epoch=1)
        calls = [gang.call(first), gang.call(("worker", 1))]
        await quiet()
        assert gang.bound == {}
        calls.append(gang.call(("worker", 2)))
        assert await asyncio.gather(*calls) == ["", "", ""]

    tell(story)


def test_a_member_that_is_gone_while_its_call_is_held_does_not_count() -> None:
    """Its gang would start without it. It counts again when its next pod calls."""

    async def story() -> None:
        gang = Gang(THREE)
        gone = ("worker", 0)
        calls = [gang.call(gone)]
        await quiet()
        gang.world.state.on_pod(gang.pods[gone], None)
        calls += [gang.call(("worker", 1)), gang.call(("worker", 2))]
        await quiet()
        assert gang.bound == {}
        gang.again(gone, 1)
        calls.append(gang.call(gone))
        assert await asyncio.gather(*calls) == [VerbReason.PLACEMENT_OVER, "", "", ""]
        assert gang.is_free()

    tell(story)


def test_members_of_another_epoch_do_not_count() -> None:
    """Two are held by the placement before this one, which has the same nodes."""

    async def story() -> None:
        gang = Gang(THREE)
        calls = [gang.call(("worker", rank)) for rank in range(2)]
        await quiet()
        gang.epoch(2)
        calls.append(gang.call(("worker", 2)))
        await quiet()
        assert gang.bound == {}
        calls += [gang.call(("worker", rank)) for rank in range(2)]
        await quiet()
        assert len(gang.bound) == 3
        gang.barrier.cancel_all()
        assert await asyncio.gather(*calls) == [VerbReason.PLACEMENT_OVER] * 2 + [""] * 3

    tell(story)


def test_who_was_let_go_by_a_placement_is_not_bound_by_the_next_one() -> None:
    """It is written between the bindings of two members."""

    async def story() -> None:
        gang = Gang(THREE)
        gang.during = lambda: gang.epoch(2)
        answers = await asyncio.gather(*(gang.call(("worker", rank)) for rank in range(3)))
        assert sorted(answers) == ["", VerbReason.PLACEMENT_OVER, VerbReason.PLACEMENT_OVER]
        assert gang.is_free()

    tell(story)


@pytest.mark.parametrize(("pinned", "answer"), [(1, VerbReason.PLACEMENT_OVER), (2, ""), (3, VerbReason.NOT_SEEN)])
def test_members_are_bound_by_the_placement_of_a_pin(pinned: int, answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nodes of both are the same; a later one has not been seen yet."""
    monkeypatch.setattr("extender.verbs.bind.LAG_S", 0.0)

    async def story() -> None:
        gang = Gang(Sets({"worker": 1}, {"worker": 1}, 1))
        gang.epoch(2)
        member = ("worker", 0)
        gang.pods[member] = gang.pod(member, pin=gang.node(member), epoch=pinned)
        assert await gang.call(member) == answer

    tell(story)


@pytest.mark.parametrize("error", [Conflict("it is another pod"), Forbidden("no"), Unreachable("no answer")])
def test_a_member_whose_binding_failed_calls_again_and_is_bound(error: APIError) -> None:
    """The others are bound; its slot, its node and its place at the barrier are free for the next call."""

    async def story() -> None:
        gang = Gang(THREE)
        gang.failures = [error]
        answers = await asyncio.gather(*(gang.call(("worker", rank)) for rank in range(3)))
        assert sorted(answers) == ["", "", VerbReason.BIND_FAILED]
        assert gang.is_free()
        assert len(gang.world.view(gang.key).pod_sets[0].taken) == 2
        [left] = [member for member in THREE.members if member not in gang.there()]
        again = gang.call(left)
        await quiet()
        assert gang.there() == set(THREE.members)
        assert await again == ""
        assert gang.is_free()

    tell(story)


def test_calls_that_fail_together_leave_nothing_behind() -> None:
    """The gang has no member yet, and starts whole again."""

    async def story() -> None:
        gang = Gang(THREE)
        gang.failures = [Conflict("no")] * 3
        assert await asyncio.gather(*map(gang.call, THREE.members)) == [VerbReason.BIND_FAILED] * 3
        assert gang.is_free()
        assert gang.world.view(gang.key).taken == 0
        calls = [gang.call(member) for member in THREE.members[:2]]
        await quiet()
        assert gang.there() == set(), "the third has not come again"
        assert await asyncio.gather(*calls, gang.call(THREE.members[2])) == ["", "", ""]

    tell(story)


def test_a_call_that_is_cancelled_gives_its_place_back() -> None:
    """Its caller is gone: it is not bound when the others come."""

    async def story() -> None:
        gang = Gang(THREE)
        held = HELD._value.get()
        calls = [gang.call(member) for member in THREE.members[:2]]
        await quiet()
        assert (gang.barrier.waiting(), HELD._value.get()) == (2, held + 2)
        calls[0].cancel()
        await quiet()
        assert (gang.barrier.waiting(), HELD._value.get()) == (1, held + 1)
        last = gang.call(THREE.members[2])
        await quiet()
        assert gang.there() == set()
        again = gang.call(THREE.members[0])
        assert await asyncio.gather(calls[1], last, again) == ["", "", ""]
        assert gang.is_free()

    tell(story)
