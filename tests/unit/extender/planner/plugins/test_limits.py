"""Limits of queues beyond their capability: per user, by time window, and budgets, at every moment."""

from collections import Counter
from typing import Any

import pytest
from extender_world import NOW, World, of, slots, waiting
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from queue_world import QueueWorld
from queue_world import shared_world as world_of

from extender.placements import _assume, new_requests
from extender.planner.actions.allocate import Allocate
from extender.planner.actions.displace import Preempt
from extender.planner.actions.enqueue import Enqueue
from extender.planner.fairshare.budgets import budgets_of
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.plugins.order import GangPlugin, Priority
from extender.planner.plugins.predicates import Predicates
from extender.planner.plugins.proportion import Proportion
from muster.api.kubernetes.core import PriorityClass
from muster.api.kubernetes.meta import OwnerReference, format_time
from muster.api.muster.creator import counted_user
from muster.api.muster.noderuns import ranks_of
from muster.api.muster.usage import PERIODS, PeriodUsage, PublishedUsage, QueueUsage, period_of

GPU = {"nvidia.com/gpu": 1, "cpu": 1}
PER_USER, WINDOWS, BUDGET, MODE = "max-per-user", "limit-windows", "budget", "budget-mode"
MONTH, BEGIN, END = period_of("month", NOW)
HOUR_S = 3600.0


def placed(session: Session) -> dict[str, int]:
    """Slots that gangs got, by name."""
    return {place.gang.key.partition("/")[2]: place.new_slots for place in of(session, decisions.Place)}


def test_no_user_has_more_than_the_queue_allows_each() -> None:
    """Others of the queue go on; the reason names the user, the amounts, and what is allowed."""
    world = world_of(4).queue("team", **{PER_USER: "nvidia.com/gpu=16"})
    for name, user, size in (("a", "alice", 16), ("b", "alice", 8), ("c", "bob", 8)):
        world.gang(name, {"worker": (size, GPU)}, queue="team", user=user)
    session = world.plan()
    assert placed(session) == {"a": 16, "c": 8}
    assert waiting(session)["b"] == (
        "UserOverLimit",
        (
            "user alice holds 16 of 16 nvidia.com/gpu that queue team allows per user; 8 more are requested; "
            "the gang starts when other gangs of that user end"
        ),
    )


def test_an_elastic_gang_grows_up_to_the_limit() -> None:
    """Its minimum and its growth are both checked."""
    world = world_of(4).queue("team", **{PER_USER: "nvidia.com/gpu=5"})
    world.gang("grows", {"worker": (8, GPU)}, queue="team", user="alice", min_member=2, min_task_member={})
    assert placed(world.plan()) == {"grows": 5}


def test_unknown_creators_of_a_namespace_are_one_user_with_its_accounts() -> None:
    """Else nobody would be a second user for everybody, and each account another one."""
    world = world_of(4).queue("team", **{PER_USER: "nvidia.com/gpu=4"})
    users = ("", "", "system:serviceaccount:ns:one", "system:serviceaccount:ns:two")
    for name, user in zip("abcd", users, strict=True):
        world.gang(name, {"worker": (3, GPU)}, queue="team", user=user)
    session = world.plan()
    assert len(placed(session)) == 1
    for _, message in waiting(session).values():
        assert message.startswith(
            "namespace ns (its service accounts, and workloads without a known creator, count as one user) holds 3 of 4"
        )


def test_unknown_creators_of_another_namespace_are_another_user() -> None:
    """Whoever fills what nobody may have takes nothing from them."""
    world = world_of(4).queue("team", **{PER_USER: "nvidia.com/gpu=4"})
    for name, namespace in (("a", "ns"), ("b", "other")):
        key = world.pod_group(name, 1, queue="team", namespace=namespace)
        world.pod(key, "pod", 0, {"nvidia.com/gpu": 3}, gated=True, namespace=namespace)
    assert placed(world.plan()) == {"a": 1, "b": 1}


def test_a_placed_gang_counts_before_its_pods_are_bound() -> None:
    """And a pod of no gang counts for its creator."""
    world = world_of(4).queue("team", **{PER_USER: "nvidia.com/gpu=4"})
    world.gang("first", {"worker": (2, GPU)}, queue="team", user="alice")
    world.plan()
    world.pod(
        "ns/x", "worker", 0, GPU, node="node-3", labels={"volcano.sh/queue-name": "team"},
        annotations={"muster.dev/created-by": "alice"},
    )  # fmt: skip
    world.gang("second", {"worker": (2, GPU)}, queue="team", user="alice")
    world.gang("third", {"worker": (1, GPU)}, queue="team", user="alice")
    assert placed(world.plan()) == {"third": 1}


def drivers(world: World, *names: str, cpu: int = 2, **more: Any) -> None:
    """PodGroups of one pod with 1 CPU and `cpu` in minResources, as Spark makes them."""
    for name in names:
        key = world.pod_group(name, 1, queue="team", **more)
        world.change(world.state.groups[key], spec={"min_resources": {"cpu": str(cpu), "memory": "1Gi"}})
        world.pod(key, "pod", 0, {"cpu": 1}, gated=True)


def runs(world: World, name: str, rank: int, phase: str = "Running") -> None:
    """A pod of such a group runs on node-0, or has ended there."""
    world.pod(f"ns/{name}", "pod", rank, {"cpu": 1}, node="node-0", phase=phase)


@pytest.mark.parametrize(
    ("cpu", "capability", "start"), [(2, 2, {"a"}), (2, 3, {"a"}), (2, 4, {"a", "b"}), (3, 2, set())]
)
def test_min_resources_are_held_against_the_capability(cpu: int, capability: int, start: set[str]) -> None:
    """Where they are more than the members ask for; in the cycle that places the first gang, and later."""
    world = world_of(4).queue("team", capability={"cpu": str(capability)})
    drivers(world, "a", "b", cpu=cpu)
    assert placed(world.plan()).keys() == start
    assert not placed(world.plan())
    for name in sorted(start):
        runs(world, name, 0)
        world.close(world.session(world.progress))
    assert not placed(world.plan())


def test_what_a_started_gang_lacks_of_its_min_resources_is_kept_for_it() -> None:
    """Its second pod gets it; another gang starts once the first has ended."""
    world = world_of(4).queue("team", capability={"cpu": "2"})
    drivers(world, "a", "b")
    assert placed(world.plan()) == {"a": 1}
    runs(world, "a", 0)
    world.close(world.session(world.progress))
    world.pod("ns/a", "pod", 1, {"cpu": 1}, gated=True)
    session = world.plan()
    assert placed(session) == {"a": 1}
    assert waiting(session)["b"][0] == "QueueOverCapability"
    runs(world, "a", 1, "Succeeded")
    assert not placed(world.plan()), "the driver still runs"
    runs(world, "a", 0, "Succeeded")
    assert placed(world.plan()) == {"b": 1}


MADE = OwnerReference("apps/v1", "StatefulSet", "a", "uid-a", controller=True)


@pytest.mark.parametrize("owners", [[], [MADE]], ids=["a user's", "Muster's"])
def test_all_who_ask_see_what_a_gang_holds_of_its_min_resources(owners: list[OwnerReference]) -> None:
    """Filter and bind for pods without a gang, and the writer of placements; also after a move.

    A PodGroup that Muster makes holds nothing more than its pods: who may change the workload could fill the queue.
    """
    world = world_of(4).queue("team", capability={"cpu": "2"}).queue("other", capability={"cpu": "2"})
    drivers(world, "a", owner_references=owners)
    world.plan()
    runs(world, "a", 0)
    world.close(world.session(world.progress))
    queues, one = world.state.ledger.queues, {"cpu": 1000}
    for queue in ("team", "other"):
        world.change(world.state.groups["ns/a"], spec={"queue": queue})
        for _ in range(2):
            assert bool(queues.limited.over_capability(queue, one)) is not bool(owners)
            assert not queues.limited.over_capability(queue, queues.minimums.growth("ns/a", one))
            queues.limits_changed()
    world.pod("ns/a", "pod", 1, {"cpu": 1}, gated=True)
    [place] = of(world.session(Allocate()), decisions.Place)
    assert _assume(world.state, place, new_requests(place), NOW)
    assert bool(queues.limited.over_capability("other", one))
    queues.limits_changed()
    assert bool(queues.limited.over_capability("other", one))


def test_a_leaving_pod_counts_until_it_is_gone() -> None:
    """With minResources, too: its successor waits for the capability."""
    world = world_of(4).queue("team", capability={"cpu": "2"})
    drivers(world, "a")
    for rank in (0, 1):
        leaves = {"deletion_timestamp": "2027-01-15T08:00:00Z"} if rank else {}
        world.pod("ns/a", "pod", rank, {"cpu": 1}, node="node-0", phase="Running", **leaves)
    world.close(world.session(world.progress))
    world.pod("ns/a", "pod", 2, {"cpu": 1}, gated=True)
    assert not placed(world.plan())


def test_an_evicted_gang_leaves_all_that_was_reserved_for_it() -> None:
    """So that a gang of a higher priority finds the quota in the same cycle."""
    world = world_of(4).queue("team", capability={"cpu": "2"})
    drivers(world, "a")
    world.plan()
    runs(world, "a", 0)
    world.close(world.session(world.progress))
    meta = world.meta("high", namespace="")
    world.state.on_priority_class(None, PriorityClass(metadata=meta, value=10))
    world.gang("b", {"worker": (2, {"cpu": 1})}, queue="team", priority_class="high")
    session = world.session(world.progress, Enqueue(), Allocate(), Preempt())
    assert placed(session) == {"b": 2}
    assert [pod.name for room in of(session, decisions.MakeRoom) for _, pod in room.victims] == ["a-pod-0"]


def test_min_resources_limit_the_charge_of_pods_beyond_their_node() -> None:
    """Whether they come before their pod or after it, and when that has ended."""
    world = world_of(2).queue("team", capability={"cpu": "200"})
    key = world.pod_group("a", 1, queue="team")
    world.pod(key, "pod", 0, {"cpu": 100}, node="node-0", phase="Running")
    world.pod(key, "pod", 1, {"cpu": 1}, node="node-1", phase="Running")
    world.change(world.state.groups[key], spec={"min_resources": {"cpu": "100"}})
    for phase in ("Running", "Failed"):
        world.pod(key, "pod", 0, {"cpu": 100}, node="node-0", phase=phase)
        world.state.refresh()
        assert world.state.ledger.queues.limited.used["team", None]["cpu"] == 100_000
    assert world.state.differences() == []


def test_members_that_have_succeeded_leave_nothing_reserved() -> None:
    """The gang's rest runs, and the other may start beside it."""
    world = world_of(4).queue("team", capability={"cpu": "3"})
    drivers(world, "a")
    world.plan()
    runs(world, "a", 0, "Succeeded")
    runs(world, "a", 1)
    drivers(world, "b")
    assert placed(world.plan()) == {"b": 1}


def test_a_window_lets_a_queue_use_less() -> None:
    """Until it ends; what runs goes on."""
    world = world_of(4)  # NOW is a Friday morning in UTC
    world.queue("team")
    world.gang("runs", {"worker": (16, GPU)}, queue="team", user="alice")
    world.plan()
    world.queue("team", **{WINDOWS: "Fri 08:00-09:00 UTC nvidia.com/gpu=12; Sat 00:00-24:00 nvidia.com/gpu=0"})
    world.gang("waits", {"worker": (1, GPU)}, queue="team", user="alice")
    session = world.plan()
    assert not of(session, decisions.Evict)
    end = NOW // 86400 * 86400 + 9 * HOUR_S
    assert waiting(session)["waits"] == (
        "QueueOverWindow",
        (
            f"queue team may use 12 nvidia.com/gpu until {format_time(end)} (limit-windows) and uses 16: 1 more do not "
            "fit; it starts then, or when gangs of the queue end"
        ),
    )
    world.now = end
    assert placed(world.plan()) == {"waits": 1}


def used(hours: float, *, month: str = MONTH, until: float = NOW, queue: str = "team") -> PublishedUsage:
    """The usage of a queue in GPU hours."""
    return PublishedUsage(
        until=until, queues={queue: QueueUsage(month=month, seconds={"nvidia.com/gpu": hours * HOUR_S})}
    )


def test_a_budget_that_is_used_up_lets_no_gang_start() -> None:
    """Until the month ends; gangs that ask for nothing of it go on."""
    world = world_of(4).queue("team", **{BUDGET: "nvidia.com/gpu=100h/month", MODE: "enforce"})
    world.gang("gpus", {"worker": (1, GPU)}, queue="team")
    world.gang("none", {"worker": (1, {"cpu": 1})}, queue="team")
    world.usage = used(100)
    session = world.plan()
    assert placed(session) == {"none": 1}
    assert waiting(session)["gpus"] == (
        "QueueOverBudget",
        (
            "queue team has used its budget of 100 h of nvidia.com/gpu this month, and starts no gangs that request "
            f"nvidia.com/gpu before {format_time(END)}; running gangs continue"
        ),
    )
    world.now = END
    assert placed(world.plan()) == {"gpus": 1}


def test_what_is_held_since_the_usage_counts() -> None:
    """In the queues below, too: 8 GPUs for six minutes are 0.8 GPU hours."""
    world = world_of(4).queue("above", **{BUDGET: "nvidia.com/gpu=100h/month", MODE: "enforce"})
    world.queue("team", parent="above")
    world.gang("runs", {"worker": (8, GPU)}, queue="team")
    world.usage = used(99.3)
    assert placed(world.plan()) == {"runs": 8}
    world.now += 5 * 60
    world.gang("next", {"worker": (1, GPU)}, queue="team")
    assert placed(world.plan()) == {"next": 1}
    world.now += 60
    world.gang("late", {"worker": (1, GPU)}, queue="team")
    assert waiting(world.plan())["late"][0] == "QueueOverBudget"


@pytest.mark.parametrize(("usage", "mode"), [
    pytest.param(None, {MODE: "enforce"}, id="a history that is down"),
    pytest.param(used(1000, until=NOW + 601), {MODE: "enforce"}, id="of a time to come"),
    pytest.param(used(1000, month="2020-01"), {MODE: "enforce"}, id="of another month"),
    pytest.param(used(1000, queue="x"), {MODE: "enforce"}, id="of another queue"),
    pytest.param(used(1000), {}, id="a budget warns by default"),
])  # fmt: skip
def test_without_fresh_usage_or_the_mode_nothing_is_enforced(
    usage: PublishedUsage | None, mode: dict[str, str]
) -> None:
    """Nobody is kept from working."""
    world = world_of(1).queue("team", **{BUDGET: "nvidia.com/gpu=100h/month", **mode}).queue("x")
    world.gang("starts", {"worker": (1, GPU)}, queue="team")
    world.usage = usage
    assert placed(world.plan()) == {"starts": 1}


@pytest.mark.parametrize(("left_out", "waits"), [
    (("below",), {"gpus", "deep"}), (("",), {"gpus", "deep", "others"}), (("elsewhere",), set()),
])  # fmt: skip
def test_a_queue_whose_usage_was_left_out_waits_and_no_other(left_out: tuple[str, ...], waits: set[str]) -> None:
    """With less than it has used, its budget and those above it would be wrong; others are not concerned."""
    budget = {BUDGET: "nvidia.com/gpu=100h/month", MODE: "enforce"}
    world = world_of(4).queue("team", **budget).queue("below", parent="team").queue("x", **budget).queue("elsewhere")
    for name, queue in (("gpus", "team"), ("deep", "below"), ("others", "x")):
        world.gang(name, {"worker": (1, GPU)}, queue=queue)
    world.gang("none", {"worker": (1, {"cpu": 1})}, queue="team")
    world.usage = structs.replace(used(1), left_out=left_out)
    session = world.plan()
    assert waiting(session).keys() == waits
    for reason, message in waiting(session).values():
        assert reason == "QueueOverBudget"
        assert "not all usage fits into ConfigMap muster-usage" in message
    standing = budgets_of(session.snapshot, NOW, world.usage)["team"]
    assert standing.known is ("gpus" not in waits)


def of_today(hours: float, *, periods: tuple[str, ...] = PERIODS) -> PublishedUsage:
    """The same of today, this week and this month."""
    seconds = {"nvidia.com/gpu": hours * HOUR_S}
    week, day = (PeriodUsage(period_of(each, NOW).name, seconds) for each in ("week", "day"))
    return PublishedUsage(NOW, {"team": QueueUsage(MONTH, seconds, week, day)}, periods)


def test_of_several_budgets_each_counts() -> None:
    """The reason is the one that ends last; each ends with its own period."""
    world = world_of(4)
    said = "nvidia.com/gpu=10h/day,nvidia.com/gpu=20h/week,nvidia.com/gpu=1000h/month"
    world.queue("team", **{BUDGET: said, MODE: "enforce"})
    world.gang("waits", {"worker": (1, GPU)}, queue="team")
    world.usage = of_today(10)
    assert "its budget of 10 h of nvidia.com/gpu today, and" in waiting(world.plan())["waits"][1]
    world.usage = of_today(20)
    message = waiting(world.plan())["waits"][1]
    assert "its budget of 20 h of nvidia.com/gpu this week, and" in message
    assert f"before {format_time(period_of('week', NOW).end)}" in message
    world.now = period_of("day", NOW).end
    assert "this week" in waiting(world.plan())["waits"][1]
    world.now = period_of("week", NOW).end
    assert placed(world.plan()) == {"waits": 1}


def test_a_period_that_is_not_counted_is_not_enforced() -> None:
    """A recorder of an earlier version knows months only."""
    said = {BUDGET: "nvidia.com/gpu=10h/day,nvidia.com/gpu=1000h/month", MODE: "enforce"}
    world = world_of(1).queue("team", **said)
    world.gang("starts", {"worker": (1, GPU)}, queue="team")
    world.usage = of_today(20, periods=("month",))
    session = world.plan()
    assert placed(session) == {"starts": 1}
    standing = budgets_of(session.snapshot, NOW, world.usage)["team"]
    assert (standing.known, [each.period for each in standing.ratios]) == (False, ["month"])


H100, A100 = "NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB"
MODEL = "nvidia.com/gpu.product"


def models_world(*products: str) -> World:
    """A node of 8 GPUs for each of these models."""
    world = world_of(0)
    for number, product in enumerate(products):
        world.node(f"node-{number}", labels={MODEL: product})
    return world


def test_nodes_of_a_model_that_is_used_up_are_no_candidates() -> None:
    """A gang goes where its queue may still use GPUs, and waits with the reason where that is nowhere."""
    world = models_world(H100, H100, A100).queue("above", **{"max-by-model": "H100=8"})
    world.queue("team", parent="above")
    world.gang("one", {"worker": (6, GPU)}, queue="team", spec={"nodeSelector": {MODEL: H100}})
    world.gang("two", {"worker": (6, GPU)}, queue="above")
    session = world.plan()
    assert placed(session) == {"one": 6, "two": 6}
    assert {place.gang.key: models_of(world, place) for place in of(session, decisions.Place)}["ns/two"][H100] <= 2
    world.gang("late", {"worker": (5, GPU)}, queue="team", spec={"nodeSelector": {MODEL: H100}})
    reason, message = waiting(world.plan())["late"]
    assert reason == "NotEnoughResources"
    assert "2 have GPUs of model H100, of which queue above may use 8 (max-by-model)" in message
    world.queue("other")
    world.gang("other", {"worker": (4, GPU)}, queue="other", spec={"nodeSelector": {MODEL: H100}})
    assert placed(world.plan()) == {"other": 4}


def models_of(world: World, place: decisions.Place) -> Counter[str]:
    """Slots by the model of their node."""
    labels = {node.metadata.name: node.metadata.labels[MODEL] for node in world.state.nodes.nodes if node}
    return Counter(labels[node] for nodes in slots(place).values() for node in nodes)


USERS = ("", "alice", "bob")
QUEUES = ("a", "a1", "a2", "b")
SUBMISSIONS = st.tuples(
    st.sampled_from(USERS), st.sampled_from(QUEUES[1:]), st.integers(1, 6), st.integers(1, 6), st.integers(1, 5)
)


def held(world: World) -> Counter[tuple[str, str]]:
    """GPUs that users, and by model, each queue with those below it holds: counted from pods and placements alone."""
    found: Counter[tuple[str, str]] = Counter()
    nodes = [node.metadata for node in world.state.nodes.nodes if node]
    labels = {node.name: node.labels.get(MODEL, "no model") for node in nodes}
    for key, group in world.state.groups.items():
        at = {pod.slot.rank: pod.node for pod in world.state.pods.values() if pod.gang == key and pod.node and pod.slot}
        placement = world.state.placement_of(key)
        if placement is not None and placement.status.phase in {"Planned", "Binding"}:
            for one in placement.spec.pod_sets:
                at |= {rank: run.node for span, run in ranks_of(one.runs) for rank in span}
        for queue in (group.spec.queue, *(("a",) if group.spec.queue in {"a1", "a2"} else ())):
            found[queue, counted_user("ns", group.metadata.annotations)] += len(at)
            found.update((queue, labels[node]) for node in at.values())
    return found


@settings(max_examples=settings().max_examples * 3 // 10)
@given(
    per_user=st.fixed_dictionaries({name: st.integers(1, 8) for name in ("a", "a1", "b")}),
    by_model=st.fixed_dictionaries({name: st.integers(0, 12) for name in ("a", "a1", "b")}),
    rounds=st.lists(st.lists(SUBMISSIONS, max_size=4), min_size=1, max_size=8), models=st.booleans(),
)  # fmt: skip
def test_nobody_ever_holds_more(
    *,
    per_user: dict[str, int],
    by_model: dict[str, int],
    rounds: list[list[tuple[str, str, int, int, int]]],
    models: bool,
) -> None:
    """Whatever is submitted, grows and ends: after each cycle no user, and no model, has more than any queue allows."""
    world = QueueWorld(nodes=2, gpus=8)
    world.plugins = [GangPlugin({}), Proportion({}), Predicates({}), Priority({})]
    for number in range(2):
        world.node(f"h100-{number}", labels={MODEL: H100})
    for name in QUEUES:
        said = {PER_USER: f"nvidia.com/gpu={per_user[name]}"} if name in per_user and not models else {}
        said |= {"max-by-model": f"H100={by_model[name]}"} if name in by_model and models else {}
        world.queue(name, parent="a" if name in {"a1", "a2"} else "", **said)
    number = 0
    for submissions in [*rounds, [], []]:
        for user, queue, least, more, lasts_s in submissions:
            number += 1
            world.submit(f"g{number}", least + more, lasts_s=lasts_s, queue=queue, user=user, min_member=least,
                         min_task_member={})  # fmt: skip
        world.step()
        for (queue, whose), gpus in held(world).items():
            if whose == H100:
                assert not models or gpus <= by_model.get(queue, gpus), (queue, whose)
            elif whose in USERS and not models:
                assert gpus <= per_user.get(queue, gpus), (queue, whose)


def test_a_gang_larger_than_its_limit_is_told_so() -> None:
    """No end of other gangs would help; with what they use it is the same."""
    world = world_of(8).queue("team", capability={"nvidia.com/gpu": 16})
    world.queue("users", **{PER_USER: "nvidia.com/gpu=16"})
    world.gang("fits", {"worker": (8, GPU)}, queue="team")
    world.gang("large", {"worker": (17, GPU)}, queue="team")
    world.gang("hers", {"worker": (17, GPU)}, queue="users", user="alice")
    told = waiting(world.plan())
    reason, message = told["large"]
    assert (reason, str(message)) == (
        "QueueOverCapability",
        (
            "queue team may use 16 nvidia.com/gpu (capability), and 17 nvidia.com/gpu are requested at once, which "
            "never fit; request less, or raise its capability"
        ),
    )
    assert told["hers"][1].endswith("17 more are requested; the request never fits, so request less")
