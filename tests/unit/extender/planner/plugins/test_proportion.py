"""Queues in the planner: shares under load, limits, quotas and guarantees."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from builders import pod
from extender_world import World, of, waiting
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from queue_world import shared_world as world_of
from shares_world import deserving
from victims_world import Cluster, victims

from extender.planner.actions.displace import Reclaim
from extender.planner.fairshare.allocations import Accounts
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.plugins.order import GangPlugin, Priority
from extender.planner.plugins.predicates import Predicates
from extender.planner.plugins.proportion import Proportion
from muster.api.kubernetes.core import Taint
from muster.api.kubernetes.meta import LabelSelector, format_time
from muster.api.kubernetes.quota import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from muster.api.volcano.scheduling import Guarantee, PodGroup, PodGroupSpec

GPU = {"nvidia.com/gpu": 1, "cpu": 1}
GPU4 = {"nvidia.com/gpu": 4}


def placed(session: Session) -> Counter[str]:
    """Pods that got a place, by queue."""
    counts: Counter[str] = Counter()
    for place in of(session, decisions.Place):
        counts[place.gang.queue] += place.new_slots
    return counts


WEIGHTS = {"light": {"weight": 1}, "heavy": {"weight": 3}}
ELASTIC = {"min_member": 1, "min_task_member": {}}


@pytest.mark.parametrize(("nodes", "queues", "gangs", "size", "more", "expected"), [
    *((8, WEIGHTS, 64 // size, size, {}, {"heavy": 48, "light": 16}) for size in (1, 2, 4)),
    pytest.param(8, WEIGHTS, 1, 64, ELASTIC, {"heavy": 48, "light": 16}, id="for pods above minimums"),
    pytest.param(1, {"low": {"weight": 9}, "high": {"priority": 5}}, 1, 8, {}, {"high": 8}, id="priority comes first"),
])  # fmt: skip
def test_queues_share_by_weight(
    nodes: int, queues: dict[str, Any], gangs: int, size: int, more: dict[str, Any], expected: dict[str, int]
) -> None:
    """Two queues want everything: weights of 3 and 1 get three quarters and one quarter, whoever came first."""
    world = world_of(nodes)
    for name, spec in queues.items():
        world.queue(name, **spec)
    for number in range(gangs):
        for queue in queues:
            world.gang(f"{queue}-{number}", {"worker": (size, GPU)}, queue=queue, **more)
    assert placed(world.plan()) == expected


def test_three_levels_share_by_weight() -> None:
    """What a department gets is shared by its teams, whatever is in the other one."""
    world = world_of(8)
    for name, parent, weight in (
        ("a", "root", 1), ("b", "root", 1), ("a1", "a", 1), ("a2", "a", 3), ("b1", "b", 1),
    ):  # fmt: skip
        world.queue(name, parent=parent, weight=weight)
    for number in range(64):
        for queue in ("a1", "a2", "b1"):
            world.gang(f"{queue}-{number}", {"worker": (1, GPU)}, queue=queue)
    assert placed(world.plan()) == {"b1": 32, "a2": 24, "a1": 8}


@pytest.mark.parametrize(("asked", "go"), [(8, {"huge-worker-0"}), (9, set())])
def test_an_evicted_pod_frees_its_charge_in_its_queue(asked: int, go: set[str]) -> None:
    """A pod that was bound by hand, with more than its node offers, frees no more than the node offers."""
    world = Cluster(3, checked=False)
    world.plugins = [Proportion({}), *world.plugins]
    world.queue("team", capability={"nvidia.com/gpu": 12})
    world.gang("huge", {"worker": (1, {"nvidia.com/gpu": 16})}, queue="team", priority_class="low", phase="Running")
    world.pod("ns/huge", "worker", 0, {"nvidia.com/gpu": 16}, node="node-0", phase="Running")
    world.runs("kept", 1, 4, first=1, queue="team", priority_class="high")
    world.asks("asker", asked, 1, queue="team")
    assert victims(world.cycle()) == go
    snapshot = world.session().snapshot
    has = Accounts().allocations(snapshot)
    assert has.allocated[has.tree.row("team"), snapshot.axis["nvidia.com/gpu"]] == 12_000


def test_a_queue_loses_what_it_is_charged() -> None:
    """The pod beyond its node is evicted first; its queue is still above its deserved amount, so another follows."""
    world = deserving(3, Reclaim(), a=8, b=16)
    for number in (1, 2):
        world.runs(f"g{number}", 1, first=number, queue="a")
    world.gang("huge", {"worker": (1, {"nvidia.com/gpu": 16})}, queue="a", priority_class="low", phase="Running")
    world.pod("ns/huge", "worker", 0, {"nvidia.com/gpu": 16}, node="node-0", phase="Running")
    world.asks("asker", 2, queue="b")
    assert victims(world.cycle()) == {"huge-worker-0", "g2-worker-0"}


def test_a_capability_is_never_exceeded() -> None:
    """Neither by a minimum nor by growth; the refusal says which queue, how much, and what to do."""
    world = world_of(2).queue("team", capability={"nvidia.com/gpu": 5})
    world.gang("elastic", {"worker": (8, GPU)}, queue="team", min_member=2, min_task_member={})
    session = world.plan()
    assert placed(session) == {"team": 5}
    world.gang("late", {"worker": (1, GPU)}, queue="team")
    reason, message = waiting(world.plan())["late"]
    assert reason == "QueueOverCapability"
    assert message.startswith("queue team may use 5 nvidia.com/gpu (capability) and uses 5 nvidia.com/gpu: 1 nvidia")
    assert "elastic" not in waiting(session)


def test_the_capability_of_a_queue_above_counts() -> None:
    """And the refusal names that queue."""
    world = world_of(2).queue("department", capability={"nvidia.com/gpu": 3}).queue("team", parent="department")
    world.queue("others", parent="department")
    world.gang("first", {"worker": (2, GPU)}, queue="others")
    world.plan()
    world.gang("second", {"worker": (2, GPU)}, queue="team")
    assert "queue department may use 3 nvidia.com/gpu" in waiting(world.plan())["second"][1]


def test_pods_without_a_gang_count_for_their_queue() -> None:
    """From the moment they have a node."""
    world = world_of(1).queue("team", capability={"nvidia.com/gpu": 2})
    world.pod("ns/x", "worker", 0, GPU, annotations={}, labels={"volcano.sh/queue-name": "team"}, node="node-0")
    world.gang("gang", {"worker": (2, GPU)}, queue="team")
    assert waiting(world.plan())["gang"][0] == "QueueOverCapability"


def test_what_is_guaranteed_is_kept() -> None:
    """Two queues without a guarantee cannot have together what a third one is guaranteed."""
    world = world_of(1).queue("kept", guarantee=Guarantee(resource={"nvidia.com/gpu": 4}))
    for queue in ("one", "two"):
        world.queue(queue)
        world.gang(queue, {"worker": (2, GPU)}, queue=queue)
        world.gang(f"more-{queue}", {"worker": (2, GPU)}, queue=queue)
    session = world.plan()
    assert placed(session).total() == 4
    assert {reason for reason, _ in waiting(session).values()} == {"KeptForGuarantees"}
    world.gang("kept", {"worker": (4, GPU)}, queue="kept")
    assert placed(world.plan()) == {"kept": 4}


def budget(world: World, namespace: str = "ns", **spec: Any) -> None:
    """A PodDisruptionBudget of all pods of a namespace; it lets some go now."""
    meta, selector = world.meta("budget", namespace=namespace), LabelSelector(match_labels={"app": "db"})
    status = PodDisruptionBudgetStatus(disruptions_allowed=9)
    spec_ = PodDisruptionBudgetSpec(selector=selector, **spec)
    world.state.on_budget(None, PodDisruptionBudget(metadata=meta, spec=spec_, status=status))


@pytest.mark.parametrize(("said", "budgets", "held"), [
    pytest.param({"volcano.sh/preemptable": "false"}, {}, True, id="not preemptable"),
    pytest.param({"volcano.sh/jdb-min-available": "100%"}, {}, True, id="all of it is to be available"),
    pytest.param({"volcano.sh/jdb-min-available": "1"}, {}, True, id="one pod is to be available"),
    pytest.param({"volcano.sh/jdb-min-available": "9" * 5000}, {}, True, id="a budget that cannot be read"),
    pytest.param({"volcano.sh/jdb-max-unavailable": "99%"}, {}, True, id="one pod may not be unavailable"),
    pytest.param({"volcano.sh/jdb-max-unavailable": "100%"}, {}, False, id="all may be unavailable"),
    pytest.param({"volcano.sh/jdb-min-available": "0"}, {}, False, id="none is to be available"),
    pytest.param({}, {"min_available": 1}, True, id="a PodDisruptionBudget"),
    pytest.param({}, {"max_unavailable": 1}, True, id="one that lets pods go one by one"),
    pytest.param({}, {"max_unavailable": "100%"}, False, id="one that lets all go"),
    pytest.param({}, {"namespace": "others"}, False, id="one of another namespace"),
])  # fmt: skip
@pytest.mark.parametrize("pods", [False, True])
def test_what_cannot_be_taken_back_is_not_borrowed(
    said: dict[str, str], budgets: dict[str, Any], *, held: bool, pods: bool
) -> None:
    """It stays within what its queue deserves, whether or not its pods exist; what may be evicted can borrow more."""
    world = world_of(1).queue("team", deserved={"nvidia.com/gpu": 2})
    template = {"metadata": {"labels": {"app": "db"}}, "spec": world.pod_spec(GPU)}
    key = world.gang("fixed", {"worker": (3, GPU)}, queue="team")
    world.change(world.state.groups[key], annotations=said)
    task = replace(world.job_of(key).spec.tasks[0], template=template)
    world.change(world.job_of(key), spec={"tasks": [task]})
    for rank in range(3 if pods else 0):
        world.pod(key, "worker", rank, GPU, gated=True, labels={"app": "db"})
    if budgets:
        budget(world, **budgets)
    world.gang("loose", {"worker": (3, GPU)}, queue="team")
    session = world.plan()
    assert [why for name, (why, _) in waiting(session).items() if name == "fixed"] == ["QueueOverDeserved"] * held
    assert placed(session) == {"team": 3 if held else 6}


def test_what_budgets_allow_now_is_no_news_for_a_gang() -> None:
    """Its pods are compared with all budgets of its namespace again when one of them is another."""
    world = world_of(1)
    gang = world.view(world.gang("a", {"worker": (1, GPU)}))
    known = []
    for allowed in (1, 1, 2):
        spec = PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": "db"}))
        meta = replace(world.meta("budget"), uid="one", generation=allowed)
        world.state.on_budget(None, PodDisruptionBudget(metadata=meta, spec=spec))
        assert world.session().snapshot.guards.can_be_taken_back(gang)
        known.append(gang.guarded)
    assert known[0] is known[1] is not known[2]


def test_a_gang_without_its_pod_group_is_not_borrowed() -> None:
    """Nothing of it can be evicted, so that a gang that is not preemptable gets only the rest."""
    world = world_of(2).queue("team", deserved={"nvidia.com/gpu": 8})
    for name in "ab":
        key = world.gang(name, {"worker": (8, GPU)}, queue="team")
        world.change(world.state.groups[key], annotations={"volcano.sh/preemptable": "false"})
        if name == "a":
            world.start(key, GPU)
            world.state.on_pod_group(world.state.groups[key], None)
    assert waiting(world.plan())["b"][0] == "QueueOverDeserved"


def test_a_resource_without_a_quota_does_not_decide_whose_turn_it_is() -> None:
    """2 of 4 GPUs are used and one waits, 6 of 8 and six wait: the longer backlog of pods is no claim."""
    world = world_of(0).nodes(1, gpus=4)
    world.node("node-1", gpus=5)
    for queue, deserved, runs, waits in (("a", 4, 2, 1), ("b", 8, 6, 6)):
        world.queue(queue, deserved={"nvidia.com/gpu": deserved})
        for number in range(runs + waits):
            world.gang(f"{queue}-{number}", {"worker": (1, GPU)}, queue=queue)
            if number < runs:
                node = "node-0" if queue == "a" or number == 0 else "node-1"
                world.pod(f"ns/{queue}-{number}", "worker", 0, GPU, node=node, phase="Running")
    assert placed(world.plan()) == {"a": 1}


def _order(more: Sequence[tuple[int, int, int]], gpus: tuple[int, int]) -> list[str]:
    """Queues in their order, with these amounts of cpu that they use and wait for, and these GPUs."""
    world = world_of(4)
    for index, (runs, waits, cpu) in enumerate(more):
        name = f"q{index}"
        world.queue(name, deserved={"nvidia.com/gpu": 2 + index})
        if runs:
            key = world.gang(f"{name}-runs", {"worker": (runs, {"cpu": cpu})}, queue=name)
            world.members(key, runs, {"cpu": cpu}, node="node-{}", phase="Running")
        for number in range(waits):
            world.gang(f"{name}-waits{number}", {"worker": (1, {"cpu": cpu})}, queue=name, phase="Pending")
        if index < len(gpus) and gpus[index]:
            key = world.gang(f"{name}-gpus", {"worker": (gpus[index], {"nvidia.com/gpu": 1})}, queue=name)
            world.members(key, gpus[index], {"nvidia.com/gpu": 1}, node=f"node-{index}", phase="Running")
        world.gang(f"{name}-next", {"worker": (1, {"nvidia.com/gpu": 1})}, queue=name)
    session = world.session()
    heads = [gang for gang in session.snapshot.gangs if gang.key.endswith("-next")]
    return [gang.queue for gang in session.ordered_gangs(heads)]


@settings(max_examples=settings().max_examples * 3 // 10)
@given(
    one=st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(1, 4)),
    other=st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(1, 4)),
    gpus=st.tuples(st.integers(0, 4), st.integers(0, 4)),
)
def test_the_order_is_that_of_the_resources_with_a_quota(
    one: tuple[int, int, int], other: tuple[int, int, int], gpus: tuple[int, int]
) -> None:
    """Whatever is used and waits of the others."""
    assert _order((one, other), gpus) == _order(((0, 0, 1), (0, 0, 1)), gpus)


def fair_shares_of(world: World) -> dict[str, int]:
    """Queue → GPUs that it is due."""
    standings = world.session().hooks.queue_standings.call()
    return {name: each.fair_share.get("nvidia.com/gpu", 0) // 1000 for name, each in standings.items() if name in "abc"}


@pytest.mark.parametrize(("weights", "fair"), [
    ({}, {"a": 8, "b": 8}),
    ({"b": "nvidia.com/gpu=3"}, {"a": 5, "b": 11}),
    ({"b": "nvidia.com/gpu=0"}, {"a": 14, "b": 2}),
    ({"b": "*=0"}, {"a": 14, "b": 2}),
    ({"b": "*=3,nvidia.com/gpu=0"}, {"a": 14, "b": 2}),
    ({"b": "cpu=0"}, {"a": 8, "b": 8}),
    ({"a": "*=0", "b": "*=0"}, {"a": 2, "b": 2}),
    ({"b": "unreadable"}, {"a": 8, "b": 8}),
])  # fmt: skip
@pytest.mark.parametrize("rounding", ["exact", "kai"])
def test_weights_may_differ_by_resource(weights: dict[str, str], fair: dict[str, int], rounding: str) -> None:
    """Both deserve 2 of 16 GPUs and want 20; the annotation goes before the weight of the spec."""
    world = world_of(2)
    world.plugins[1] = Proportion({"rounding": rounding})
    for name in ("a", "b"):
        world.queue(name, deserved={"nvidia.com/gpu": 2}, **{"weights": weights[name]} if name in weights else {})
        world.gang(name, {"worker": (20, GPU)}, queue=name)
    assert fair_shares_of(world) == fair


@pytest.mark.parametrize("rounding", ["exact", "kai"])
def test_queues_below_another_divide_its_share(rounding: str) -> None:
    """Also where a queue without queues below it comes before."""
    world = world_of(2)
    world.plugins[1] = Proportion({"rounding": rounding})
    world.queue("a").queue("b").queue("c", parent="b")
    for name in ("a", "c"):
        world.gang(name, {"worker": (20, GPU)}, queue=name)
    assert fair_shares_of(world) == {"a": 8, "b": 8, "c": 8}


@pytest.mark.parametrize(("change", "fair"), [
    pytest.param({"labels": {"a": "b"}}, 8, id="a node that is usable"),
    pytest.param({"unschedulable": True}, 4, id="cordoned"),
    pytest.param({"taints": [Taint(key="node.kubernetes.io/not-ready", effect="NoExecute")]}, 4, id="not ready"),
    pytest.param({"taints": [Taint(key="node.kubernetes.io/unreachable", effect="NoSchedule")]}, 4, id="unreachable"),
    pytest.param({"taints": [Taint(key="gpu", effect="NoSchedule")]}, 8, id="tainted otherwise"),
])  # fmt: skip
def test_what_is_divided_is_the_room_of_usable_nodes_less_pods_of_no_queue(change: dict[str, Any], fair: int) -> None:
    """Followed as nodes change, come and go."""
    world = world_of(2).queue("a").queue("b")
    for name in "ab":
        world.gang(name, {"worker": (40, GPU)}, queue=name)
    assert fair_shares_of(world) == {"a": 8, "b": 8}
    world.node("node-1", **change)
    assert fair_shares_of(world) == {"a": fair, "b": fair}
    gone = world.node("node-1")
    world.node("node-2")
    assert fair_shares_of(world) == {"a": 12, "b": 12}
    world.state.on_pod(None, pod("other", uid="uid-other", requests=GPU4, node="node-0", scheduler="other"))
    assert fair_shares_of(world) == {"a": 10, "b": 10}
    world.pod("ns/a", "worker", 0, GPU, node="node-0", phase="Running")
    assert fair_shares_of(world) == {"a": 1, "b": 19}, "pods of queues are theirs"
    world.state.on_node(gone, None)
    assert fair_shares_of(world) == {"a": 1, "b": 11}
    world.pod("ns/a", "worker", 1, {"nvidia.com/gpu": 64}, node="node-2", phase="Running")
    assert sum(fair_shares_of(world).values()) == 12, "a pod beyond its node takes no more than that offers"


def test_a_queue_without_weight_gets_nothing_of_a_plentiful_surplus() -> None:
    """It is due what it deserves, may use what lies idle, and takes a new annotation at once."""
    world = world_of(2).queue("a", deserved={"nvidia.com/gpu": 3}, weights="*=0")
    world.gang("a", {"worker": (9, GPU)}, queue="a")
    assert fair_shares_of(world) == {"a": 3}
    world.queue("a", deserved={"nvidia.com/gpu": 3}, weights="*=1")
    assert fair_shares_of(world) == {"a": 9}
    world.queue("a", deserved={"nvidia.com/gpu": 3}, weights="*=0")
    assert placed(world.plan()) == {"a": 9}


def remembering(nodes: int) -> World:
    """Nodes of 8 GPUs, and usage that counts for an hour."""
    world = world_of(nodes)
    world.plugins = [GangPlugin({}), Proportion({"halfLife": "1h"}), Predicates({}), Priority({})]
    return world


def was_used(world: World, queue: str, usage: dict[str, str], at: str) -> None:
    """What the status of a queue says of its usage."""
    status = world.state.queues[queue].status
    status.usage, status.usage_time = usage, at


def test_what_cannot_be_read_ends_no_cycle() -> None:
    """Amounts of queues, PodGroups and kept usage that admission would have refused count as not set."""
    world = remembering(1)
    world.queue("odd", capability={"cpu": "many"}, deserved={"cpu": "-"}, parent="odd")
    was_used(world, "odd", {"cpu": "?"}, "yesterday")
    spec = PodGroupSpec(min_member=1, queue="odd", min_resources={"cpu": "x"})
    world.state.on_pod_group(None, PodGroup(metadata=world.meta("bare"), spec=spec))
    world.gang("good", {"worker": (1, GPU)}, queue="default")
    assert placed(world.plan()) == {"default": 1}


def test_past_usage_lowers_what_is_left_to_a_queue() -> None:
    """A queue that had the whole cluster lately gets less of it than one that had nothing."""
    world = remembering(1).queue("busy").queue("idle")
    was_used(world, "busy", {"cpu": "8", "nvidia.com/gpu": "8"}, format_time(world.now))
    for number in range(8):
        for queue in ("busy", "idle"):
            world.gang(f"{queue}-{number}", {"worker": (1, GPU)}, queue=queue)
    counts = placed(world.plan())
    assert counts["idle"] > counts["busy"]


@settings(max_examples=settings().max_examples // 2)
@given(
    half_life_s=st.integers(60, 1_000_000),
    used=st.fixed_dictionaries({name: st.integers(0, 500) for name in ("busy", "idle")}),
    before_s=st.integers(0, 2_000_000), away_s=st.integers(0, 2_000_000),
)  # fmt: skip
def test_an_extender_that_was_away_knows_the_usage_of_one_that_was_not(
    half_life_s: int, used: dict[str, int], before_s: int, away_s: int
) -> None:
    """It begins with the usage in the status at the end of the other one, decayed since."""
    world = World(checked=False)
    others = [GangPlugin({}), Predicates({}), Priority({})]
    stays, goes, comes = (Proportion({"halfLife": f"{half_life_s}s"}) for _ in range(3))
    for name, gpus in used.items():
        was_used(world.queue(name), name, {"nvidia.com/gpu": str(gpus)}, format_time(world.now))
    for plugin in (stays, goes):
        world.plugins = [*others, plugin]
        assert means(world) == {name: 1000 * gpus for name, gpus in used.items()}
    world.now += before_s
    for name, milli in means(world).items():
        was_used(world, name, {"nvidia.com/gpu": f"{milli}m"}, format_time(world.now))
    world.now += away_s
    world.plugins = [*others, comes]
    found = means(world)
    assert found == means(world), "it is loaded once"
    world.plugins = [*others, stays]
    assert found == pytest.approx(means(world), abs=1.001)  # the status has whole thousandths
    left = 0.5 ** ((before_s + away_s) / half_life_s)
    assert found == pytest.approx({name: 1000 * gpus * left for name, gpus in used.items()}, abs=1.501)


def means(world: World) -> dict[str, int]:
    """Mean usage of each queue in thousandths of a GPU, as in the status of the queues after a cycle."""
    standings = world.session().hooks.queue_standings.call()
    return {name: (standings[name].usage or {}).get("nvidia.com/gpu", 0) for name in ("busy", "idle")}


def test_usage_of_a_clock_that_was_ahead_counts_in_full() -> None:
    """Time that has not come yet neither lowers nor raises it."""
    world = remembering(1).queue("busy").queue("idle")
    was_used(world, "busy", {"nvidia.com/gpu": "8"}, format_time(world.now + 3600))
    assert means(world) == {"busy": 8000, "idle": 0}
