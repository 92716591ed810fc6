"""The planner's state, rebuilt from a recording, and a planner for this state."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from extender.planner.cycle import Planning
from extender.planner.framework import config
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import Snapshot
from extender.planner.state.state import PlannerState
from extender.planner.timing import timing_of
from extender.record import lines
from extender.simulate.cluster import RecordedState
from muster.api.kubernetes.core import PODS
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS
from muster.api.muster.configuration import Suspects
from muster.api.muster.gang import Slot
from muster.api.muster.node_faults import CONDITIONS, TAINTS, FaultRules, changed, rules_of
from muster.api.volcano.scheduling import POD_GROUPS

_WRITTEN: dict[str, Callable[[PlannerState, Any], object]] = {
    PODS.full_name: PlannerState.on_pod_written,
    POD_GROUPS.full_name: PlannerState.on_pod_group_written,
    NATIVE_POD_GROUPS.full_name: PlannerState.on_native_written,
}
"""Maps a kind to the state's method for the planner's own writes; own writes of Placements are applied like watched
changes.
"""


def rules_from(settings: Mapping[str, Any]) -> FaultRules:
    """Return the rules for suspect nodes from the settings in a recording."""
    return rules_of(
        changed(CONDITIONS, tuple(settings.get("suspectConditions", ()))),
        changed(TAINTS, tuple(settings.get("suspectTaints", ()))),
    )


def settings_of(suspects: Suspects) -> dict[str, list[str]]:
    """Return the settings that reproduce an extender's published rules, as differences from the default rules.

    In these settings, a disabled default rule begins with a minus.
    """
    return {
        "suspectConditions": _changes(suspects.conditions, CONDITIONS),
        "suspectTaints": _changes(suspects.taints, TAINTS),
    }


def _changes(published: Iterable[str], known: Iterable[str]) -> list[str]:
    listed = set(published)
    return [*sorted(listed - {*known}), *(f"-{each}" for each in known if each not in listed)]


class ReplayedWorld(RecordedState):
    """The state of a cluster, rebuilt from the lines of a recording."""

    def __init__(self, head: lines.Head) -> None:
        super().__init__(PlannerState(pool=head.pool, rules=rules_from(head.settings)))
        self._among: set[tuple[str, str]] = set()
        """Objects that have been read so far from the list at the beginning of the current file."""

    def apply_line(self, line: lines.AnyLine) -> None:
        """Apply a line about an object to the state; ignore other lines."""
        match line:
            case lines.KnownLine(kind=kind, object=text) if kind in self.objects:
                item = lines.unpacked(kind, text)
                self._among.add((kind, item.metadata.key))
                if self.objects[kind].get(item.metadata.key) != item:
                    self.apply(kind, item)
            case lines.ObjectsEndLine():
                self._whole()
            case lines.Put(kind=kind, object=text, own=own) if kind in self.objects:
                item = lines.unpacked(kind, text)
                if own and kind in _WRITTEN:
                    self.objects[kind][item.metadata.key] = item
                    _WRITTEN[kind](self.state, item)
                else:
                    self.apply(kind, item)
            case lines.GoneLine(kind=kind, key=key) if kind in self.objects:
                self.forget(kind, key)
            case lines.Bound(uid=uid, node=node, devices=devices):
                self.state.assume(uid, node, devices)

    def _whole(self) -> None:
        """Remove objects from the state that are not in the list at the beginning of the file."""
        for kind, objects in self.objects.items():
            for key in [key for key in objects if (kind, key) not in self._among]:
                self.forget(kind, key)
        self._among.clear()


def planning_of(text: str, settings: Mapping[str, Any]) -> Planning:
    """Return a planner with a recorded configuration and settings. Raises ValueError that lists its errors."""
    return Planning(config.parse(text), timing_of(settings)[0])


def decide(planning: Planning, snapshot: Snapshot, world: ReplayedWorld, cycle: lines.Cycle) -> Session:
    """Run a recorded cycle on a snapshot, with those recorded inputs that no watch reports.

    The decisions of the cycle are not applied.
    """
    given: dict[str, Any] = {} if cycle.avoided is None else {"avoided": cycle.avoided}
    return planning.run(
        snapshot,
        cycle.at,
        arrived={uid: frozenset(Slot(*slot) for slot in slots) for uid, slots in cycle.arrived.items()},
        gone=frozenset(cycle.gone),
        provisioning=world.requests(),
        provisioning_served=cycle.served,
        usage=cycle.usage,
        **given,
    )
