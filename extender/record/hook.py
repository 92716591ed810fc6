"""Hooks that record the planner's inputs: watched changes, the extender's own writes, and planning cycles."""

from collections.abc import Callable
from typing import Any

from extender.planner.framework.inputs import CycleInputs
from extender.planner.framework.session import Session
from extender.planner.state.state import PlannerState
from extender.record import lines
from extender.record.decisiontexts import decision_lines
from extender.record.recorder import PlannerRecorder
from muster.api.base import Resource
from muster.api.kubernetes import autoscaling, core, meta, scheduling
from muster.api.muster.gang import native_gang
from muster.api.muster.node_faults import FaultRules
from muster.api.muster.placement import PLACEMENTS, Placement
from muster.api.names import BUDGET
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup, Queue


class RecordingHook:
    """Hook that passes the planner's inputs and decisions to a recorder."""

    def __init__(self, recorder: PlannerRecorder) -> None:
        self.recorder = recorder
        self._requests: dict[str, autoscaling.ProvisioningRequest] = {}

    def changed(
        self, resource: Resource[Any], old: meta.Object | None, new: meta.Object | None, *, own: bool = False
    ) -> None:
        """Record a change of an object that is passed to the planner's state."""
        if new is not None:
            self.recorder.saw(resource.full_name, new, own=own)
        elif old is not None:
            self.recorder.gone(resource.full_name, old.metadata.key, own=own)

    def recording_handler(
        self, resource: Resource[Any], handle: Callable[[Any, Any], None]
    ) -> Callable[[Any, Any], None]:
        """Return a handler that records each change before calling `handle`."""

        def noted(old: Any, new: Any) -> None:
            self.changed(resource, old, new)
            handle(old, new)

        return noted

    def state(self, comparisons: int, later: Callable[[], None], *, pool: str, rules: FaultRules) -> PlannerState:
        """Return an empty planner's state that records this process's own writes."""
        state = RecordingState(comparisons, later, pool=pool, rules=rules)
        state.hook = self
        return state

    def snapshot_taken(self) -> None:
        """Record that the state is being copied for a cycle; called on the event loop that changes the state."""
        self.recorder.record(lines.SnapshotLine())

    def decided(self, session: Session) -> None:
        """Record those inputs of a cycle that no watch reports, and the cycle's decisions."""
        inputs = session.inputs
        self._record_requests(inputs)
        self.recorder.record(
            lines.Cycle(
                at=inputs.now,
                arrived={uid: sorted(slots) for uid, slots in inputs.arrived.items()},
                avoided={key: dict(nodes) for key, nodes in inputs.avoided.items()},
                gone=sorted(inputs.gone),
                served=inputs.provisioning_served,
                usage=inputs.usage if any(map(_budgeted, session.snapshot.queues.values())) else None,
                decided=decision_lines(session),
            )
        )

    def _record_requests(self, inputs: CycleInputs) -> None:
        """Record changed ProvisioningRequests, which no watch reports, because they are listed instead."""
        now = {each.metadata.key: each for each in inputs.provisioning.values()}
        for key, each in now.items():
            known = self._requests.get(key)
            if known is None or known.metadata.resource_version != each.metadata.resource_version:
                self.changed(autoscaling.PROVISIONING_REQUESTS, known, each)
        for key in self._requests.keys() - now.keys():
            self.changed(autoscaling.PROVISIONING_REQUESTS, self._requests[key], None)
        self._requests = now


class RecordingState(PlannerState):
    """Planner's state that records this process's own writes; handlers of watches record other changes.

    A write to an object whose deletion is already known is not recorded, because the state also ignores this write.

    A replay applies the recorded writes in the same way and at the same points, so that its state equals the recorded
    state at each cycle.
    """

    hook: RecordingHook

    def on_pod_written(self, new: core.Pod) -> None:
        """Update the state and record the extender's own write."""
        if new.metadata.uid in self.pods:
            self.hook.changed(core.PODS, None, new, own=True)
        super().on_pod_written(new)

    def on_pod_group_written(self, new: PodGroup) -> bool:
        """Update the state and record the extender's own write."""
        known = self.groups.get(new.metadata.key)
        if known is not None and known.metadata.uid == new.metadata.uid:
            self.hook.changed(POD_GROUPS, None, new, own=True)
        return super().on_pod_group_written(new)

    def on_native_written(self, new: scheduling.NativePodGroup) -> bool:
        """Update the state and record the extender's own write."""
        known = self.native.groups.get(f"{new.metadata.namespace}/{native_gang(new.metadata.name)}")
        if known is not None and known.metadata.uid == new.metadata.uid:
            self.hook.changed(scheduling.NATIVE_POD_GROUPS, None, new, own=True)
        return super().on_native_written(new)

    def on_placement(self, old: Placement | None, new: Placement | None) -> bool:
        """Update the state and record the written placement; the watch's handler records watched changes."""
        self.hook.changed(PLACEMENTS, old, new, own=True)
        return super().on_placement(old, new)

    def assume(self, uid: str, node: str, devices: tuple[int, ...] = ()) -> bool:
        """Update the state and record the extender's own write."""
        self.hook.recorder.record(lines.Bound(uid=uid, node=node, devices=devices))
        return super().assume(uid, node, devices)


def _budgeted(queue: Queue) -> bool:
    return BUDGET in queue.metadata.annotations
