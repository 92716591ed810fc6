"""The placement of a gang of one is noted in its PodGroup, as long as there is nothing to tell."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from extender_world import World, of
from guarded_extender import Process
from msgspec import structs

from extender.groupstatus import COUNTS_MAX_S, COUNTS_REST_S
from extender.notes import fits
from extender.planner.actions.allocate import Allocate
from extender.planner.actions.enqueue import Enqueue
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from muster.api.muster.placement import (
    PLACEMENTS,
    BorrowedSpares,
    NodeSpares,
    Placement,
    PlacementSpec,
    PodSetPlacement,
)
from muster.api.muster.placementnotes import PlacementContent, is_noted, noted
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup
from muster.kube.errors import Conflict

CPU2 = {"cpu": 2}
ONE = {"worker": (1, CPU2)}


class Written:
    """A world whose decisions about placements are written to an API server in memory."""

    def __init__(self, tasks: Mapping[str, tuple[int, Mapping[str, Any]]] | None = None) -> None:
        self.world = World()
        self.world.nodes(2)
        self.key = self.world.gang("a", tasks or ONE, phase="Pending")
        process = Process(self.world)
        process.stop()  # nothing is written but what the writers write themselves
        self.api = process.api
        self.statuses, self.writer = process.committer._statuses, process.committer._placements
        self.statuses_started = 0
        process.committer.writes.start = self.start  # type: ignore[method-assign]

    def start(self, *_: object) -> None:
        """As `Writes`: counts statuses that would be written on their own."""
        self.statuses_started += 1

    def placed(self) -> Session:
        """A cycle that gives the gang its place, written."""
        session = self.world.session(self.world.progress, Enqueue(), Allocate())
        [place] = of(session, decisions.Place)
        self.writer.place(session, place)
        self.statuses.write(session)
        return session

    def ended(self, takes_s: float = 0.0) -> Session:
        """A cycle that ends the placement, written; the cycle takes a while between the end and the statuses."""
        session = self.world.session(self.world.progress)
        assert of(session, decisions.ClosePlacement)
        for close in self.writer.due(session):
            self.writer.close(session, close)
        self.world.now += takes_s
        self.statuses.write(session)
        return session

    @property
    def group(self) -> PodGroup:
        """The PodGroup as it is."""
        found: PodGroup = self.api.kind(POD_GROUPS)[self.key]
        return found

    @property
    def objects(self) -> list[Placement]:
        """Placements that are objects."""
        return self.api.all(PLACEMENTS)

    @property
    def placement(self) -> Placement:
        """The one that counts, as the planner's state has it."""
        found = self.world.state.placement_of(self.key)
        assert found is not None
        return found


def test_a_plan_and_its_phase_are_one_write() -> None:
    """The controller may create the pod on its node from that moment on."""
    one = Written()
    one.placed()
    assert (one.api.writes, one.statuses_started, one.group.status.phase) == (1, 0, "Inqueue")
    note = noted(one.group)
    assert (note.status.phase, note.spec.epoch, one.objects) == ("Planned", 1, [])
    assert one.placement == note
    assert one.world.view(one.key).active


@pytest.mark.parametrize("late", [False, True])
def test_its_end_and_running_are_one_write(*, late: bool) -> None:
    """A bound pod needs no more than that, even if it starts late."""
    one = Written()
    one.placed()
    node = one.placement.spec.pod_sets[0].runs[0].node
    one.world.pod(one.key, "worker", 0, CPU2, node=node, pin=node, epoch=1, phase="Pending" if late else "Running")
    one.ended()
    assert (one.api.writes, one.statuses_started, one.group.status.phase) == (1, 0, "Inqueue"), "it does not run yet"
    one.world.now += COUNTS_MAX_S if late else COUNTS_REST_S
    one.ended()
    assert (one.api.writes, one.statuses_started, one.group.status.phase) == (2, 0, "Running")
    assert (one.placement.status.phase, one.placement.status.started) == ("Bound", True)
    assert one.world.view(one.key).started


def test_no_status_is_written_beside_the_end_that_brings_it() -> None:
    """Although both are due at the same time: the second of two writes would be refused."""
    one = Written()
    one.placed()
    one.world.pod(one.key, "worker", 0, CPU2, node="node-0", pin="node-0", epoch=1, phase="Running")
    one.ended(takes_s=COUNTS_REST_S)
    assert (one.api.writes, one.statuses_started) == (1, 0)
    one.ended()
    assert (one.api.writes, one.statuses_started, one.group.status.phase) == (2, 0, "Running")


def test_an_end_that_waits_is_not_looked_at_again() -> None:
    """Hundreds of them may wait in each of many cycles."""
    one = Written()
    one.placed()
    one.world.pod(one.key, "worker", 0, CPU2, node="node-0", pin="node-0", epoch=1, phase="Running")
    looks = 0
    holds = one.statuses.holds

    def counting(*of_gang: Any) -> bool:
        nonlocal looks
        looks += 1
        return holds(*of_gang)

    one.statuses.holds = counting  # type: ignore[method-assign]
    for _ in range(3):
        one.ended()
    assert looks == 1
    one.world.now += COUNTS_REST_S
    one.ended()
    assert (looks, one.group.status.phase) == (2, "Running")


def test_what_is_given_up_becomes_an_object() -> None:
    """Whoever looks for the reason finds it where those of other gangs are; and the controller pins nothing by it."""
    one = Written()
    one.placed()
    one.world.now += 1000
    one.ended()
    assert noted(one.group) is None
    [found] = one.objects
    assert (found.status.phase, found.status.attempts, found.spec.epoch) == ("Abandoned", 1, 1)
    assert found.spec.pod_group_uid == one.group.metadata.uid
    assert one.placement == found


@pytest.mark.parametrize("tasks", [{"worker": (2, CPU2)}, {"a": (1, CPU2), "b": (1, CPU2)}])
def test_gangs_of_more_have_an_object(tasks: Mapping[str, tuple[int, Mapping[str, Any]]]) -> None:
    """There is a story to tell about them."""
    one = Written(tasks)
    one.placed()
    assert len(one.objects) == 1
    assert noted(one.group) is None


def test_a_change_of_the_podgroup_is_no_reason_to_plan_again() -> None:
    """Its text may just have been written, or its minimum."""
    one = Written()
    session = one.world.session(Enqueue(), Allocate())
    [place] = of(session, decisions.Place)
    changed = one.api.change(POD_GROUPS, "a", {"metadata": {"labels": {"some": "label"}}}, "ns")
    one.world.state.on_pod_group(None, changed)
    one.writer.place(session, place)
    assert noted(one.group) is not None
    assert one.group.metadata.labels == {"some": "label"}


def test_two_planners_do_not_note_over_each_other() -> None:
    """Whoever comes later decides anew."""
    one = Written()
    session = one.world.session(Enqueue(), Allocate())  # both have seen this
    [place] = of(session, decisions.Place)
    one.writer.place(session, place)
    with pytest.raises(Conflict, match="records another placement"):
        one.writer.place(session, place)


def test_a_later_object_counts_and_an_earlier_one_does_not() -> None:
    """An object is made of the note; one of an earlier PodGroup is none."""
    one = Written()
    one.placed()
    note = one.placement
    meta = one.world.meta("a")
    earlier = structs.replace(note, kind="Placement", metadata=meta, spec=structs.replace(note.spec, pod_group_uid="x"))
    one.world.state.on_placement(None, earlier)
    assert one.placement is note
    later = structs.replace(note, kind="Placement", metadata=meta, spec=structs.replace(note.spec, epoch=2))
    one.world.state.on_placement(None, later)
    assert one.placement is later
    one.world.state.on_placement(later, None)
    assert is_noted(one.placement)


@pytest.mark.parametrize("text", ["", "nonsense", "[]", '{"spec": {"epoch": "x"}}', '{"spec": {"podGroupUID": "u2"}}'])
def test_what_nobody_can_read_or_somebody_copied_is_no_placement(text: str) -> None:
    """The gang is planned as if nothing stood there."""
    assert noted(PodGroup(metadata=World().meta("a", annotations={"muster.dev/placement": text}))) is None


def test_users_read_epoch_and_phase_of_every_placement() -> None:
    """The columns of `kubectl get placements` show them, and the CRD has no default for either."""
    assert PlacementContent().as_json() == {"spec": {"epoch": 1}, "status": {"phase": "Planned"}}
    assert PlacementContent().as_note() == '{"spec":{},"status":{}}'


MORE: dict[str, Callable[[decisions.Place], decisions.Place]] = {
    "victims": lambda place: replace(place, victims=((place.gang, SimpleNamespace()),)),
    "spares": lambda place: replace(place, spares=[NodeSpares("worker", "node-1", 1)]),
    "loans": lambda place: replace(place, borrows=[BorrowedSpares("uid", "worker", "node-1")]),
    "no new slot": lambda place: replace(place, new_slots=0),
    "two slots": lambda place: replace(place, new_slots=2),
    "two pod sets": lambda place: replace(place, pod_sets=[*place.pod_sets, PodSetPlacement("other", [])]),
    "members that wait for others": lambda place: replace(place, pod_sets=[_with(place, held=True)]),
    "shares of GPUs": lambda place: replace(place, pod_sets=[_with(place, gpus=["0"])]),
}


def _with(place: decisions.Place, **fields: Any) -> PodSetPlacement:
    return structs.replace(place.pod_sets[0], **fields)


@pytest.mark.parametrize("more", MORE.values(), ids=MORE)
def test_a_placement_with_more_to_tell_has_an_object(more: Callable[[decisions.Place], decisions.Place]) -> None:
    """A note has one node; and what is an object already stays one."""
    one = Written()
    [place] = of(one.world.session(Enqueue(), Allocate()), decisions.Place)
    assert fits(place, None)
    assert fits(replace(place, spares=[], borrows=[]), None)
    assert not fits(more(place), None)
    note = Placement(kind="PodGroup", metadata=one.world.meta("a"), spec=PlacementSpec(pod_group_uid=place.gang.uid))
    assert is_noted(note)
    assert fits(place, note)
    assert not fits(place, structs.replace(note, spec=PlacementSpec(pod_group_uid="earlier")))
    assert not fits(place, structs.replace(note, kind="Placement"))
