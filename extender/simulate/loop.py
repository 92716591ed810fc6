"""The time of a simulation: the next event, the planner's cycles after it, and their effects.

After each change, cycles run until nothing more is decided, and again a second later (for the growth of gangs that have
just started). While anything waits, further cycles run for deadlines, at growing intervals.
"""

from collections.abc import Callable
from heapq import heappop

from extender.planner.cycle import Planning
from extender.planner.framework.snapshot import take_snapshot
from extender.simulate.cluster import SimulatedCluster
from extender.simulate.effects import SimulatedEffects
from extender.simulate.members import SimulatedWorkload
from extender.simulate.world import RecordedState

SOON_S = 1.0
TICK_S = 30.0
LONGEST_TICK_S = 240.0
"""Longest time, in seconds, between two cycles while nothing happens and gangs wait. It doubles from `TICK_S` on, as
cycles are the main cost of a simulation. While a placement is carried out it stays short, because of notices."""
MOST_ROUNDS = 100
"""Most cycles at one moment; more would mean decisions that undo each other."""


class Simulation(SimulatedCluster):
    """One forward simulation over the planner's own cycle."""

    def __init__(
        self, world: RecordedState, planning: Planning, usual_s: Callable[[SimulatedWorkload], float | None], now: float
    ) -> None:
        """Begin at `now` with the world's objects; `usual_s` returns the running time of a gang that never ran."""
        super().__init__(world, usual_s, now)
        self.planning = planning
        self._effects = SimulatedEffects(self)
        self._tick_at: float | None = None
        self._pause_s = TICK_S
        self.cycles = 0

    def play(self, until_s: float) -> None:
        """Run all events until `until_s`."""
        while self.events and self.events[0][0] <= until_s:
            self._step()
        self.advance(until_s)

    def advance(self, until_s: float) -> None:
        """Advance the time without events."""
        self.now = until_s

    def _step(self) -> None:
        """Advance to the next event, and plan until nothing more is decided."""
        at = self.events[0][0]
        self.advance(at)
        ticks, ticked = self._tick_at == at, True
        while self.events and self.events[0][0] <= at:
            _, _, act = heappop(self.events)
            if act != self._tick:
                ticked = False
                act()
        if ticked and not ticks:
            return  # an earlier cycle has scheduled the next one
        self._tick_at = None
        for _ in range(MOST_ROUNDS):
            if not self._cycle():
                break
            ticked = False
        self._plan_tick(soon=not ticked)

    def _tick(self) -> None:
        """Run a cycle only because time has passed."""

    def _plan_tick(self, *, soon: bool) -> None:
        waits = any(playing.ended_s is None and playing.started_s is None for playing in self.gangs.values())
        active = any(gang.active or gang.incomplete for gang in self.world.state.gangs())
        if not (soon or waits or active):
            return
        self._pause_s = TICK_S if soon or active else min(2 * self._pause_s, LONGEST_TICK_S)
        self._tick_at = self.now + (SOON_S if soon else self._pause_s)
        self.at(self._tick_at, self._tick)

    def _cycle(self) -> bool:
        """Run a cycle and apply its decisions; return False if nothing changed that could lead to further decisions."""
        self.cycles += 1
        requests = self.world.requests()
        session = self.planning.run(
            take_snapshot(self.world.state), self.now, provisioning=requests, provisioning_served=False
        )
        self.touched = False
        self._effects.carry_out(session)
        return self.touched
