"""Taps of the extender's inputs: the state that takes its own writes, and the marks of its cycles."""

from collections.abc import Callable
from typing import Any

from extender.explain.clusterdump import kind_name
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import CycleInputs
from extender.planner.state.state import PlannerState
from extender.record import lines
from extender.record.recorder import PlannerRecorder
from extender.record.words import decision_lines
from muster.api.base import Resource
from muster.api.kubernetes import autoscaling, core, meta, scheduling
from muster.api.muster.gang import native_gang
from muster.api.muster.node_faults import FaultRules
from muster.api.muster.placement import PLACEMENTS, Placement
from muster.api.names import BUDGET
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup, Queue


class RecordingHook:
    """Notes the planner's inputs and decisions for a recorder."""

    def __init__(self, recorder: PlannerRecorder) -> None:
        self.recorder = recorder
        self._requests: dict[str, autoscaling.ProvisioningRequest] = {}

    def changed(
        self, resource: Resource[Any], old: meta.Object | None, new: meta.Object | None, *, own: bool = False
    ) -> None:
        """Note a change of an object, as the state gets it."""
        if new is not None:
            self.recorder.saw(kind_name(resource), new, own=own)
        elif old is not None:
            self.recorder.gone(kind_name(resource), old.metadata.key, own=own)

    def recording_handler(
        self, resource: Resource[Any], tell: Callable[[Any, Any], None]
    ) -> Callable[[Any, Any], None]:
        """Return `tell` with a note of each change before it."""

        def noted(old: Any, new: Any) -> None:
            self.changed(resource, old, new)
            tell(old, new)

        return noted

    def state(self, comparisons: int, later: Callable[[], None], *, pool: str, rules: FaultRules) -> PlannerState:
        """Return an empty state that notes what this process writes into it."""
        state = TappedState(comparisons, later, pool=pool, rules=rules)
        state.tap = self
        return state

    def snapshot_taken(self) -> None:
        """Note that the state is copied for a cycle as it is now. Runs where the state is changed."""
        self.recorder.record(lines.SnapshotLine())

    def decided(self, session: Session) -> None:
        """Note the inputs of a cycle that no watch reports, and its decisions."""
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
        """Note the ProvisioningRequests that changed, which are listed and not watched."""
        now = {each.metadata.key: each for each in inputs.provisioning.values()}
        for key, each in now.items():
            known = self._requests.get(key)
            if known is None or known.metadata.resource_version != each.metadata.resource_version:
                self.changed(autoscaling.PROVISIONING_REQUESTS, known, each)
        for key in self._requests.keys() - now.keys():
            self.changed(autoscaling.PROVISIONING_REQUESTS, self._requests[key], None)
        self._requests = now


class TappedState(PlannerState):
    """A state that notes what this process writes; changes from watches are noted by their handlers.

    A write about an object that the watch has shown to be gone is none: the state leaves it out, too.

    The replay hands it over in the same way and at the same place, so that both states are equal at each cycle.
    """

    tap: RecordingHook

    def on_pod_written(self, new: core.Pod) -> None:
        """As the state, with a note."""
        if new.metadata.uid in self.pods:
            self.tap.changed(core.PODS, None, new, own=True)
        super().on_pod_written(new)

    def on_pod_group_written(self, new: PodGroup) -> bool:
        """As the state, with a note."""
        known = self.groups.get(new.metadata.key)
        if known is not None and known.metadata.uid == new.metadata.uid:
            self.tap.changed(POD_GROUPS, None, new, own=True)
        return super().on_pod_group_written(new)

    def on_native_written(self, new: scheduling.NativePodGroup) -> bool:
        """As the state, with a note."""
        known = self.native.groups.get(f"{new.metadata.namespace}/{native_gang(new.metadata.name)}")
        if known is not None and known.metadata.uid == new.metadata.uid:
            self.tap.changed(scheduling.NATIVE_POD_GROUPS, None, new, own=True)
        return super().on_native_written(new)

    def on_placement(self, old: Placement | None, new: Placement | None) -> bool:
        """As the state, with a note: the watch hands over by the table of kinds, which does not come here."""
        self.tap.changed(PLACEMENTS, old, new, own=True)
        return super().on_placement(old, new)

    def assume(self, uid: str, node: str, devices: tuple[int, ...] = ()) -> bool:
        """As the state, with a note."""
        self.tap.recorder.record(lines.Bound(uid=uid, node=node, devices=devices))
        return super().assume(uid, node, devices)


def _budgeted(queue: Queue) -> bool:
    return BUDGET in queue.metadata.annotations
