"""Replay loop: the workloads of a recording arrive again in simulated time, and the planner's decisions take effect.

A gang arrives at its recorded time, with all its pods gated. When the planner lifts the gates, the pods run at once on
their nodes, each for its recorded time; after the last one has ended, the gang is deleted. A gang that falls below its
minimum waits again as a whole, with its work up to the last checkpoint done. Other objects (nodes, queues, pods of
others) change at their recorded times.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

from extender.planner.framework.config import parse
from extender.replay.figures import ReplayMeter
from extender.replay.replayedworld import ReplayedWorld, planning_of
from extender.replay.workloads import History, ReplayedChange
from extender.simulate.loop import Simulation
from extender.simulate.members import SimulatedWorkload


class Loop(Simulation):
    """One replay: `run` plays the history to its end."""

    def __init__(self, history: History, config: str | None, changed: Callable[[str, Any], Any]) -> None:
        """Begin with the recorded configuration or another one. Raises ValueError for a configuration with errors.

        `changed(kind, item)` returns the object to use instead, None to leave it out.
        """
        head = history.head
        planning = planning_of(head.config if config is None else config, head.settings)
        super().__init__(ReplayedWorld(head), planning, history.usual_s, history.since_s)
        self.history = history
        self._config = config
        self._changed = changed
        self.meter = ReplayMeter(self.world.state, history.since_s)

    def run(self, extra: list[ReplayedChange] | None = None) -> "Loop":
        """Play the whole history, with `extra` changes at the beginning; return itself."""
        history = self.history
        for change in [*history.before, *(extra or [])]:
            self._change(change)
        for change in history.changes:
            self.at(change.at, lambda change=change: self._change(change))  # type: ignore[misc]
        if self._config is None:
            for at, text in history.configs:
                self.at(at, lambda text=text: self.planning.configure(parse(text)))  # type: ignore[misc]
        for workload in history.workloads:
            came = max(workload.came_s, history.since_s)
            if workload.left_s is None or workload.left_s > came:
                self.at(came, lambda workload=workload, came=came: self._comes(workload, came))  # type: ignore[misc]
        self.play(history.until_s)
        return self

    def advance(self, until_s: float) -> None:
        """Advance the time, and measure the usage in it."""
        self.meter.advance(until_s)
        super().advance(until_s)

    def _change(self, change: ReplayedChange) -> None:
        """Apply a change of an object that does not belong to a workload."""
        item = change.item if change.item is None else self._changed(change.kind, change.item)
        if item is None:
            self.world.forget(change.kind, change.key)
        else:
            self.world.apply(change.kind, item)

    def _comes(self, workload: SimulatedWorkload, came: float) -> None:
        group = self._changed(workload.kind, workload.group)
        if group is not None:
            self.come(dataclasses.replace(workload, group=group), came)
