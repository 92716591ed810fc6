"""A statement counts what it tries, on every account, and leaves nothing behind where it is rolled back."""

import dataclasses
from collections import Counter
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from devices_world import Devices, asks, claim_use, exactly
from extender_world import World
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from shared_gpus import annotations

from extender.planner.framework.operations import Eviction
from extender.planner.framework.statement import Statement, counted_free, undone
from extender.planner.ledgerentry import EntryKind, LedgerEntry
from extender.planner.state.devices import Devices as Shares
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass

CPU = {"cpu": "1500m", "memory": "3Gi"}
KINDS = ("plain", "shares", "claims")
NODES = 3
HOOKS = ("allocated", "deallocated", "evicted", "unevicted")


class Trial:
    """Three nodes with pods of three gangs: plain ones, those that share GPUs, and those that name one claim."""

    def __init__(self) -> None:
        world = Devices().gpus(NODES, 4).device_class()
        world.plugins.pop()  # that of devices has an account of its own
        world.claim("c", asks(exactly()))
        world.gang("plain", {"worker": (6, CPU)})
        world.gang("shares", {"worker": (6, CPU)}, notes={"gpu-fraction": "0.4"})
        world.gang("claims", {"worker": (6, CPU)}, spec=claim_use("c"))
        for rank in range(4):
            node = f"node-{rank % 2}"
            world.pod("ns/plain", "worker", rank, CPU, node=node, phase="Running")
            told = annotations("ns/shares", rank, str(rank // 2), gpu_fraction="0.4")
            world.pod("ns/shares", "worker", rank, CPU, node=node, phase="Running", annotations=told)
            world.member("claims", rank, claim_use("c"), node="node-0", phase="Running")
        self.session = world.session()
        self.gangs = {gang.group.metadata.name: gang for gang in self.session.snapshot.gangs}
        self.statement = Statement(self.session)
        self.heard: Counter[str] = Counter()
        for hook in HOOKS:
            self.session.hooks.named(hook).add(lambda entry, hook=hook: self.hear(hook, entry.size))
        self.beginning = self.state()

    def hear(self, hook: str, size: int) -> None:
        """A plugin counts."""
        self.heard[hook] += size

    def state(self) -> dict[str, Any]:
        """All that a statement may change."""
        snapshot, names = self.session.snapshot, [each.name for each in fields(Shares)]
        devices = {name: getattr(snapshot.devices, name).copy() for name in names}
        devices["shared"] = np.pad(devices["shared"], ((0, 0), (0, 16 - devices["shared"].shape[1])))
        used = self.session.claims.user_count("ns/c"), self.session.claims.user_count("ns/c", "default")
        return {"free": snapshot.free.copy(), **devices, "claims": np.array(used)}

    def cls(self, gang: GangView) -> PodClass:
        """The class of a gang's members."""
        return gang.pod_sets[0].cls

    def do(self, what: str, kind: str, column: int, count: int) -> None:
        """Try something."""
        gang, statement = self.gangs[kind], self.statement
        cls, ranks = self.cls(gang), list(range(count))
        there = [pod for pod in gang.pods if pod.node == self.session.snapshot.name(column)]
        away = {pod.uid for eviction in statement.evictions for pod in eviction.pods}
        if what == "evict":
            statement.evict(gang, [pod for pod in there if pod.uid not in away][:count])
        elif what == "keep":
            alone = [each.pods[0] for each in statement.evictions if len(each.pods) == 1]
            statement.keep(alone[:count])
        elif what == "give up":
            statement.give_up(gang, self.session.snapshot.name(column), count, cls)
        elif self.session.room(cls)[column] < count:
            return
        elif what == "allocate":
            statement.allocate(gang, "worker", ranks, column, cls)
        elif what == "everywhere":
            columns = np.flatnonzero(self.session.room(cls) >= count)
            statement.allocate_all(gang, "worker", [ranks] * len(columns), columns, cls)
        else:
            statement.repeat(statement.operations[-1:])

    def check(self) -> None:
        """Every account is that of the log."""
        operations, evictions = self.statement.operations, self.statement.evictions
        free, claims = self.beginning["free"].copy(), self.beginning["claims"].copy()
        for sign, entries in ((-1, operations), (1, evictions)):
            for entry in entries:
                free[:, entry.column] += sign * entry.amount
                claims -= sign * entry.size * (entry.gang is self.gangs["claims"])
        assert np.array_equal(self.session.snapshot.free, free)
        assert np.array_equal(self.state()["claims"], claims)
        assert self.statement.slots == sum(len(operation.ranks) for operation in operations)
        assert self.heard["allocated"] - self.heard["deallocated"] == self.statement.slots
        assert self.heard["evicted"] - self.heard["unevicted"] == sum(eviction.size for eviction in evictions)

    def same(self, then: dict[str, Any]) -> bool:
        """True if all is as it was then, to the bit."""
        now = self.state()
        return all(np.array_equal(now[name], then[name]) for name in then)


STEPS = st.lists(st.tuples(
    st.sampled_from(["allocate", "everywhere", "repeat", "evict", "evict", "keep", "give up"]),
    st.sampled_from(KINDS), st.integers(0, NODES - 1), st.integers(1, 3),
), max_size=8)  # fmt: skip


@settings(max_examples=settings().max_examples)
@given(before=STEPS, after=STEPS, end=st.sampled_from(["discard", "commit", "commit victims"]))
def test_all_that_is_tried_is_counted_and_can_be_taken_back(before: list[Any], after: list[Any], end: str) -> None:
    """Rollback restores a checkpoint, discard the beginning; what is committed stays, but for victims' room."""
    trial = Trial()
    for step in before:
        trial.do(*step)
        trial.check()
    middle, checkpoint = trial.state(), trial.statement.checkpoint()
    done, left = trial.statement.operations, trial.statement.evictions
    for step in after:
        if step[0] != "keep":
            trial.do(*step)
            trial.check()
    assert done + trial.statement.operations_since(checkpoint) == trial.statement.operations
    trial.statement.rollback(checkpoint)
    assert trial.same(middle)
    if end == "commit":
        assert trial.statement.commit() == list(done)
    elif end == "commit victims":
        assert trial.statement.commit_victims() == list(done)
        middle = {"free": middle["free"]}
        for eviction in left:
            middle["free"][:, eviction.column] -= eviction.amount * bool(eviction.pods)
    else:
        middle = trial.beginning
    trial.statement.discard()
    assert trial.same(middle)
    assert (trial.statement.operations, trial.statement.evictions, trial.statement.slots) == ((), (), 0)


def test_pods_on_a_node_that_is_not_known_are_skipped() -> None:
    """Their room is nobody's."""
    world = World().nodes(1)
    world.members(world.gang("a", {"worker": (1, CPU)}), 1, CPU, node="elsewhere", phase="Running")
    session = world.session()
    statement = Statement(session)
    statement.evict(session.snapshot.gangs[0], session.snapshot.gangs[0].pods)
    assert statement.evictions == ()


def test_pods_that_leave_are_counted_under_fewer_marks() -> None:
    """Queries of spreading leave them out; spares are no pods."""
    trial = Trial()
    gang = trial.gangs["plain"]
    pod, cls = gang.pods[0], dataclasses.replace(trial.cls(gang), marks=(("staying", 1), ("all", 2)))
    leaves = structs.replace(pod, terminating=True)
    row = trial.session.snapshot.row_of(cls)
    found = [Eviction(gang, pods, 0, row, cls, not pods).marks for pods in ((pod,), (leaves,), ())]
    assert found == [cls.marks, (("all", 2),), ()]
    kinds = [LedgerEntry(kind, "node-0", cls).marks for kind in (EntryKind.BOUND, EntryKind.LEAVING)]
    assert kinds == [cls.marks, (("all", 2),)]


def test_what_fails_in_the_middle_is_undone() -> None:
    """Also amounts that are counted as free for a while, or as taken."""
    trial = Trial()
    taken = np.ones_like(trial.beginning["free"][:, 0])

    def fail() -> None:
        with undone(trial.statement), counted_free(trial.session, [(1, -taken)]):
            assert np.array_equal(trial.session.snapshot.free[:, 1], trial.beginning["free"][:, 1] - taken)
            trial.do("allocate", "plain", 0, 1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert trial.same(trial.beginning)
