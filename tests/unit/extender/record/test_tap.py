"""What the extender's own state notes of its writes."""

from pathlib import Path

from extender_world import World
from msgspec.structs import replace
from recorded_world import MIB, head

from extender.record import lines
from extender.record.reading import Recording
from extender.record.recorder import PlannerRecorder
from extender.record.ring import Ring
from extender.record.tap import Tap
from muster.api.muster.node_faults import DEFAULT_RULES


def test_own_writes_are_noted_unless_their_object_is_gone(tmp_path: Path) -> None:
    """A PodGroup and a pod that were written are told as own; of one that is gone meanwhile nothing is said."""
    ring = Ring(tmp_path, most_bytes=MIB, most_age_s=1e9, wall_s=lambda: 1_800_000_000.0)
    tap = Tap(PlannerRecorder(ring, head(), wall_s=lambda: 1_800_000_000.0))
    state = tap.state(1_000, lambda: None, pool="", rules=DEFAULT_RULES)
    world = World()
    key = world.gang("gang", {"worker": (1, {"cpu": 1})})
    pod, group = world.pod(key, "worker", 0, {"cpu": 1}), world.state.groups[key]
    state.on_pod_group(None, group)
    state.on_pod(None, pod)
    tap.looked()
    state.on_pod_group_written(group)
    state.on_pod_written(pod)
    state.assume(pod.metadata.uid, "node-0")
    state.on_pod(pod, None)
    state.on_pod_group(group, None)
    state.on_pod_group_written(replace(group))
    state.on_pod_written(replace(pod))
    tap.recorder.stop()
    said = [line for line in Recording(tmp_path) if isinstance(line, lines.Put | lines.Bound)]
    kinds = [line.kind if isinstance(line, lines.Put) and line.own else line.__class__.__name__ for line in said]
    assert kinds == ["podgroups.scheduling.volcano.sh", "pods", "Bound"]
