"""The status of a gang goes into its PodGroup: Volcano's as it is, a native one as conditions of its status."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec
import pytest
from extender_world import World
from msgspec import structs

from extender.groupstatus import write_status
from muster.api.base import Resource
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import Condition
from muster.api.kubernetes.scheduling import INITIALLY_SCHEDULED, NATIVE_POD_GROUPS, NativePodGroup
from muster.api.muster.native import PHASE, holds
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup, PodGroupCondition, PodGroupStatus
from muster.kube.errors import Conflict

KEY = "ns/native.train"
NO_ROOM = PodGroupCondition(
    type="Unschedulable", status="True", reason="NotEnoughResources", message="no room",
    last_transition_time="2026-01-01T00:00:00Z",
)  # fmt: skip
WAITS = PodGroupStatus(phase="Pending", place=3, conditions=[NO_ROOM])
OTHER = {"type": "example.com/Seen", "status": "True", "reason": "Seen", "message": "", "lastTransitionTime": "now"}


class Clerk:
    """A cluster with one native gang, and its API server; remembers what is written."""

    def __init__(self) -> None:
        self.world = World()
        self.patches: list[tuple[str, str, str, Mapping[str, Any]]] = []
        meta = msgspec.to_builtins(self.world.meta("train", uid="uid-train", labels={"muster.dev/queue": "red"}))
        body = {"metadata": meta, "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}}
        self.stored = msgspec.convert({**body, "status": {"conditions": [OTHER]}}, NativePodGroup)
        self.world.state.native.on_group(None, self.stored)
        spec = {"schedulerName": "muster", "schedulingGroup": {"podGroupName": "train"}}
        pod = {"metadata": msgspec.to_builtins(self.world.meta("train-0")), "spec": spec}
        self.world.state.on_pod(None, msgspec.convert(pod, Pod))

    def ask(self, question: Callable[[Any], Any]) -> Any:
        """As the cluster."""
        return question(self.world.state)

    def change(self, change: Callable[[Any], Any]) -> None:
        """As the cluster."""
        change(self.world.state)

    def merge_patch(
        self, kind: Resource[Any], name: str, patch: Mapping[str, Any], namespace: str, *, subresource: str = ""
    ) -> Any:
        """As the API server, for native groups."""
        assert namespace == "ns"
        self.patches.append((kind.group, name, subresource, patch))
        if kind is POD_GROUPS:
            return self.world.state.groups[f"ns/{name}"]
        conditions = msgspec.convert(patch["status"]["conditions"], list[Condition])
        metadata = structs.replace(self.stored.metadata, resource_version=self.world.meta("x").resource_version)
        status = structs.replace(self.stored.status, conditions=conditions)
        self.stored = structs.replace(self.stored, metadata=metadata, status=status)
        return self.stored

    def write(self, group: PodGroup, status: PodGroupStatus) -> None:
        """Writes a status."""
        write_status(cast("Any", self), cast("Any", self), group, status, {"status": "body"}, self.world.now)


def test_a_native_group_gets_conditions_in_the_version_that_was_seen() -> None:
    """The state has them at once; conditions of others stay."""
    clerk = Clerk()
    group = clerk.world.state.groups[KEY]
    clerk.write(group, WAITS)
    [(owner, name, subresource, patch)] = clerk.patches
    assert (owner, name, subresource) == (NATIVE_POD_GROUPS.group, "train", "status")
    assert patch["metadata"] == {"uid": "uid-train", "resourceVersion": group.metadata.resource_version}
    written = {each["type"]: each for each in patch["status"]["conditions"]}
    assert written["example.com/Seen"] == OTHER
    assert (written[INITIALLY_SCHEDULED]["status"], written[INITIALLY_SCHEDULED]["message"]) == ("False", "no room")
    assert "queue=red" in written[PHASE]["message"].split()
    assert clerk.world.state.groups[KEY].status == holds(WAITS)


def test_a_native_group_that_has_changed_since_is_decided_again() -> None:
    """The list of its conditions would be written over."""
    clerk = Clerk()
    group = clerk.world.state.groups[KEY]
    clerk.write(group, WAITS)
    with pytest.raises(Conflict):
        clerk.write(group, WAITS)
    assert len(clerk.patches) == 1


def test_another_podgroup_is_patched_as_it_was() -> None:
    """Its status is no subresource."""
    clerk = Clerk()
    clerk.write(clerk.world.state.groups[clerk.world.gang("a", {"worker": (1, {"cpu": 1})})], WAITS)
    assert clerk.patches == [(POD_GROUPS.group, "a", "", {"status": "body"})]
