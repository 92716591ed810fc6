"""Lets the workloads of a recording come to the planner again, in simulated time: its decisions take effect.

A gang comes when it came, with all its pods gated. When the planner lifts their gates they run at once on their nodes,
each for as long as it ran then, and when the last has ended the gang goes. A gang that loses its minimum waits again as
a whole; its work up to its last checkpoint is done. What is no workload (nodes, queues, pods of others) changes when it
changed then.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

from extender.planner.framework.config import parse
from extender.replay.figures import ReplayMeter
from extender.replay.told import ReplayedWorld, planning_of
from extender.replay.workloads import History, ReplayedChange
from extender.simulate.loop import Simulation
from extender.simulate.members import SimulatedWorkload


class Loop(Simulation):
    """One replay: `run` plays the history to its end."""

    def __init__(self, history: History, config: str | None, changed: Callable[[str, Any], Any]) -> None:
        """Take the recorded configuration or another one. Raises ValueError for a configuration with mistakes.

        `changed(kind, item)` changes objects as they come, None: it is left out.
        """
        head = history.head
        planning = planning_of(head.config if config is None else config, head.settings)
        super().__init__(ReplayedWorld(head), planning, history.usual_s, history.since_s)
        self.history = history
        self._config = config
        self._changed = changed
        self.meter = ReplayMeter(self.world.state, history.since_s)

    def run(self, extra: list[ReplayedChange] | None = None) -> "Loop":
        """Play all, with more changes at the beginning; return itself."""
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

    def go_on(self, until_s: float) -> None:
        """Let time pass, and measure what is used in it."""
        self.meter.go_on(until_s)
        super().go_on(until_s)

    def _change(self, change: ReplayedChange) -> None:
        """Hand over a change of an object that is no workload's."""
        item = change.item if change.item is None else self._changed(change.kind, change.item)
        if item is None:
            self.world.forget(change.kind, change.key)
        else:
            self.world.apply(change.kind, item)

    def _comes(self, workload: SimulatedWorkload, came: float) -> None:
        group = self._changed(workload.kind, workload.group)
        if group is not None:
            self.come(dataclasses.replace(workload, group=group), came)
