"""What is kept for a queue costs others no more than its share, for a while, and nothing while it waits for itself."""

from typing import Any

import numpy as np
import pytest
from builders import pod
from hypothesis import given, settings
from hypothesis import strategies as st
from queue_world import QueueWorld

from extender.planner.framework.session import Session
from extender.planner.plugins.order import Reservations
from extender.planner.plugins.proportion import Proportion
from muster.api import names
from muster.api.kubernetes.meta import parse_time

PATIENCE_S = 600


def shared(*, nodes: int, **arguments: str) -> QueueWorld:
    """Nodes of one GPU each, shared by the queues `mine` (weight 1) and `theirs` (weight 3)."""
    world = QueueWorld(nodes=nodes)
    world.plugins = [Proportion({}), Reservations(arguments), *world.plugins]
    world.queue("mine", weight=1).queue("theirs", weight=3)
    return world


def kept_from_all(session: Session) -> dict[str, np.ndarray]:
    """Queue → the amounts that are kept for it from all others."""
    kept: dict[str, np.ndarray] = {}
    for room in session.reserved_rooms:
        if not room.only:
            queue = room.gang.queue  # type: ignore[attr-defined]  # they are reservations
            kept[queue] = kept.get(queue, 0) + room.need.sum(axis=1)
    return kept


def test_a_head_that_waits_for_an_endless_pod_of_its_own_keeps_nothing_from_others() -> None:
    """However long it waits: a tenant could keep the whole cluster so, whatever his weight."""
    world = shared(nodes=8)
    world.submit("endless", 1, lasts_s=1e9, queue="mine")
    world.joins("running", 7, lasts_s=PATIENCE_S + 50, queue="theirs")
    world.joins("all", 8, lasts_s=10, queue="mine")
    world.step(PATIENCE_S + 10)
    assert "as it waits for pods of that queue" in world.message("all")
    world.step(100)
    world.joins("next", 7, lasts_s=1e9, queue="theirs")
    assert "next" in world.started


def waits_for_its_own() -> QueueWorld:
    """Four nodes, two of them used by `mine` for 100 s; a gang of that queue wants all."""
    world = shared(nodes=4)
    world.joins("own", 2, lasts_s=100, declared_s=100, queue="mine")
    world.joins("all", 4, lasts_s=10, queue="mine")
    assert world.state.placements["ns/all"].status.phase == "Reserved"
    return world


def test_ends_that_are_told_change_nothing_about_that() -> None:
    """He could tell any, and start the next one."""
    world = waits_for_its_own()
    world.joins("long", 2, lasts_s=1000, queue="theirs")
    assert "long" in world.started


def test_its_own_queue_leaves_the_room_free_all_the_same() -> None:
    """Else small ones of the queue would starve it."""
    world = waits_for_its_own()
    world.submit("small", 1, lasts_s=1000, queue="mine")
    assert "the gang would run into the reservation of a gang of queue mine" in world.message("small")
    assert world.until_started("ns/all", 200)


@pytest.mark.parametrize(("own", "members", "mine", "kept"), [
    pytest.param(0, 2, {}, True, id="a quarter"),
    pytest.param(0, 3, {}, False, id="more than a quarter"),
    pytest.param(1, 2, {}, False, id="more with what it uses"),
    pytest.param(0, 4, {"deserved": {"nvidia.com/gpu": 4, "pods": 8}}, True, id="what it deserves"),
])  # fmt: skip
def test_more_than_the_fair_share_or_what_is_deserved_is_not_kept_from_others(
    own: int, members: int, mine: dict[str, Any], *, kept: bool
) -> None:
    """Of 8 GPUs a quarter is due to the queue while the other one wants them all."""
    world = shared(nodes=8).queue("mine", weight=1, **mine)
    if own:
        world.submit("own", own, lasts_s=1e9, queue="mine")
    world.joins("running", 8 - own, lasts_s=100, declared_s=100, queue="theirs")
    world.submit("head", members, lasts_s=10, queue="mine")
    world.submit("more", 8, lasts_s=1000, queue="theirs")
    assert ("mine" in kept_from_all(world.step())) is kept
    assert ("would have more than its fair share" in world.message("head")) is not kept


def test_pods_without_a_gang_have_their_share_too() -> None:
    """What they wait for counts for their queue, so that nobody keeps all room from them."""
    world = shared(nodes=8).queue("mine", weight=9).queue("lone", weight=30)
    world.joins("running", 8, lasts_s=100, declared_s=100, queue="theirs")
    world.submit("head", 5, lasts_s=10, queue="mine")
    assert "mine" in kept_from_all(world.step())
    lone = [pod(f"lone-{n}", uid=f"l{n}", labels={names.QUEUE: "lone"}, limits={"nvidia.com/gpu": 1}) for n in range(8)]
    for each in lone:
        world.state.on_pod(None, each)
    assert "mine" not in kept_from_all(world.step())
    for each in lone:
        world.state.on_pod(each, None)
    assert not world.state.pod_table.asked
    assert "mine" in kept_from_all(world.step())


def test_a_reservation_expires_and_begins_again_after_a_pause() -> None:
    """Those it waits for may run for ever; others get what has come free meanwhile."""
    world = shared(nodes=4, expiry="1000s", patience="100s").queue("mine", weight=9)
    world.submit("short", 1, lasts_s=150, queue="theirs")
    world.joins("endless", 3, lasts_s=1e9, queue="theirs")
    world.joins("head", 2, lasts_s=10, queue="mine")
    world.step(120)
    begun = parse_time(world.state.placements["ns/head"].status.reserved_at)
    assert begun == world.now
    world.step(100)
    world.submit("next", 1, lasts_s=60, queue="theirs")
    world.step(800)
    assert "next" not in world.started
    world.step(100)
    world.step()
    assert "next" in world.started
    assert "as all queues have done so for 1000 s" in world.state.placements["ns/head"].status.message
    world.step(100)
    world.joins("third", 1, lasts_s=60, queue="theirs")
    assert "third" not in world.started
    assert parse_time(world.state.placements["ns/head"].status.reserved_at) > begun + 1000


def test_nodes_on_which_others_run_are_reserved_first() -> None:
    """The queue's own endless pod uses least, but its node would never come free."""
    world = QueueWorld(nodes=2, gpus=4)
    world.submit("own", 1, lasts_s=1e9, queue="mine")
    world.queue("mine").queue("theirs")
    world.step()
    world.submit("fill", 3, lasts_s=1e9, queue="theirs")
    world.joins("others", 4, lasts_s=PATIENCE_S + 100, queue="theirs")
    world.joins("head", 4, lasts_s=10, queue="mine")
    assert [room.only for room in world.step(PATIENCE_S + 10).reserved_rooms] == [""]


GANG = st.tuples(st.sampled_from(["mine", "theirs", "third"]), st.integers(1, 6), st.integers(5, 80), st.booleans())


@settings(max_examples=settings().max_examples // 5)
@given(
    gangs=st.lists(st.tuples(GANG, st.integers(0, 20)), min_size=3, max_size=14),
    weights=st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 5)), deserved=st.integers(0, 4),
)  # fmt: skip
def test_no_queue_has_more_kept_than_its_share_less_what_it_uses(
    gangs: list[tuple[tuple[str, int, int, bool], int]], weights: tuple[int, int, int], deserved: int
) -> None:
    """In every cycle, and of every resource that is kept for it."""
    world = shared(nodes=6, patience="10s", expiry="60s")
    for queue, weight in zip(("mine", "theirs", "third"), weights, strict=True):
        world.queue(queue, weight=weight, **({"deserved": {"nvidia.com/gpu": deserved}} if queue == "mine" else {}))
    for index, ((queue, members, lasts, says), wait) in enumerate(gangs):
        world.submit(f"g{index}", members, lasts_s=lasts, declared_s=lasts if says else None, queue=queue)
        _none_has_more_than_its_share(world.step(wait))
    for _ in range(10):
        _none_has_more_than_its_share(world.step(10))


def _none_has_more_than_its_share(session: Session) -> None:
    hooks = session.hooks
    for queue, kept in kept_from_all(session).items():
        due = np.maximum(hooks.get_queue_fair_share.call(queue), hooks.get_queue_deserved_resources.call(queue))
        over = (hooks.get_queue_allocated_resources.call(queue) + kept > due) & (kept > 0)
        assert not over.any(), f"{queue} has {kept} kept"


@settings(max_examples=settings().max_examples // 5)
@given(ends=st.integers(30, 100), runtimes=st.lists(st.integers(5, 120), min_size=1, max_size=4))
def test_who_has_ended_by_then_starts_at_once(ends: int, runtimes: list[int]) -> None:
    """A reservation costs others nothing before its time."""
    world = shared(nodes=4).queue("mine", weight=9, deserved={"nvidia.com/gpu": 4, "pods": 400})
    world.joins("old", 2, lasts_s=ends, declared_s=ends, queue="theirs")
    world.submit("head", 4, lasts_s=10, queue="mine")
    assert "mine" in kept_from_all(world.step())
    at = parse_time(world.state.placements["ns/head"].status.expected_at)
    assert at is not None
    free = 2
    for index, seconds in enumerate(runtimes):
        world.submit(f"s{index}", 1, lasts_s=seconds, declared_s=seconds, queue="theirs")
        before, now = len(world.started), world.now
        world.step(0)
        fits = free > 0 and now + 10 + seconds <= at
        assert (len(world.started) > before) is fits
        free -= fits


def test_one_that_binds_its_own_queue_only_keeps_no_other_head_from_a_reservation() -> None:
    """Else as many tenants as there are heads could keep all others out."""
    world = shared(nodes=4)
    world.plugins[1] = Reservations({"heads": 1})
    world.submit("own", 1, lasts_s=100, declared_s=100, queue="mine")
    world.submit("running", 3, lasts_s=100, declared_s=100, queue="third")
    world.queue("third")
    world.step()
    world.joins("all", 4, lasts_s=10, queue="mine")
    assert world.state.placements["ns/all"].status.phase == "Reserved"
    world.joins("entitled", 2, lasts_s=10, queue="theirs")
    assert "theirs" in kept_from_all(world.step())
