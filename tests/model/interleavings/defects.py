"""Seeded defects of the protocol, each of which the explorer must find: what it cannot find it does not check.

Each takes one rule out of the real code. `faults` are what has to go wrong besides for the rule to matter.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from extender.barrier import Barrier
from extender.commit import Committer
from extender.evictions import EvictionWriter
from extender.placements import PlacementWriter
from extender.planner.actions.progress import TrackPlacements
from extender.planner.framework import decisions
from extender.planner.ledger import Ledger
from extender.planner.state.gangs import GangView
from extender.planner.state.placedslots import PlacedSlots
from extender.verbs import bind
from extender.verbs.bind import Bind
from extender.verbs.filter import Filter
from interleavings.process import Calls
from interleavings.world import Faults
from muster.api.muster.noderuns import ranks_of

Seed = Callable[[pytest.MonkeyPatch], None]


NO_FAULTS = Faults()


@dataclass(frozen=True)
class Defect:
    """A rule that is missing, and the smallest world in which that shows."""

    name: str
    seed: Seed
    faults: Faults = NO_FAULTS
    gangs: dict[str, int] = field(default_factory=lambda: {"a": 2})
    gated: bool = True


def _barrier_lets_each_pass(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Bind, "_enough", lambda *_: True)


def _barrier_counts_the_dead(patch: pytest.MonkeyPatch) -> None:
    join = Barrier.join

    async def joined(self: Any, gang: str, epoch: int, slot: Any, enough: Any, **more: Any) -> Any:
        known = self.__dict__.setdefault("dead", {}).setdefault((gang, epoch), set())
        known.add(slot)
        alive = more["pod_uid"]  # each pod that has called for a slot counts as the calling one, though it may be gone
        return await join(self, gang, epoch, slot, lambda held: enough({**held, **dict.fromkeys(known, alive)}), **more)

    patch.setattr(Barrier, "join", joined)


def _bind_compares_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bind, "_refusal", lambda *_: None)


def _filter_knows_no_placement(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Filter, "_member", lambda _self, _args, _gang, nodes: nodes)


def _gates_lifted_before_the_write(patch: pytest.MonkeyPatch) -> None:
    carry_out = Committer.carry_out

    def early(self: Any, session: Any) -> None:
        for place in session.decided(decisions.Place):
            nodes = {
                (one.name, rank): node for one in place.pod_sets for ranks, node in ranks_of(one.runs) for rank in ranks
            }
            for pod in place.gang.pods:
                node = nodes.get((pod.slot.pod_set, pod.slot.rank)) if pod.slot else None
                if pod.gated and node:
                    self._release(pod, node, place.epoch, {})
        carry_out(self, session)

    patch.setattr(Committer, "carry_out", early)


def _deadlines_do_not_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TrackPlacements, "execute", lambda *_: None)


def _placements_are_never_closed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PlacementWriter, "close", lambda *_: None)


def _held_calls_are_never_let_go(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Barrier, "_check_deadline", lambda *_: None)
    patch.setattr(Barrier, "cancel", lambda *_: None)


def _epochs_stay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GangView, "next_epoch", lambda *_: 1)


def _placements_hold_no_room(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PlacedSlots, "_open", lambda *_, **_more: None)


def _pods_that_have_ended_keep_their_room(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ledger, "left", lambda *_: None)


def _placements_that_are_gone_keep_their_room(patch: pytest.MonkeyPatch) -> None:
    follow = PlacedSlots.follow
    patch.setattr(PlacedSlots, "follow", lambda self, key, gang: gang and gang.active and follow(self, key, gang))


def _a_last_member_that_is_bound_meanwhile_does_not_count(patch: pytest.MonkeyPatch) -> None:
    def each(self: EvictionWriter, session: Any) -> None:
        self._writes.all("eviction", self._delete, session.decided(decisions.Evict))

    patch.setattr(EvictionWriter, "delete_all", each)


def _writes_name_no_uid(patch: pytest.MonkeyPatch) -> None:
    evict = Calls.evict
    patch.setattr(Calls, "evict", lambda self, namespace, name, _, **more: evict(self, namespace, name, "", **more))


ONE = {"a": 2}
TWO = {"a": 2, "b": 2}
ALL = (
    Defect("the barrier lets each member pass", _barrier_lets_each_pass, Faults(refuse=1)),
    Defect("the barrier counts the dead", _barrier_counts_the_dead, Faults(slow=1)),
    Defect("bind compares neither node nor epoch", _bind_compares_nothing, Faults(node=1), gated=False),
    Defect("filter knows no placement", _filter_knows_no_placement, gated=False),
    Defect("gates are lifted before the placement is written", _gates_lifted_before_the_write),
    Defect("deadlines do not count", _deadlines_do_not_count, Faults(node=1)),
    Defect("placements are never closed", _placements_are_never_closed, Faults(node=1)),
    Defect("held calls are never let go", _held_calls_are_never_let_go, Faults(refuse=1), gated=False),
    Defect("epochs do not grow", _epochs_stay, Faults(refuse=1)),
    Defect("placements hold no room", _placements_hold_no_room, gangs=TWO),
    Defect("pods that have ended keep their room", _pods_that_have_ended_keep_their_room, gangs=TWO),
    Defect("placements that are gone keep their room", _placements_that_are_gone_keep_their_room, Faults(delete=1),
        gangs=TWO),
    Defect("a last member that is bound meanwhile does not count",
        _a_last_member_that_is_bound_meanwhile_does_not_count, Faults(slow=1)),
    Defect("evictions name no UID", _writes_name_no_uid, Faults(refuse=1)),
)  # fmt: skip
