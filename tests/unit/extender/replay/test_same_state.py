"""A recording tells the state what the live feed told it, wherever it begins and however it is cut into files."""

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec import to_builtins
from msgspec.structs import replace
from recorded_world import GPU, MIB, RecordedWorld, head
from state_oracle import differences, digest

from extender.record import lines
from extender.record.reading import Recording
from extender.replay.check import check_recording
from extender.replay.replayedworld import ReplayedWorld
from extender.simulate.cluster import RecordedState

GANGS = st.lists(st.tuples(
    st.integers(0, 600), st.integers(1, 900), st.sampled_from([1, 4, 8]), st.integers(1, 3),
    st.sampled_from(["low", "high"]),
), min_size=1, max_size=6)  # fmt: skip


def without_versions(told: RecordedState) -> Any:
    """The objects as JSON, but for their versions: a change of nothing else is not recorded."""
    return to_builtins(
        {
            kind: {
                key: replace(each, metadata=replace(each.metadata, resource_version="")) for key, each in items.items()
            }
            for kind, items in told.objects.items()
        }
    )


@settings(phases=[Phase.explicit, Phase.generate], max_examples=settings().max_examples // 4)
@given(gangs=GANGS, until=st.integers(1, 1_200), many_files=st.booleans())
def test_a_recording_gives_the_state_of_the_live_feed(
    gangs: list[tuple[int, int, int, int, str]],
    until: int,
    many_files: bool,  # noqa: FBT001 - hypothesis names it
) -> None:
    """At any time the tables made from the recording are those that were kept live, and each cycle decides the same."""
    world = RecordedWorld(2)
    world.world.queue("low", deserved={GPU: 0})
    world.world.queue("high", deserved={GPU: 16})
    for number, (at, runs_s, gpus, pods, queue) in enumerate(gangs):
        world.gang(f"g{number}", at if number else 0, runs_s, gpus=gpus, pods=pods, queue=queue)
    world.history.until_s = world.start_s + until
    with tempfile.TemporaryDirectory() as folder:
        live = world.record(Path(folder), most_bytes=MIB, flush_each=many_files)
        recording = Recording(Path(folder))
        told = ReplayedWorld(head())
        for line in recording:
            told.apply_line(line)
        assert differences(digest(live.world.state), digest(told.state)) == []
        assert without_versions(told) == without_versions(live.world)
        assert check_recording(recording).differences == []
        assert sum(isinstance(line, lines.Head) for line in recording) > 1 or not many_files
