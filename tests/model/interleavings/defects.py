"""Seeded defects of the protocol, each of which the explorer must find: what it cannot find it does not check.

Each takes one rule out of the real code. `faults` are what has to go wrong besides for the rule to matter.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from extender.barrier import Barrier
from extender.commit import Committer
from extender.placements import PlacementWriter
from extender.planner.actions.progress import TrackPlacements
from extender.planner.framework import decisions
from extender.planner.state.pods import PodTable
from extender.planner.state.state import State
from extender.verbs import bind
from extender.verbs.bind import Bind
from extender.verbs.filter import Filter
from interleavings.world import Faults

Seed = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Defect:
    """A rule that is missing, and the smallest world in which that shows."""

    name: str
    seed: Seed
    faults: Faults = Faults()
    gangs: dict[str, int] = field(default_factory=lambda: {"a": 2})


def _barrier_lets_each_pass(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Bind, "_enough", lambda *_: True)


def _no_check_of_the_node(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bind, "_refusal", lambda *_: None)


def _no_second_look(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Bind, "_still", lambda *_: None)


def _no_look_at_the_slot(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PodTable, "slot_taken", lambda *_: False)


def _assumed_pods_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(State, "assume", lambda *_: None)


def _gates_lifted_before_the_write(patch: pytest.MonkeyPatch) -> None:
    carry_out = Committer.carry_out

    def early(self: Any, session: Any) -> None:
        for place in session.decided(decisions.Place):
            for pod_set in place.gang.pod_sets:
                for rank, pod in pod_set.waiting.items():
                    run = next(each for each in place.pod_sets if each.name == pod_set.name)
                    node = [one.node for one in run.runs for _ in range(one.count)][rank]
                    self._release(session, decisions.Release(place.gang, pod, node, place.epoch))
        carry_out(self, session)

    patch.setattr(Committer, "carry_out", early)


def _deadlines_do_not_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TrackPlacements, "execute", lambda *_: None)


def _placements_are_never_closed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PlacementWriter, "close", lambda *_: None)


def _filter_knows_no_epoch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Filter, "_member", lambda _, args, gang, nodes: nodes)


def _barrier_never_ends(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Barrier, "_look_at_the_clock", lambda *_: None)


def _gone_pods_keep_their_room(patch: pytest.MonkeyPatch) -> None:
    on_pod = State.on_pod
    patch.setattr(State, "on_pod", lambda self, old, new: on_pod(self, old, new) if new is not None else True)


ALL = (
    Defect("the barrier lets each member pass", _barrier_lets_each_pass),
    Defect("bind does not compare the node and epoch", _no_check_of_the_node, Faults(node=1)),
    Defect("bind does not look again after the wait", _no_second_look, Faults(node=1)),
    Defect("bind does not ask if the slot is taken", _no_look_at_the_slot, Faults(node=1)),
    Defect("a bound pod is not assumed", _assumed_pods_are_forgotten, Faults(stale=1)),
    Defect("gates are lifted before the placement is written", _gates_lifted_before_the_write, Faults(crash=1)),
    Defect("deadlines do not count", _deadlines_do_not_count, Faults(node=1)),
    Defect("placements are never closed", _placements_are_never_closed, Faults(node=1)),
    Defect("filter knows no placement", _filter_knows_no_epoch),
    Defect("the barrier has no end", _barrier_never_ends, Faults(node=1)),
    Defect("a pod that is gone keeps its room", _gone_pods_keep_their_room, gangs={"a": 2, "b": 2}),
)
