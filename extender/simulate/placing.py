"""Trial placement: cycles of the planner at one moment, until no further gang is placed."""

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct

from extender.explain.gang import GangExplainer
from extender.explain.members import gang_text, where
from extender.explain.report import GangReport
from extender.explain.whatif import WhatIf
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.victims.notices import last_saved, unsaved_s
from extender.simulate.effects import placement_after
from gangs.words import short
from muster.api.grammar import many
from muster.api.muster.placement import PodSetPlacement


class SimulatedVictim(Struct, frozen=True, rename="camel"):
    """A gang whose pods would be evicted for another gang."""

    gang: str
    workload: str
    pods: int
    lost_s: float | None = None
    """Work that each pod would lose: the seconds since the gang's last checkpoint or start; None if unknown."""
    saved: bool = False
    """True if the gang has reported a checkpoint since its start."""
    moved: bool = False
    """True if the gang is moved and therefore gets other nodes at once."""

    @property
    def text(self) -> str:
        """The gang with the cost of its eviction, such as `Job ns/base (2 pods, 41m since its checkpoint)`."""
        last = "checkpoint" if self.saved else "start"
        since = "" if self.lost_s is None else f", {short(self.lost_s)} since its {last}"
        return f"{self.workload} ({many(self.pods, 'pod')}{since})"


class SimulatedGang(Struct, frozen=True, rename="camel"):
    """The outcome of a trial placement for one gang."""

    gang: str
    workload: str
    submitted: bool
    """True if the gang was submitted in the simulation; other gangs were already waiting."""
    placed: bool
    slots: int = 0
    nodes: list[str] = []
    """The gang's nodes in rank order, one line for each pod set."""
    pod_sets: list[PodSetPlacement] = []
    evicts: list[SimulatedVictim] = []
    """Gangs whose pods would be evicted in favour of this gang."""
    why: GangReport | None = None
    """Report about why the gang is not placed; None if the gang is placed."""


def simulate(what_if: WhatIf, submitted: Iterable[str]) -> list[SimulatedGang]:
    """Return each waiting gang's outcome, in the planner's order; `submitted` has the keys of new gangs."""
    new = set(submitted)
    placed: list[SimulatedGang] = []
    while True:
        session, waits = what_if.decided()
        places = [each for each in session.decisions if isinstance(each, decisions.Place) and not each.gang.begun]
        if not places:
            break
        for place in places:
            placed.append(_placed_gang(place, new, session))
            known = what_if.state.placement_of(place.gang.key)
            what_if.state.on_placement(known, placement_after(known, place, session))
        what_if.continue_planning()
    explainer = GangExplainer(what_if)
    for gang in waits:
        why = explainer.explain(gang, relief=False)
        placed.append(SimulatedGang(gang.key, gang_text(gang), gang.key in new, placed=False, why=why))
    return placed


def _placed_gang(place: decisions.Place, new: set[str], session: Session) -> SimulatedGang:
    return SimulatedGang(
        gang=place.gang.key,
        workload=gang_text(place.gang),
        submitted=place.gang.key in new,
        placed=True,
        slots=place.new_slots,
        nodes=where(place.gang, place.pod_sets),
        pod_sets=place.pod_sets,
        evicts=list(_evicted(place, session)),
    )


def _evicted(place: decisions.Place, session: Session) -> Iterator[SimulatedVictim]:
    """Yield the other gangs whose pods are evicted for a placement, in the order in which the planner chose them."""
    gangs = {victim.key: victim for victim, _ in place.victims if victim.key != place.gang.key}
    pods = Counter(victim.key for victim, _ in place.victims)
    moved = {each.gang.key for each in session.decided(decisions.Place)}
    for key, victim in gangs.items():
        saved = last_saved(victim, session.now) is not None
        lost_s = unsaved_s(victim, session.now) if saved or victim.started_s else None
        yield SimulatedVictim(key, gang_text(victim), pods[key], lost_s, saved, moved=key in moved)
