"""Lets the workloads of a recording come to the planner again, in simulated time: its decisions take effect.

A gang comes when it came, with all its pods gated. When the planner lifts their gates they run at once on their nodes,
each for as long as it ran then, and when the last has ended the gang goes. A gang that loses its minimum waits again as
a whole; its work up to its last checkpoint is done. What is no workload (nodes, queues, pods of others) changes when it
changed then.

Cycles run after each change until nothing more is decided, a second later (for the growth of gangs that have just
started), and ever more rarely as long as anything waits, for deadlines.
"""

from collections.abc import Callable
from heapq import heappop
from typing import Any

from extender.planner.framework.config import parse
from extender.planner.framework.snapshot import take
from extender.record import lines
from extender.replay.effects import Effects
from extender.replay.figures import Meter
from extender.replay.playing import Cluster
from extender.replay.told import decide, planning_of
from extender.replay.workloads import Change, History

SOON_S = 1.0
TICK_S = 30.0
LONGEST_TICK_S = 240.0
"""Time between two cycles while nothing happens and gangs wait: it doubles from `TICK_S` on, as cycles are what a
replay costs. While a placement is carried out it stays short, for the times of notices."""
MOST_ROUNDS = 100
"""Cycles at one moment; more would be two decisions that undo each other."""


class Loop(Cluster):
    """One replay: `run` plays the history to its end."""

    def __init__(self, history: History, config: str | None, changed: Callable[[str, Any], Any]) -> None:
        """Take the recorded configuration or another one. Raises ValueError for a configuration with mistakes."""
        super().__init__(history, changed)
        head = history.head
        self._config = config
        self.planning = planning_of(head.config if config is None else config, head.settings)
        self._effects = Effects(self)
        self._tick_at: float | None = None
        self._pause_s = TICK_S
        self.meter = Meter(self.told.state, history.since_s)
        self.cycles = 0

    def run(self, extra: list[Change] | None = None) -> "Loop":
        """Play all, with more changes at the beginning; return itself."""
        history = self.history
        for change in [*history.before, *(extra or [])]:
            self.change(change)
        for change in history.changes:
            self.at(change.at, lambda change=change: self.change(change))  # type: ignore[misc]
        if self._config is None:
            for at, text in history.configs:
                self.at(at, lambda text=text: self.planning.configure(parse(text)))  # type: ignore[misc]
        for workload in history.workloads:
            came = max(workload.came_s, history.since_s)
            if workload.left_s is None or workload.left_s > came:
                self.at(came, lambda workload=workload, came=came: self.come(workload, came))  # type: ignore[misc]
        while self.events and self.events[0][0] <= history.until_s:
            self._step()
        self.meter.go_on(history.until_s)
        self.now = history.until_s
        return self

    # -- time -------------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        """Go on to the next moment at which something happens, and plan until nothing more is decided."""
        at = self.events[0][0]
        self.meter.go_on(at)
        self.now, ticks, ticked = at, self._tick_at == at, True
        while self.events and self.events[0][0] <= at:
            _, _, act = heappop(self.events)
            if act != self._tick:
                ticked = False
                act()
        if ticked and not ticks:
            return  # another cycle came before, and said when to look again
        self._tick_at = None
        for _ in range(MOST_ROUNDS):
            if not self._cycle():
                break
            ticked = False
        self._plan_tick(soon=not ticked)

    def _tick(self) -> None:
        """Nothing happens but that time has passed."""

    def _plan_tick(self, *, soon: bool) -> None:
        waits = any(playing.ended_s is None and playing.started_s is None for playing in self.gangs.values())
        active = any(gang.active or gang.incomplete for gang in self.told.state.gangs())
        if not (soon or waits or active):
            return
        self._pause_s = TICK_S if soon or active else min(2 * self._pause_s, LONGEST_TICK_S)
        self._tick_at = self.now + (SOON_S if soon else self._pause_s)
        self.at(self._tick_at, self._tick)

    def _cycle(self) -> bool:
        """Run a cycle and carry its decisions out; False if nothing changed that a further one could go on with."""
        self.cycles += 1
        session = decide(self.planning, take(self.told.state), self.told, lines.Cycle(at=self.now, served=False))
        self.touched = False
        self._effects.carry_out(session)
        return self.touched
