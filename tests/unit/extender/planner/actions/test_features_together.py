"""Two features of the planner that meet: what each of them promises holds also then."""

from collections import Counter
from typing import Any

import pytest
from extender_world import NOW, World, of, only, slots
from hypothesis import given, settings
from hypothesis import strategies as st
from queue_world import QueueWorld
from topology_world import racks_of, racks_with
from victims_world import Cluster, victims

from extender.planner.actions.consolidate import Consolidate
from extender.planner.actions.displace import Preempt, Reclaim
from extender.planner.framework.decisions import MakeRoom, Place, SendNotice, Unschedulable
from extender.planner.framework.session import Session
from extender.planner.plugins.order import Elastic, GangPlugin, Priority
from extender.planner.plugins.predicates import Predicates
from extender.planner.plugins.proportion import Proportion
from extender.planner.plugins.protection import MinRuntime
from muster.api import names
from muster.api.muster.usage import PublishedUsage, QueueUsage, period_of
from muster.api.volcano.scheduling import Guarantee

GPU = "nvidia.com/gpu"
ONE = {GPU: 1, "cpu": 1}
GPU8 = {GPU: 8}


def shared(nodes: int, *actions: Any) -> Cluster:
    """Nodes of 8 GPUs, queues with real shares, and these actions."""
    world = Cluster(nodes)
    world.plugins = [GangPlugin({}), Proportion({}), Predicates({}), Priority({}), Elastic({})]
    world.actions = list(actions)
    return world


def losses(session: Session) -> Counter[str]:
    """Nodes' worth of GPUs that queues lose by the victims of a cycle."""
    return Counter(gang.queue for room in of(session, MakeRoom) for gang, _ in room.victims)


def guaranteed(nodes: int) -> Guarantee:
    """So many nodes' worth of GPUs."""
    return Guarantee(resource={GPU: 8 * nodes})


@settings(max_examples=settings().max_examples * 3 // 10)
@given(
    kept=st.integers(0, 4), sizes=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    asked=st.lists(st.tuples(st.sampled_from(["a", "c"]), st.integers(1, 2)), min_size=1, max_size=3),
    below=st.booleans(),
)  # fmt: skip
def test_reclaim_takes_nothing_that_is_guaranteed(
    *, kept: int, sizes: list[int], asked: list[tuple[str, int]], below: bool
) -> None:
    """Whoever asks, and however large the gangs are; also where it is the guarantee of a queue above."""
    world = shared(8, Reclaim())
    if below:
        world.queue("above", guarantee=guaranteed(kept))
    world.queue("b", parent="above" if below else "root", **({} if below else {"guarantee": guaranteed(kept)}))
    for name in ("a", "c"):
        world.queue(name, deserved={GPU: 24})
    first = 0
    for number, size in enumerate(sizes):
        if first + size <= 8:
            world.runs(f"b{number}", size, first=first, queue="b")
            first += size
    for number, (queue, pods) in enumerate(asked):
        world.asks(f"{queue}{number}", pods, queue=queue)
    lost = losses(world.cycle())["b"]
    assert not lost or first - lost >= kept


def test_what_is_above_a_guarantee_is_reclaimed() -> None:
    """Of four nodes two are guaranteed; the queue that asks gets the others, and not a third."""
    world = shared(4, Reclaim()).queue("b", guarantee=guaranteed(2)).queue("a", deserved={GPU: 32})
    for number in range(4):
        world.runs(f"b{number}", 1, first=number, queue="b")
    for number in range(3):
        world.asks(f"a{number}", 1, queue="a")
    assert losses(world.cycle()) == {"b": 2}


@pytest.mark.parametrize(
    ("own", "above", "go"), [("guarantee", "", 0), ("deserved", "", 3), ("", "guarantee", 0), ("", "deserved", 3)]
)
def test_a_gang_that_must_go_whole_stays_where_that_undercuts_a_guarantee(own: str, above: str, go: int) -> None:
    """Its three nodes are one more than the queue deserves, and all of them would go for one; two are guaranteed."""
    said = {"guarantee": guaranteed(2), "deserved": {GPU: 16}}
    world = shared(4, Reclaim())
    if above:
        world.queue("above", **{above: said[above]})
    world.queue("b", parent="above" if above else "root", **({own: said[own]} if own else {}))
    world.queue("a", deserved={GPU: 16})
    world.runs("large", 3, queue="b")
    world.asks("small", 2, queue="a")
    assert len(victims(world.cycle())) == go


def levels(nodes: int) -> Cluster:
    """Two departments that deserve two nodes each; that of `a1` and `a2` gives each of them one."""
    world = shared(nodes, Reclaim())
    for name, parent, deserved in (("a", "root", 2), ("b", "root", 2), ("a1", "a", 1), ("a2", "a", 1), ("b1", "b", 2)):
        world.queue(name, parent=parent, deserved={GPU: 8 * deserved})
    return world


@pytest.mark.parametrize(("runs", "asks", "lost"), [
    pytest.param(["a1", "b1", "b1", "b1"], "a1", {"b1": 1}, id="of another department that has more"),
    pytest.param(["a1", "a1", "b1", "b1"], "a2", {"a1": 1}, id="of the sibling that has borrowed it"),
    pytest.param(["a1", "a2", "b1", "b1"], "a1", {}, id="the department has what it deserves"),
])  # fmt: skip
def test_a_team_gets_what_its_department_deserves(runs: list[str], asks: str, lost: dict[str, int]) -> None:
    """From whoever has more; a team borrows what its sibling does not ask for."""
    world = levels(4)
    for number, queue in enumerate(runs):
        world.runs(f"{queue}-{number}", 1, first=number, queue=queue)
    world.asks("more", 1, queue=asks)
    assert losses(world.cycle()) == lost


def test_a_team_that_borrows_of_its_sibling_loses_nothing_to_another_department() -> None:
    """Its own department has what it deserves; the sibling wants more than its share, and gets nothing yet."""
    world = levels(4)
    world.queue("b2", parent="b", deserved={GPU: 8}).queue("b1", parent="b", deserved={GPU: 8})
    world.queue("fixed", reclaimable=False)
    world.runs("own", 1, first=0, queue="a1")
    world.runs("fixed", 1, first=1, queue="fixed")
    for number in range(2):
        world.runs(f"b{number}", 1, first=2 + number, queue="b1")
    world.asks("sibling", 2, queue="b2")
    world.asks("more", 1, queue="a1")
    assert not victims(world.cycle())


def test_a_capability_above_holds_for_what_teams_borrow() -> None:
    """Two teams of a department that may use ten GPUs: what one has not, the other may have, and no more."""
    world = shared(2).queue("a", capability={GPU: 10})
    for team in ("a1", "a2"):
        world.queue(team, parent="a", deserved={GPU: 5})
    world.gang("one", {"worker": (7, ONE)}, queue="a1")
    assert [place.new_slots for place in of(world.plan(), Place)] == [7]
    world.gang("two", {"worker": (4, ONE)}, queue="a2")
    world.gang("three", {"worker": (3, ONE)}, queue="a2")
    session = world.plan()
    assert [place.gang.key for place in of(session, Place)] == ["ns/three"]
    assert [(each.gang.key, each.reason) for each in of(session, Unschedulable)] == [("ns/two", "QueueOverCapability")]


def limits(per_user: int, budget: float, used: float) -> Cluster:
    """Two nodes, and a queue with a limit per user and an enforced budget of GPU hours this month."""
    world = shared(2, Reclaim(), Preempt())
    said = {"max-per-user": f"{GPU}={per_user}", "budget": f"{GPU}={budget:g}h/month", "budget-mode": "enforce"}
    world.queue("team", **said)
    month, _, _ = period_of("month", NOW)
    world.usage = PublishedUsage(until=NOW, queues={"team": QueueUsage(month=month, seconds={GPU: used * 3600})})
    return world


@pytest.mark.parametrize(("per_user", "used", "first", "second"), [
    (4, 0.0, "", "UserOverLimit"),
    (8, 0.0, "", ""),
    (4, 100.0, "QueueOverBudget", "QueueOverBudget"),
    (8, 100.0, "QueueOverBudget", "QueueOverBudget"),
])  # fmt: skip
def test_a_limit_per_user_and_a_budget_each_count(per_user: int, used: float, first: str, second: str) -> None:
    """A user within the limit waits for the budget, and one over it waits though the budget has something left."""
    world = limits(per_user, 100, used)
    world.gang("a", {"worker": (4, ONE)}, queue="team", user="ann")
    world.plan()
    world.gang("b", {"worker": (4, ONE)}, queue="team", user="ann")
    why = {each.gang.key: each.reason for each in of(world.plan(), Unschedulable)}
    placed = {key for key in ("ns/a", "ns/b") if key in world.state.placements}
    expected = {"ns/a": first, "ns/b": second}
    assert placed == {key for key, reason in expected.items() if not reason}
    waits = {key: reason for key, reason in expected.items() if reason}
    assert {key: why.get(key, "") for key in expected if key not in placed} == waits


@pytest.mark.parametrize("action", [Reclaim, Preempt])
@pytest.mark.parametrize(("per_user", "used", "go"), [(8, 0.0, 1), (7, 0.0, 0), (8, 100.0, 0)])
def test_nobody_goes_for_a_gang_that_its_queue_refuses(action: Any, per_user: int, used: float, go: int) -> None:
    """Neither for a user who has too much then, nor where the budget is used up."""
    world = limits(per_user, 100, used)
    world.actions = [action()]
    world.queue("other")
    queue = "team" if action is Preempt else "other"
    for number in range(2):
        world.runs(f"low{number}", 1, first=number, queue=queue, user="bob")
    world.asks("high", 1, queue="team", user="ann")
    assert len(victims(world.cycle())) == go


@pytest.mark.parametrize(("lasts", "grows"), [("30s", True), ("1h", False), ("", False)])
def test_a_gang_that_runs_grows_into_what_is_reserved_only_if_it_ends_before(lasts: str, *, grows: bool) -> None:
    """Two nodes become free that are reserved for the head of the queue; its minimum is one, and it asks for two."""
    world = QueueWorld(nodes=5)
    declared = {"declared_s": 30.0 if lasts == "30s" else 3600.0} if lasts else {}
    world.submit("old", 2, lasts_s=100, declared_s=100)
    world.joins("short", 2, lasts_s=5, declared_s=5)
    world.joins("big", 4, lasts_s=50, declared_s=50)
    world.joins("elastic", 2, lasts_s=1000, min_member=1, min_task_member={}, **declared)  # type: ignore[arg-type]
    assert len(world.runs["ns/elastic"].pods) == 1
    world.pod("ns/elastic", "worker", 1, {GPU: 1}, gated=True)
    assert world.state.placements["ns/big"].status.phase == "Reserved"
    assert {place.gang.key for place in of(world.step(6.0), Place)} == ({"ns/elastic"} if grows else set())


@pytest.mark.parametrize(("room", "pods"), [((2, 4), 4), ((2, 3), 3), ((1, 2), 2), ((3, 3), 3)])
def test_an_elastic_gang_grows_within_its_domain(room: tuple[int, int], pods: int) -> None:
    """It needs two near each other, and asks for four: the others come there, or not at all."""
    world = racks_with(*room)
    key = world.asks("a", 4, required="rack", min_member=2, min_task_member={"worker": 2})
    world.plan()
    nodes = [node for node in world.placed(key).get("worker", []) if node]
    assert len(set(racks_of(nodes))) == 1
    assert 2 <= len(nodes) <= pods


def test_growth_joins_the_members_that_run() -> None:
    """The other rack has more room; the one where they are has one node left."""
    world = racks_with(3, 3)
    key = world.asks("a", 2, required="rack")
    nodes = world.start(key, GPU8)
    group = world.state.groups[key]
    world.scale(key, "worker", 4)
    world.said_of(key, group.metadata.annotations)
    world.members(key, (2, 3), GPU8, gated=True)
    there = [node for node in slots(only(world.plan(), Place))["worker"] if node]
    assert set(racks_of(there)) == set(racks_of(nodes))
    assert len(there) == 3


def young(age_s: float, *, least: int, notice: str = "") -> Cluster:
    """A gang of three that started so long ago and needs so many, under the protection of ten minutes; one asks."""
    world = Cluster(3)
    world.plugins.append(MinRuntime({"defaultPreemptMinRuntime": "10m"}))
    key = world.runs("low", 3, min_member=least, min_task_member={"worker": least})
    world.started(key, age_s)
    if notice:
        world.annotate(key, names.EVICT_NOTICE, notice)
    world.asks("high", 1)
    return world


@pytest.mark.parametrize("notice", ["300s", ""])
@pytest.mark.parametrize(("age_s", "least", "go"), [(300, 3, 0), (300, 2, 1), (700, 3, 3), (700, 2, 1)])
def test_who_has_just_started_stays_but_for_what_is_above_its_minimum(
    age_s: float, least: int, go: int, notice: str
) -> None:
    """With a notice of five minutes those who are to go are told first, and go when it is over; else at once."""
    world = young(age_s, least=least, notice=notice)
    if notice:
        first = world.cycle()
        assert not of(first, MakeRoom)
        assert len({place.notices[0].gang for place in of(first, Place) if place.notices}) == bool(go)
        assert len(of(world.cycle(), SendNotice)) == go
        world.now += 301
    assert len(victims(world.cycle())) == go


def keeper(world: World, key: str, spares: int) -> None:
    """A gang starts that keeps so many nodes' worth of spares."""
    group = world.state.groups[key]
    world.change(group, annotations=group.metadata.annotations | {names.SPARES: str(spares)})
    world.start(key, GPU8)


@pytest.mark.parametrize(("spares", "moved"), [(0, {"one-worker-0"}), (1, set())])
def test_nobody_moves_onto_spares_of_others(spares: int, moved: set[str]) -> None:
    """A gang needs the one fast node; who runs there has another place only if that is nobody's spare."""
    world = Cluster(3)
    world.actions = [Consolidate()]
    world.node("node-0", labels={"disk": "fast"})
    world.runs("one", 1, gpus=6, first=0)
    key = world.gang("keeps", {"worker": (1, GPU8)}, priority_class="low")
    keeper(world, key, spares)
    assert len(world.state.placements[key].spec.spares) == spares
    world.gang("fast", {"worker": (1, GPU8)}, priority_class="low", spec={"nodeSelector": {"disk": "fast"}})
    assert victims(world.cycle()) == moved
