"""What a planner remembers that no object shows is published, and read by those who plan elsewhere."""

import pytest
from extender_world import World

from extender.planner import memory
from extender.planner.actions.progress import AVOID_S
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import CycleInputs, take
from extender.planner.memory import Memory, avoided_after, memory_of, memory_text, published_inputs, still_avoided
from extender.planner.timing import DEFAULTS, Timing
from muster.api.muster.configuration import AVOIDED, MEMORY, TIMING
from muster.api.muster.gang import Slot

GPU8 = {"cpu": 4, "nvidia.com/gpu": 8}


def test_refused_nodes_are_left_out_for_a_while() -> None:
    """From the refusal on, also if nothing could be written; a node where a member failed has a time of its own."""
    world = World()
    early = {"ns/a": {"node-0": world.now + 5}}
    session = Session(CycleInputs(snapshot=take(world.state), now=world.now, avoided=early))
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


def test_too_much_memory_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ConfigMap has a limit."""
    gone = Memory(gone=("node-0", "node-1"))
    monkeypatch.setattr(memory, "MOST_BYTES", 10)
    assert memory_text(gone) == {MEMORY: "{}"}


@pytest.mark.parametrize("bad", ["{", "[]", '{"arrived":{"a":[["w","x"]]}}', '{"gone":5}', "\ud800", "1e999"])
def test_what_cannot_be_read_is_left_out_alone_with_the_reason(bad: str) -> None:
    """Nothing that is read is trusted; the rest of the ConfigMap counts."""
    inputs, [problem] = published_inputs({TIMING: '{"growthDelay":600}', MEMORY: bad, AVOIDED: "{}"})
    assert inputs.timing == Timing(growth_delay_s=600.0)
    assert inputs.memory == Memory()
    assert problem.startswith("memory.json cannot be read and is left out: ")


def test_an_unusable_timing_is_the_default() -> None:
    """All of them, or the one."""
    for bad in ("", "{", "[]", '{"growthDelay":1e999}'):
        assert published_inputs({TIMING: bad})[0].timing == DEFAULTS
    inputs, [problem] = published_inputs({TIMING: '{"growthDelay":"soon","faultStop":1}'})
    assert inputs.timing == Timing(fault_stop=1.0)
    assert problem.startswith("growthDelay is 'soon'")
    assert published_inputs({}) == (memory.PublishedInputs(), [])
