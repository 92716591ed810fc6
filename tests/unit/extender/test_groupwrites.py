"""The status of a gang goes into its PodGroup: Volcano's as it is, a native one as conditions of its status."""

import msgspec
from extender_world import World
from guarded_extender import process_of
from msgspec import structs

from extender.groupstatus import write_status
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.scheduling import INITIALLY_SCHEDULED, NATIVE_POD_GROUPS, NativePodGroup
from muster.api.muster.native import PHASE, holds
from muster.api.volcano.scheduling import POD_GROUPS, PodGroupCondition, PodGroupStatus

KEY = "ns/native.train"
NO_ROOM = PodGroupCondition(
    type="Unschedulable", status="True", reason="NotEnoughResources", message="no room",
    last_transition_time="2026-01-01T00:00:00Z",
)  # fmt: skip
WAITS = PodGroupStatus(phase="Pending", place=3, conditions=[NO_ROOM])
OTHER = {"type": "example.com/Seen", "status": "True", "reason": "Seen", "message": "", "lastTransitionTime": "now"}


def test_a_native_group_gets_conditions_and_another_one_its_status() -> None:
    """The state has them at once; conditions of others stay, and versions are for test_preconditions."""
    world = World()
    meta = msgspec.to_builtins(world.meta("train", labels={"muster.dev/queue": "red"}))
    body = {
        "metadata": meta,
        "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}},
        "status": {"conditions": [OTHER]},
    }
    world.state.native.on_group(None, msgspec.convert(body, NativePodGroup))
    spec = {"schedulerName": "muster", "schedulingGroup": {"podGroupName": "train"}}
    pod = {"metadata": msgspec.to_builtins(world.meta("train-0")), "spec": spec}
    world.state.on_pod(None, msgspec.convert(pod, Pod))
    groups = world.state.groups
    own = world.gang("a", {"worker": (1, {"cpu": 1})})
    with process_of(world) as process:
        [native] = process.api.all(NATIVE_POD_GROUPS)
        meta = structs.replace(native.metadata, name="train")
        process.api.keep(NATIVE_POD_GROUPS, structs.replace(native, metadata=meta))
        for key, sent in (
            (KEY, {"status": "not of a native one"}),
            (own, {"status": {"phase": "Pending", "place": 3}}),
        ):
            write_status(process.committer._client, process.committer._cluster, groups[key], WAITS, sent, world.now)
    written = {each.type: each for each in process.api.find(NATIVE_POD_GROUPS, "train", "ns").status.conditions}
    assert msgspec.to_builtins(written["example.com/Seen"]) == OTHER
    assert (written[INITIALLY_SCHEDULED].status, written[INITIALLY_SCHEDULED].message) == ("False", "no room")
    assert "queue=red" in written[PHASE].message.split()
    assert groups[KEY].status == holds(WAITS)
    found = process.api.find(POD_GROUPS, "a", "ns").status
    assert found == groups[own].status == PodGroupStatus(phase="Pending", place=3)
