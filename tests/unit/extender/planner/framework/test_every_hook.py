"""Every hook: what a third party's plugin answers changes what is decided, and each is one that something asks."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import hooks_world as w
import numpy as np
import pytest
from extender_world import World

from extender.planner import reasons
from extender.planner.framework.answers import (
    ClosestDomain,
    EnqueueVote,
    QueueRefusal,
    ReclaimState,
    ReservationRules,
    StatusAmounts,
)
from extender.planner.framework.hooks import HOOKS
from extender.planner.framework.session import Session
from extender.planner.reasons.topology import Closest
from extender.planner.topology.tree import Tree

FULL = QueueRefusal("Full", "a", "cpu", 1, 1, 1, "the third plugin says no")


def name_of(gang: Any) -> str:
    """A gang without its namespace."""
    return str(gang.group.metadata.name)


def one(hook: str, fn: w.Fn) -> w.Functions:
    """A plugin that answers one hook, and needs no session for it."""
    return lambda _: {hook: fn}


def b_first(left: Any, right: Any) -> int:
    """Gang b comes before any other one."""
    return (name_of(right) == "b") - (name_of(left) == "b")


def last_of_the_fitting(session: Session) -> Mapping[str, w.Fn]:
    """Scores the last of the nodes that it is told of."""
    told: list[int] = []

    def scores(_: Any) -> Any:
        return np.array([float(column in told[-1:]) for column in range(len(session.snapshot.nodes))])

    return {"node_pre_order": lambda _, columns: told.extend(columns.tolist()), "node_order": scores}


def room_for_none_twice(session: Session) -> Mapping[str, w.Fn]:
    """Nodes take one pod each, by a count of its own that begins with those that run."""
    counts: Counter[int] = Counter()
    for gang in session.snapshot.gangs:
        counts.update(session.snapshot.index[pod.node] for pod in gang.pods if pod.alive)

    def add(sign: int, entry: Any) -> None:
        counts[entry.column] += sign * len(getattr(entry, "ranks", getattr(entry, "pods", ())))

    def codes(_: Any) -> Any:
        full = [column for column, count in counts.items() if count > 0]
        return w.refused(session, *(session.snapshot.name(column) for column in full))

    return {
        "neighbour_predicate": codes,
        "allocated": lambda entry: add(1, entry),
        "deallocated": lambda entry: add(-1, entry),
        "evicted": lambda entry: add(-1, entry),
        "unevicted": lambda entry: add(1, entry),
    }


def counts_trials(session: Session) -> Mapping[str, w.Fn]:
    """Agrees only to scenarios of as many pods as it believes gone; keeps the one who asks off node-1."""
    gone = [0]

    def add(pods: int) -> None:
        gone[0] += pods

    return {
        "neighbour_predicate": lambda _: w.refused(session, "node-1"),
        "evicted": lambda entry: add(len(entry.pods)),
        "unevicted": lambda entry: add(-len(entry.pods)),
        "preempt_scenario_validator": lambda scenario: gone[0] == sum(len(chunk.pods) for chunk in scenario.chunks),
    }


def second_refused(hook: str, asked: str, answer: Callable[[bool], object]) -> w.Functions:
    """Says no to gangs after the first of which `hook` told."""

    def functions(_: Session) -> Mapping[str, w.Fn]:
        told: list[str] = []
        return {hook: lambda gang: told.append(name_of(gang)), asked: lambda *_: answer(len(told) > 1)}

    return functions


def let_in_one(_: Session) -> Mapping[str, w.Fn]:
    """Lets one gang in and no more."""
    told: list[str] = []
    vote = lambda _: EnqueueVote(admit=not told)  # noqa: E731 - one of two
    return {"job_enqueued": lambda gang: told.append(name_of(gang)), "job_enqueueable": vote}


def announced_only(_: Session) -> Mapping[str, w.Fn]:
    """Nobody is reclaimed from unless a search was announced."""
    told: list[str] = []
    return {
        "can_reclaim_resources": lambda *_: True,
        "on_job_solution_start": lambda gang: told.append(name_of(gang)),
        "reclaim_victim_filter": lambda gang, _: name_of(gang) in told,
    }


def shares(session: Session) -> Mapping[str, w.Fn]:
    """Queue b has twice of what it is due, a less; and a comes last, so that it would give first."""
    amounts = np.ones(session.snapshot.free.shape[0])
    used, due = {"b": 8.0, "a": 2.0}, {"a": 4.0, "b": 4.0}
    return {
        "can_reclaim_resources": lambda *_: True,
        "get_queue_allocated_resources": lambda name: amounts * used.get(name, 0.0),
        "get_queue_fair_share": lambda name: amounts * due.get(name, 1.0),
        "queue_order": lambda left, right: (left.queue == "a") - (right.queue == "a"),
    }


def what_queues_have(session: Session) -> Mapping[str, w.Fn]:
    """Amounts of every queue."""
    names = ("get_queue_allocated_resources", "get_queue_fair_share", "get_queue_deserved_resources")
    return dict.fromkeys(names, lambda _: np.full(session.snapshot.free.shape[0], 3))


def closest(session: Session) -> ClosestDomain:
    """A rack that is too small."""
    said = Closest("", "ours", "rack", "r0", held=1, wanted=2, domains=2)
    return ClosestDomain(said, np.ones(len(session.snapshot.nodes), dtype=np.bool_))


def tree_of(session: Session) -> Tree:
    """All nodes in one rack."""
    return Tree("ours", ("rack",), (("r0",),), np.zeros((1, len(session.snapshot.nodes)), dtype=np.int32))


def arranged(arrange: Callable[..., object], *more: object) -> Callable[[w.Third], object]:
    """What is planned in a world arranged so."""
    return lambda third: w.planned(third, lambda world: arrange(world, *more))


one_node = arranged(w.two_gangs)
A = {"a": {"worker": ["node-0"]}}
B = {"b": {"worker": ["node-0"]}}
BOTH_ON_FIRST = A | B

CASES: dict[str, w.Scenario] = {
    "queue_order": w.Scenario(one("queue_order", b_first), one_node, A, B),
    "job_order": w.Scenario(one("job_order", b_first), one_node, A, B),
    "pod_set_order": w.Scenario(one("pod_set_order", lambda left, right: -1 if left.name > right.name else 1),
                                arranged(w.elastic), {"a": {"x": ["node-0"], "y": ["node-0"]}},
                                {"a": {"x": ["node-0"], "z": ["node-0"]}}),
    "sub_group_set_order": w.Scenario(one("sub_group_set_order", lambda left, right: right.ranks[0] - left.ranks[0]),
                                      arranged(w.sub_groups), {"a": {"worker": ["node-0", "node-0"]}},
                                      {"a": {"worker": ["", "", "node-0", "node-0"]}}),
    "task_order": w.Scenario(one("task_order", lambda left, right: -1 if left.name > right.name else 1),
                             arranged(w.pods_of_one_set), A, {"a": {"worker": ["", "node-0"]}}),
    "pre_predicate": w.Scenario(one("pre_predicate", lambda gang, _: "not this one" if name_of(gang) == "a" else ""),
                                one_node, A, B),
    "predicate": w.Scenario(lambda session: {"predicate": lambda _: w.refused(session, "node-0")},
                            arranged(w.two_gangs, 2), {"a": {"worker": ["node-0"]}, "b": {"worker": ["node-1"]}},
                            {"a": {"worker": ["node-1"]}}),
    "neighbour_predicate": w.Scenario(lambda session: {"neighbour_predicate": lambda _: w.refused(session, "node-0")},
                                      arranged(w.two_gangs, 2, w.HALF), BOTH_ON_FIRST,
                                      {"a": {"worker": ["node-1"]}, "b": {"worker": ["node-1"]}}),
    "is_task_allocation_on_node_over_capacity": w.Scenario(
        lambda session: {"is_task_allocation_on_node_over_capacity": lambda gang, _: (
            w.refused(session, "node-0") if name_of(gang) == "a" else None)},
        arranged(w.two_gangs, 2, w.HALF), BOTH_ON_FIRST, {"a": {"worker": ["node-1"]}, "b": {"worker": ["node-0"]}}),
    "node_pre_order": w.Scenario(last_of_the_fitting, arranged(w.two_gangs, 3),
                                 {"a": {"worker": ["node-0"]}, "b": {"worker": ["node-1"]}},
                                 {"a": {"worker": ["node-2"]}, "b": {"worker": ["node-1"]}}),
    "subset_nodes": w.Scenario(lambda _: {"subset_nodes": lambda nodes, *_: [nodes.within(np.array([False, True]))]},
                               arranged(w.two_gangs, 2, w.HALF), BOTH_ON_FIRST,
                               {"a": {"worker": ["node-1"]}, "b": {"worker": ["node-1"]}}),
    "gpu_order": w.Scenario(lambda _: {"gpu_order": lambda _cls, _column, used: np.arange(len(used), dtype=np.float64)},
                            w.shared_gpu, ["0"], ["7"]),
    "node_order": w.Scenario(
        lambda session: {"node_order": lambda _: np.arange(len(session.snapshot.nodes), dtype=np.float64)},
        arranged(w.two_gangs, 2, w.HALF), BOTH_ON_FIRST, {"a": {"worker": ["node-1"]}, "b": {"worker": ["node-1"]}}),
    "is_job_over_queue_capacity": w.Scenario(
        one("is_job_over_queue_capacity", lambda gang, _: FULL if name_of(gang) == "a" else None), one_node, A, B),
    "is_non_preemptible_job_over_queue_quota": w.Scenario(
        one("is_non_preemptible_job_over_queue_quota", lambda gang, _: FULL if name_of(gang) == "a" else None),
        one_node, A, B),
    "can_reclaim_resources": w.Scenario(one("can_reclaim_resources", lambda *_: True), w.reclaimed, set(), {"a"}),
    "reclaim_standing": w.Scenario(one("reclaim_standing", lambda *_: ReclaimState(owed=True, above=frozenset())),
                                   w.told_of_reclaim, "", str(reasons.queues.OVER_FAIR)),
    "holds_over_quota": w.Scenario(
        lambda _: {"can_reclaim_resources": lambda *_: True, "holds_over_quota": lambda victim: name_of(victim) == "a"},
        w.reclaimed_marked, set(), {"a"}),
    "on_job_solution_start": w.Scenario(announced_only, w.reclaimed, set(), {"a"}),
    "reclaim_victim_filter": w.Scenario(
        lambda _: {"can_reclaim_resources": lambda *_: True,
                   "reclaim_victim_filter": lambda _, victim: name_of(victim) != "a"}, w.reclaimed, {"a"}, {"b"}),
    "reclaim_scenario_validator": w.Scenario(
        lambda _: {"can_reclaim_resources": lambda *_: True,
                   "reclaim_scenario_validator": lambda scenario: name_of(scenario.chunks[0].gang) != "a"},
        w.reclaimed, {"a"}, {"b"}),
    "preempt_victim_filter": w.Scenario(one("preempt_victim_filter", lambda _, victim: name_of(victim) != "low1"),
                                        w.preempted, {"low1"}, {"low0"}),
    "preempt_scenario_validator": w.Scenario(
        one("preempt_scenario_validator", lambda scenario: name_of(scenario.chunks[0].gang) != "low1"),
        w.preempted, {"low1"}, {"low0"}),
    "get_queue_allocated_resources": w.Scenario(shares, w.reclaimed, {"a"}, {"b"}),
    "get_queue_fair_share": w.Scenario(shares, w.reclaimed, {"a"}, {"b"}),
    "get_queue_deserved_resources": w.Scenario(what_queues_have, w.deserved, 0, 3),
    "job_enqueueable": w.Scenario(one("job_enqueueable", lambda gang: EnqueueVote(admit=name_of(gang) != "a")),
                                  w.pending, ["a", "b"], ["b"]),
    "job_enqueued": w.Scenario(let_in_one, w.pending, ["a", "b"], ["a"]),
    "job_ready": w.Scenario(one("job_ready", lambda gang: name_of(gang) != "a"), one_node, A, B),
    "pre_job_allocation": w.Scenario(
        second_refused("pre_job_allocation", "pre_predicate", lambda no: "one is enough" if no else ""),
        arranged(w.two_gangs, 1, w.HALF), BOTH_ON_FIRST, A),
    "allocated": w.Scenario(room_for_none_twice, arranged(w.two_gangs, 2, w.HALF), BOTH_ON_FIRST,
                            {"a": {"worker": ["node-0"]}, "b": {"worker": ["node-1"]}}),
    "deallocated": w.Scenario(room_for_none_twice, arranged(w.half_fits), {}, B),
    "evicted": w.Scenario(room_for_none_twice, w.preempted, set(), {"low1"}),
    "unevicted": w.Scenario(counts_trials, w.preempted, set(), {"low0"}),
    "queue_standings": w.Scenario(one("queue_standings", lambda: {"default": StatusAmounts({"cpu": 2000}, {}, None)}),
                                  w.statuses, {}, {"default": {"cpu": "2"}}),
    "closest_domain": w.Scenario(
        lambda session: {"subset_nodes": lambda *_: (), "closest_domain": lambda *_: closest(session)}, w.waits,
        "worker: room is missing for 2 pods of 8 nvidia.com/gpu each: none fits now",
        "2 pods must be in one domain of level rack"),
    "topologies": w.Scenario(lambda session: {"topologies": lambda: {"ours": tree_of(session)}}, w.topologies, [],
                             ["ours"]),
    "reservation_rules": w.Scenario(one("reservation_rules", lambda: ReservationRules(mode="strict")),
                                    arranged(w.behind_a_head), B, {}),
    "bind_request_mutate": w.Scenario(
        one("bind_request_mutate", lambda pod, node: {"example.com/third": f"{pod.name} on {node}"}),
        w.bound_with, None, "a-worker-0 on node-0"),
    "http_handler": w.Scenario(one("http_handler", lambda: {"third": lambda: {"said": "hello"}}), w.page, None,
                               "hello"),
}  # fmt: skip


@pytest.mark.parametrize("hook", HOOKS)
def test_a_third_partys_answer_changes_what_is_decided(hook: str) -> None:
    """The same plugin, once without the one function and once with it."""
    assert hook in CASES, f"{hook} has no case here: add one that shows what its answer changes"
    case = CASES[hook]
    assert case.without != case.answered
    assert case.outcome(w.Third(case.functions, left_out=hook)) == case.without
    assert case.outcome(w.Third(case.functions)) == case.answered


ROOT = Path(__file__).parents[5]
ASKS = re.compile(r"\bhooks\.(\w+)\.(?:call|functions)\b")


def test_the_table_lists_the_hooks_that_something_asks() -> None:
    """All of them, and no other."""
    asked = {name for file in (ROOT / "extender").rglob("*.py") for name in ASKS.findall(file.read_text("utf-8"))}
    assert asked == set(HOOKS)


def test_a_hook_that_there_is_not_is_refused() -> None:
    """The refusal names it and lists those that can be registered."""
    session = World().session()
    said = "hook 'job_odrer' does not exist; a function can be registered for allocated, .*job_order"
    with pytest.raises(KeyError, match=said):
        session.hooks.named("job_odrer").add(lambda: None)
