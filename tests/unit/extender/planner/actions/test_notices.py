"""Victims with a notice: told first, evicted when they have answered or their time is over, and never told twice."""

from typing import Any

import pytest
from extender_world import NOW, of, only, slots
from hypothesis import given, settings
from hypothesis import strategies as st
from victims_world import Cluster, victims

from extender.planner.actions.consolidate import Consolidate
from extender.planner.actions.displace import Preempt
from extender.planner.actions.elsewhere import Elsewhere, WithdrawNotices
from extender.planner.actions.progress import TrackPlacements
from extender.planner.framework.decisions import (
    ClosePlacement,
    MakeRoom,
    Place,
    Release,
    SendNotice,
    Unschedulable,
    WithdrawNotice,
)
from extender.planner.framework.session import Session
from extender.planner.timing import Timing
from muster.api import names
from muster.api.kubernetes.meta import format_time, parse_time

NOTICE = 300


class World(Cluster):
    """Gangs that run, with notices; what is told is written."""

    def __init__(self, nodes: int = 2) -> None:
        super().__init__(nodes)
        self.restarts()

    def noticed(self, name: str, pods: int = 1, notice: str = f"{NOTICE}s", **more: Any) -> str:
        """A gang that runs, and is to be told before it goes."""
        key = self.runs(name, pods, **more)
        self.annotate(key, names.EVICT_NOTICE, notice)
        return key

    def says(self, gang: str, rank: int = 0, task: str = "worker", **annotations: str | None) -> None:
        """A pod of a gang gets these annotations (`evict_at`), or loses them."""
        pod = self.state.pod_objects[f"uid-{gang}-{task}-{rank}"]
        said = {f"{names.DOMAIN}/{name.replace('_', '-')}": value for name, value in annotations.items()}
        wanted = {**pod.metadata.annotations, **said}
        self.change(pod, annotations={name: value for name, value in wanted.items() if value is not None})

    def cycle(self) -> Session:
        """One cycle; placements, their ends and what pods are told are written."""
        session = super().cycle()
        self.close(session)
        self.room_is_there(session)
        for tell in of(session, SendNotice):
            said = {"evict_at": tell.evict_at, "evict_for": tell.queue}
            self.says(tell.gang.group.metadata.name, tell.pod.slot.rank, tell.pod.slot.pod_set, **said)
        for stay in of(session, WithdrawNotice):
            gone = dict.fromkeys(("evict_at", "evict_for", "evict_ready"))
            self.says(stay.gang.group.metadata.name, stay.pod.slot.rank, stay.pod.slot.pod_set, **gone)
        return session

    def leaves(self, gang: str) -> None:
        """A gang and its placement are deleted, with its pods."""
        key = f"ns/{gang}"
        self.deleted(gang)
        if placement := self.state.placements.get(key):
            self.state.on_placement(placement, None)
        self.state.on_pod_group(self.state.groups[key], None)

    def restarts(self) -> None:
        """Another planner goes on, with what stands in the cluster."""
        self.progress = TrackPlacements()
        self.actions = [Preempt(), Elsewhere(), WithdrawNotices()]

    def told(self, gang: str, rank: int = 0) -> str | None:
        """What a pod was told."""
        return self.state.pod_objects[f"uid-{gang}-worker-{rank}"].metadata.annotations.get(names.EVICT_AT)

    def deleted(self, gang: str) -> None:
        """The pods of a gang are gone."""
        for pod in [each for each in self.state.pod_objects.values() if each.metadata.name.startswith(f"{gang}-")]:
            self.state.on_pod(pod, None)


def test_a_silent_victim_is_told_once_and_goes_when_its_time_is_over() -> None:
    """All of its pods are told the same time, for whom and why; not a second before it goes."""
    world = World()
    world.noticed("low", 2)
    world.asks("high", 2)
    first = world.cycle()
    assert not of(first, MakeRoom)
    assert [place.notices[0].evict_at for place in of(first, Place)] == [format_time(NOW + NOTICE)]
    second = world.cycle()
    assert [(tell.pod.name, tell.evict_at, tell.queue) for tell in of(second, SendNotice)] == [
        (f"low-worker-{rank}", format_time(NOW + NOTICE), "default") for rank in range(2)
    ]
    assert str(of(second, SendNotice)[0].reason) == "preempted by Job high of priority 10 in queue default"
    assert not of(world.cycle(), SendNotice)
    world.now += NOTICE - 1
    assert not victims(world.cycle())
    world.now += 1
    last = world.cycle()
    assert victims(last) == {"low-worker-0", "low-worker-1"}
    assert [room.outcomes for room in of(last, MakeRoom)] == [{"ns/low": "silent"}]
    assert not of(last, ClosePlacement)


def told() -> World:
    """A gang of two, which has been told for another one of two."""
    world = World()
    world.noticed("low", 2)
    world.asks("high", 2)
    world.cycle()
    return world


@pytest.mark.parametrize("answer", [
    pytest.param({"evict_ready": "true"}, id="ready"),
    pytest.param({"checkpoint": f"step=1200,at={format_time(NOW + 20)}"}, id="checkpoint"),
    pytest.param({"checkpoint": f"at={format_time(NOW)}"}, id="in the same second"),
])  # fmt: skip
def test_one_that_answers_goes_at_once(answer: dict[str, str]) -> None:
    """Any one member answers for its gang."""
    world = told()
    world.now += 20
    assert not victims(world.cycle())
    world.says("low", 1, **answer)
    session = world.cycle()
    assert victims(session) == {"low-worker-0", "low-worker-1"}
    assert [room.outcomes for room in of(session, MakeRoom)] == [{"ns/low": "answered"}]


@pytest.mark.parametrize("answer", [
    pytest.param({"evict_ready": "yes"}, id="no such word"),
    pytest.param({"checkpoint": f"step=1200,at={format_time(NOW - 1)}"}, id="saved before"),
    pytest.param({"checkpoint": f"step=1200,at={format_time(NOW + 21)}"}, id="saved tomorrow"),
    pytest.param({"checkpoint": "step=1200"}, id="without a time"),
    pytest.param({"checkpoint": f"step={'9' * 19},at={format_time(NOW + 20)}"}, id="too many digits"),
    pytest.param({"checkpoint": f"at={format_time(NOW + 20)}," + "x" * 200}, id="too long"),
    pytest.param({"checkpoint": f"at={format_time(NOW + 20)},of=other"}, id="an unknown part"),
])  # fmt: skip
def test_what_is_no_answer_changes_nothing(answer: dict[str, str]) -> None:
    """It goes when its time is over."""
    world = told()
    world.now += 20
    world.says("low", 0, **answer)
    assert not victims(world.cycle())
    world.now = NOW + NOTICE
    assert len(victims(world.cycle())) == 2


def test_the_rest_of_a_gang_follows_the_first_of_it() -> None:
    """The member that has answered is told to go first: while it ends, and when it is gone, the answer holds."""
    world = told()
    world.cycle()
    world.says("low", 0, evict_ready="true")
    world.change(world.state.pod_objects["uid-low-worker-0"], deletion_timestamp=format_time(NOW + 30))
    assert victims(world.cycle()) == {"low-worker-1"}
    world.state.on_pod(world.state.pod_objects["uid-low-worker-0"], None)
    assert victims(world.cycle()) == {"low-worker-1"}
    assert world.view("ns/low").taken == 1


def test_independent_pods_answer_each_for_itself() -> None:
    """They are a gang only in name."""
    world = World(2)
    key = world.gang("low", {"pods": (2, {"nvidia.com/gpu": 8})}, phase="Running", priority_class="low", min_member=1)
    world.members(key, 2, {"nvidia.com/gpu": 8}, task="pods", node="node-{}", phase="Running")
    world.change(world.state.groups[key], annotations={names.INDEPENDENT: "true", names.EVICT_NOTICE: "300s"})
    assert world.view(key).independent
    world.asks("high", 2)
    world.cycle()
    assert not victims(world.cycle())
    world.says("low", 1, "pods", evict_ready="true")
    assert victims(world.cycle()) == {"low-pods-1"}


def test_a_pod_of_an_earlier_life_answers_nothing() -> None:
    """It failed, and lies about."""
    world = World(3)
    low = world.noticed("low", 2)
    gone = world.pod(low, "worker", 0, {"nvidia.com/gpu": 8}, node="node-2", phase="Failed", uid="uid-old", name="old")
    world.change(gone, annotations={**gone.metadata.annotations, names.EVICT_READY: "true"})
    world.asks("high", 3)
    world.cycle()
    assert not victims(world.cycle())


def test_the_podgroup_answers_too() -> None:
    """So does the server that trainers of TrainJobs report to."""
    world = told()
    world.annotate("ns/low", names.CHECKPOINT, f"step=7,at={format_time(NOW)}")
    session = world.cycle()
    assert len(victims(session)) == 2
    [waits] = of(session, Unschedulable)
    assert waits.message.startswith("its 2 pods were evicted: preempted by Job high of priority 10 in queue default; ")
    assert f"the gang's last checkpoint was saved at {format_time(NOW)} (step 7)" in waits.message


def test_victims_without_a_notice_go_last() -> None:
    """Room that waits for others is of no use; who has answered goes at once."""
    world = World(3)
    world.runs("plain", 1)
    world.noticed("fast", 1, first=1)
    world.noticed("slow", 1, first=2)
    world.asks("high", 3)
    world.cycle()
    assert not victims(world.cycle())
    world.says("fast", evict_ready="true")
    assert victims(world.cycle()) == {"fast-worker-0"}
    world.deleted("fast")
    assert not victims(world.cycle())
    world.now += NOTICE
    assert victims(world.cycle()) == {"plain-worker-0", "slow-worker-0"}


def test_a_victim_stays_where_room_comes_in_another_way() -> None:
    """It is told so, and its answer is forgotten; the next asker gives it a notice of its own."""
    world = World(2)
    world.noticed("low", 1)
    world.runs("other", 1, first=1, priority_class="high")
    world.asks("high", 1)
    world.cycle()
    world.cycle()
    assert world.told("low") == format_time(NOW + NOTICE)
    world.now += 10
    world.leaves("high")
    assert [stay.pod.name for stay in of(world.cycle(), WithdrawNotice)] == ["low-worker-0"]
    assert world.told("low") is None
    assert not of(world.cycle(), WithdrawNotice)
    world.asks("again", 1)
    assert [notice.evict_at for notice in only(world.cycle(), Place).notices] == [format_time(NOW + 10 + NOTICE)]


def test_an_asker_takes_other_nodes_that_become_free() -> None:
    """Its victims stay; nodes that are too few do not count."""
    world = World(4)
    low = world.noticed("low", 2)
    for number, name in enumerate(("other", "more"), 2):
        world.runs(name, 1, first=number, priority_class="high")
    world.asks("high", 2)
    world.cycle()
    world.cycle()
    world.leaves("other")
    assert not of(world.cycle(), Place)
    world.leaves("more")
    place = only(world.cycle(), Place)
    assert (place.gang.key, place.epoch, place.victims) == ("ns/high", 2, ())
    assert slots(place) == {"worker": ["node-2", "node-3"]}
    stay = world.cycle()
    assert {each.pod.name for each in of(stay, WithdrawNotice)} == {"low-worker-0", "low-worker-1"}
    assert len(of(stay, Release)) == 2
    world.now += NOTICE
    assert not victims(world.cycle())
    assert world.view(low).started


def test_an_asker_keeps_its_nodes_once_all_victims_go() -> None:
    """There is nobody to be spared any more."""
    world = World(3)
    world.noticed("low", 1)
    world.runs("other", 2, first=1, priority_class="high")
    world.asks("high", 1)
    world.cycle()
    world.change(world.state.pod_objects["uid-low-worker-0"], deletion_timestamp=format_time(NOW + 30))
    world.leaves("other")
    assert "ns/high" not in {place.gang.key for place in of(world.cycle(), Place)}


def test_a_later_asker_does_not_prolong_a_notice() -> None:
    """Who asks before it was withdrawn takes the time over, with the answers since."""
    world = World(1)
    world.noticed("low", 1)
    world.says("low", evict_at=format_time(NOW + 60))
    world.asks("high", 1)
    session = world.cycle()
    assert not of(session, WithdrawNotice)
    [notice] = only(session, Place).notices
    assert (notice.told_at, notice.evict_at) == (format_time(NOW + 60 - NOTICE), format_time(NOW + 60))


@pytest.mark.parametrize(("own", "above", "installation", "seconds"), [
    pytest.param(None, None, 3600.0, 300, id="as it asks"),
    pytest.param("60s", None, 3600.0, 60, id="by its queue"),
    pytest.param("100s", "60s", 3600.0, 60, id="by a queue above"),
    pytest.param("soon", "2h", 3600.0, 300, id="unreadable and too long are nothing"),
    pytest.param(None, None, 30.0, 30, id="by the installation"),
    pytest.param("0s", None, 3600.0, 0, id="none in this queue"),
])  # fmt: skip
def test_queues_and_settings_limit_it(own: str | None, above: str | None, installation: float, seconds: int) -> None:
    """The shortest counts; 0 is no notice at all."""
    world = World(1)
    for name, parent, text in (("top", "root", above), ("sub", "top", own)):
        world.queue(name, parent=parent, **({"max-evict-notice": text} if text else {}))
    world.timing = Timing(growth_delay_s=0.0, longest_notice_s=installation)
    world.noticed("low", 1, queue="sub")
    world.asks("high", 1, queue="sub")
    session = world.cycle()
    found = [notice.evict_at for place in of(session, Place) for notice in place.notices]
    assert found == ([format_time(NOW + seconds)] if seconds else [])
    assert bool(of(session, MakeRoom)) is not bool(seconds)


def test_a_budget_that_forbids_it_by_now_ends_the_notice_at_once() -> None:
    """Nobody is told in vain for longer than needed, and nobody goes."""
    world = told()
    world.label_pods("low", app="db")
    world.cycle()
    world.budget("db", allowed=0, app="db")
    [close] = of(world.cycle(), ClosePlacement)
    assert (close.phase, close.evicted_in_vain) == ("Abandoned", True)
    assert len(of(world.cycle(), WithdrawNotice)) == 2


def test_a_gang_that_is_told_to_move_keeps_its_place_until_then() -> None:
    """Its new placement waits as long; and ends, if it is to move for nobody any more."""
    world = World(3)
    world.actions[0] = Consolidate()
    world.noticed("small", 1, gpus=4)
    world.runs("half", 1, gpus=4, first=1, priority_class="high")
    world.runs("whole", 1, first=2, priority_class="high")
    world.asks("big", 1)
    assert {place.gang.key for place in of(world.cycle(), Place)} == {"ns/small", "ns/big"}
    world.now += 100
    assert not of(world.cycle(), ClosePlacement)
    assert not victims(world.cycle())
    world.leaves("big")
    [close] = of(world.cycle(), ClosePlacement)
    assert (close.gang.key, close.phase) == ("ns/small", "Bound")


@settings(max_examples=settings().max_examples * 3 // 5)
@given(steps=st.lists(st.sampled_from(["wait", "long", "cycle", "restart", "gone", "ask", "answer"]), max_size=25))
def test_a_notice_is_kept_whatever_happens(steps: list[str]) -> None:
    """Not evicted before its time without an answer, nor told a later one while an asker is there; and at its time."""
    world = World(1)
    world.noticed("low", 1)
    askers = 0
    asked = answered = False
    for step in steps:
        before = world.told("low")
        if step in {"wait", "long"}:
            world.now += 7 if step == "wait" else 200
        elif step == "restart":
            world.restarts()
        elif step == "ask" and not asked:
            askers, asked = askers + 1, True
            world.asks(f"high{askers}", 1)
        elif step == "gone" and asked:
            asked = answered = False
            world.leaves(f"high{askers}")
        elif step == "answer" and before:
            answered = True
            world.says("low", evict_ready="true")
        session = world.cycle()
        after, going = world.told("low"), bool(victims(session))
        if before and after:
            assert after == before
        if going:
            assert asked
            assert answered or world.now >= (parse_time(before) or 0.0)
            return
        if asked and before and after and not of(session, Place):
            assert not answered
            assert world.now < (parse_time(before) or 0.0)
