"""Simulation of a recording: the recorded workloads arrive in simulated time, and the planner's decisions take effect.

A gang arrives at its recorded time, with all its pods gated. When the planner removes the gates, the pods run at once
on their nodes, each for its recorded running time. After the last pod has ended, the gang is deleted. A gang that falls
below its minimum waits again as a whole; its work up to the last checkpoint is not lost. Other objects (nodes, queues,
pods that Muster does not schedule) change at their recorded times.

After each change, cycles run until they decide nothing more. One more cycle runs a second later, because started gangs
may grow at that time. While gangs wait, further cycles run at growing intervals to check deadlines.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from heapq import heappop
from typing import Any

from extender.planner.framework.config import parse
from extender.planner.framework.snapshot import take_snapshot
from extender.replay.figures import ReplayMeter
from extender.replay.replayedworld import ReplayedWorld, planning_of
from extender.replay.workloads import History, ReplayedChange
from extender.simulate.cluster import SimulatedCluster
from extender.simulate.effects import SimulatedEffects
from extender.simulate.members import SimulatedWorkload

SOON_S = 1.0
TICK_S = 30.0
LONGEST_TICK_S = 240.0
"""Maximum time, in seconds, between two cycles while nothing happens and gangs wait. The interval between cycles begins
with `TICK_S` and doubles, because cycles are the main cost of a simulation. While a placement is being carried out, the
interval stays short, because eviction notices may expire.
"""
MOST_ROUNDS = 100
"""Maximum number of cycles at one simulated time; if more cycles were needed, their decisions would be undoing each
other.
"""


class Replay(SimulatedCluster):
    """One replay of a history; `run` simulates the history to its end."""

    def __init__(self, history: History, config: str | None, changed: Callable[[str, Any], Any]) -> None:
        """Begin with the recorded or a given configuration.

        Raises ValueError for a configuration with errors.

        `changed(kind, item)` returns the object that replaces a recorded object, or None to exclude the object.
        """
        head = history.head
        super().__init__(ReplayedWorld(head), history.usual_s, history.since_s)
        self.planning = planning_of(head.config if config is None else config, head.settings)
        self._effects = SimulatedEffects(self)
        self._tick_at: float | None = None
        self._pause_s = TICK_S
        self.cycles = 0
        self.history = history
        self._config = config
        self._changed = changed
        self.meter = ReplayMeter(self.world.state, history.since_s)

    def run(self, extra: list[ReplayedChange] | None = None) -> "Replay":
        """Simulate the whole history, with `extra` changes at the beginning; return the replay itself."""
        history = self.history
        for change in [*history.before, *(extra or [])]:
            self._change(change)
        for change in history.changes:
            self.at(change.at, partial(self._change, change))
        if self._config is None:
            for at, text in history.configs:
                self.at(at, partial(self._configure, text))
        for workload in history.workloads:
            came = max(workload.came_s, history.since_s)
            if workload.left_s is None or workload.left_s > came:
                self.at(came, partial(self._comes, workload, came))
        self.play(history.until_s)
        return self

    def play(self, until_s: float) -> None:
        """Process all events up to the simulated time `until_s`."""
        while self.events and self.events[0][0] <= until_s:
            self._step()
        self.advance(until_s)

    def advance(self, until_s: float) -> None:
        """Advance the simulated time to `until_s`, and measure the usage up to this time."""
        self.meter.advance(until_s)
        self.now = until_s

    def _change(self, change: ReplayedChange) -> None:
        item = change.item if change.item is None else self._changed(change.kind, change.item)
        if item is None:
            self.world.forget(change.kind, change.key)
        else:
            self.world.apply(change.kind, item)

    def _configure(self, text: str) -> None:
        self.planning.configure(parse(text))

    def _comes(self, workload: SimulatedWorkload, came: float) -> None:
        group = self._changed(workload.kind, workload.group)
        if group is not None:
            self.come(dataclasses.replace(workload, group=group), came)

    def _step(self) -> None:
        """Advance to the next event, process it, and run cycles until they decide nothing more."""
        at = self.events[0][0]
        self.advance(at)
        ticks, ticked = self._tick_at == at, True
        while self.events and self.events[0][0] <= at:
            _, _, act = heappop(self.events)
            if act != self._tick:
                ticked = False
                act()
        if ticked and not ticks:
            return  # the next cycle has already been scheduled
        self._tick_at = None
        for _ in range(MOST_ROUNDS):
            if not self._cycle():
                break
            ticked = False
        self._plan_tick(soon=not ticked)

    def _tick(self) -> None:
        """Do nothing; the event only triggers a cycle that checks deadlines."""

    def _plan_tick(self, *, soon: bool) -> None:
        waits = any(playing.ended_s is None and playing.started_s is None for playing in self.gangs.values())
        active = any(gang.active or gang.incomplete for gang in self.world.state.gangs())
        if not (soon or waits or active):
            return
        self._pause_s = TICK_S if soon or active else min(2 * self._pause_s, LONGEST_TICK_S)
        self._tick_at = self.now + (SOON_S if soon else self._pause_s)
        self.at(self._tick_at, self._tick)

    def _cycle(self) -> bool:
        """Run a cycle and apply its decisions; return True if the changes could lead to further decisions."""
        self.cycles += 1
        requests = self.world.requests()
        session = self.planning.run(
            take_snapshot(self.world.state), self.now, provisioning=requests, provisioning_served=False
        )
        self.touched = False
        self._effects.carry_out(session)
        return self.touched
