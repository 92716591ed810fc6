"""Trial placement: cycles of the planner at one moment, until nothing more is placed."""

from collections.abc import Iterable

from msgspec import Struct

from extender.explain.gang import GangExplainer
from extender.explain.members import gang_text, where
from extender.explain.report import GangReport
from extender.explain.whatif import WhatIf
from extender.planner.framework import decisions
from extender.simulate.effects import placement_after
from muster.api.muster.placement import PodSetPlacement


class SimulatedGang(Struct, frozen=True, rename="camel"):
    """The outcome for one gang."""

    gang: str
    workload: str
    submitted: bool
    """True if the simulation submitted it; other gangs already waited."""
    placed: bool
    slots: int = 0
    nodes: list[str] = []
    """Nodes in rank order, one line for each pod set."""
    pod_sets: list[PodSetPlacement] = []
    why: GangReport | None = None
    """The report of a gang that is not placed."""


def simulate(what_if: WhatIf, submitted: Iterable[str]) -> list[SimulatedGang]:
    """Return the waiting gangs in the order in which they are placed or tried.

    `submitted` has the keys of new gangs.
    """
    new = set(submitted)
    placed: list[SimulatedGang] = []
    while True:
        session, waits = what_if.decided()
        places = [each for each in session.decisions if isinstance(each, decisions.Place) and not each.gang.begun]
        if not places:
            break
        for place in places:
            placed.append(_placed(place, new))
            known = what_if.state.placement_of(place.gang.key)
            what_if.state.on_placement(known, placement_after(known, place, session))
        what_if.continue_planning()
    explainer = GangExplainer(what_if)
    for gang in waits:
        why = explainer.explain(gang, relief=False)
        placed.append(SimulatedGang(gang.key, gang_text(gang), gang.key in new, placed=False, why=why))
    return placed


def _placed(place: decisions.Place, new: set[str]) -> SimulatedGang:
    return SimulatedGang(
        gang=place.gang.key,
        workload=gang_text(place.gang),
        submitted=place.gang.key in new,
        placed=True,
        slots=place.new_slots,
        nodes=where(place.gang, place.pod_sets),
        pod_sets=place.pod_sets,
    )
