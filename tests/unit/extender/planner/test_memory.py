"""Inputs that no object shows: what a planner remembers is published, and read by those who plan elsewhere.

Times and limits of an installation are read with care: they come from settings, a ConfigMap or a file.
"""

from typing import Any

import pytest
from extender_world import GPU8, World
from msgspec import to_builtins
from msgspec.structs import astuple

from extender.planner import memory
from extender.planner.actions.progress import AVOID_S
from extender.planner.cycle import Planning
from extender.planner.framework import decisions
from extender.planner.framework.config import SchedulerConfig
from extender.planner.framework.inputs import CycleInputs
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import take_snapshot
from extender.planner.memory import Memory, avoided_after, memory_of, memory_text, published_inputs, still_avoided
from extender.planner.timing import DEFAULTS, Timing, timing_of
from extender.settings import ExtenderSettings
from muster.api.muster.configuration import AVOIDED, MEMORY, TIMING
from muster.api.muster.gang import Slot


def test_refused_nodes_are_left_out_for_a_while() -> None:
    """From the refusal on, also if nothing could be written; a node where a member failed has a time of its own."""
    world = World()
    early = {"ns/a": {"node-0": world.now + 5}}
    session = Session(CycleInputs(snapshot=take_snapshot(world.state), now=world.now, avoided=early))
    session.avoided["ns/a"] |= {"node-1", "node-2"}
    session.failed_on["ns/a"] = {"node-2"}
    after = avoided_after(session)
    assert after == {"ns/a": {"node-0": world.now + 5, "node-1": world.now + AVOID_S}}
    assert still_avoided(after, world.now + 5) == {"ns/a": {"node-1": world.now + AVOID_S}}
    assert still_avoided(after, world.now + AVOID_S) == {}


def test_members_at_the_barrier_are_told_where_others_are_held_for_them() -> None:
    """Of other gangs they change no decision, and there are many."""
    world = World().nodes(4)
    uids = []
    for name, held in (("a", True), ("b", False)):
        key = world.gang(name, {"master": (1, GPU8), "worker": (1, GPU8)})
        world.plan()
        for pod_set in world.state.placements[key].spec.pod_sets:
            pod_set.held = held and pod_set.name == "worker"
        uids.append(world.state.groups[key].metadata.uid)
    world.arrived = dict.fromkeys(uids, frozenset({Slot("master", 0)}))
    told = memory_of(world.session())
    assert told.arrived == {uids[0]: (Slot("master", 0),)}
    assert published_inputs(memory_text(told))[0].memory == told


def test_a_clock_that_was_set_back_delays_nothing() -> None:
    """What is left of a gang goes a minute after the cycle that finds the new time, and not an hour later."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (2, GPU8)})
    world.plan()
    world.change(world.state.placements[key], status={"phase": "Bound"})
    world.pod(key, "worker", 0, GPU8, node="node-0", phase="Running")
    planning = Planning(SchedulerConfig(actions="stalegangeviction"), Timing())

    def goes() -> bool:
        return bool(planning.run(take_snapshot(world.state), world.now).decided(decisions.Evict))

    assert not goes()
    world.now -= 3_600
    assert not goes()
    world.now += 30
    assert not goes()
    world.now += 31
    assert goes()


def test_too_much_memory_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ConfigMap has a limit."""
    gone = Memory(gone=("node-0", "node-1"))
    monkeypatch.setattr(memory, "MOST_BYTES", 10)
    assert memory_text(gone) == {MEMORY: "{}"}


@pytest.mark.parametrize("bad", ["{", "[]", '{"arrived":{"a":[["w","x"]]}}', '{"gone":5}', "\ud800", "1e999"])
def test_what_cannot_be_read_is_left_out_alone_with_the_reason(bad: str) -> None:
    """Nothing that is read is trusted; the rest of the ConfigMap counts."""
    inputs, [problem] = published_inputs({TIMING: '{"growthDelay":600}', MEMORY: bad, AVOIDED: "{}"})
    assert (inputs.timing, inputs.memory) == (Timing(growth_delay_s=600.0), Memory())
    assert problem.startswith("memory.json cannot be parsed and is ignored: ")


def test_an_unusable_timing_is_the_default() -> None:
    """All of them, or the one."""
    for bad in ("", "{", "[]", '{"growthDelay":1e999}'):
        assert published_inputs({TIMING: bad})[0].timing == DEFAULTS
    inputs, [problem] = published_inputs({TIMING: '{"growthDelay":"soon","faultStop":1}'})
    assert inputs.timing == Timing(fault_stop=1.0)
    assert problem.startswith("growthDelay is 'soon'")
    assert published_inputs({}) == (memory.PublishedInputs(), [])


OTHER = Timing(
    recovery_s=1.0, staleness_grace_s=-1.0, growth_delay_s=600.0, longest_notice_s=3.0, node_fault_grace_s=4.0,
    fault_stop=0.5,
)  # fmt: skip


def test_settings_have_the_same_names_and_defaults() -> None:
    """What is published and recorded is called as in a file of settings."""
    assert ExtenderSettings().timing == DEFAULTS
    told = to_builtins(OTHER)
    assert told.items() <= to_builtins(ExtenderSettings(
        recovery_timeout_s=1.0, staleness_grace_s=-1.0, growth_delay_s=600.0, longest_notice_s=3.0,
        node_fault_grace_s=4.0, fault_stop=0.5,
    )).items()  # fmt: skip
    settings = ExtenderSettings(growth_delay_s=600.0, staleness_grace_s=-1.0, fault_stop=0.5)
    assert settings.timing == Timing(growth_delay_s=600.0, staleness_grace_s=-1.0, fault_stop=0.5)
    assert timing_of(told | {"suspectTaints": [], "later": 1}) == (OTHER, [])
    assert all(one != other for one, other in zip(astuple(OTHER), astuple(DEFAULTS), strict=True))


@pytest.mark.parametrize("bad", ["600", None, True, -1, [], float("nan")])
def test_a_value_that_cannot_be_used_counts_as_its_default(bad: Any) -> None:
    """With the reason; the others count."""
    timing, [problem] = timing_of({"growthDelay": bad, "faultStop": 1})
    assert timing == Timing(fault_stop=1.0)
    assert problem.startswith(f"growthDelay is {bad!r} (Expected `float`")
    assert problem.endswith("and counts as its default, 1")


def test_nothing_known_is_the_defaults() -> None:
    """As of an older version, which publishes no timing."""
    assert timing_of({}) == (DEFAULTS, [])
