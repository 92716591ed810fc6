"""Figures of a replay: starts, waits and evictions of each queue's gangs, and the used part of the nodes' capacity."""

from collections.abc import Iterable
from math import ceil
from typing import NamedTuple

from msgspec import Struct

from extender.planner.state.state import PlannerState
from extender.record import lines
from extender.replay.replayedworld import ReplayedWorld

ALL = ""
"""Placeholder for a queue's name in the figures of all queues together."""
_SHOWN = ("cpu",)
_PERCENTILE = 0.95


class Fate(NamedTuple):
    """The outcome of a replay for one gang."""

    gang: str
    workload: str
    """The gang's name as shown to users."""
    queue: str
    came_s: float
    start_s: float | None
    """Time of the gang's first start; None if the gang has not started."""
    gave_up_s: float | None
    """Time when a gang was deleted that had not started; None for other gangs."""
    evictions: int
    ran_before: bool
    """True if the gang was already running when the recording began; how long it had waited is unknown."""


class QueueFigures(Struct, rename="camel"):
    """Figures of one queue, or of all queues."""

    queue: str
    came: int = 0
    starts: int = 0
    waiting: int = 0
    """Number of gangs that were still waiting at the end of the replay."""
    wait_median_s: float | None = None
    """Median wait, in seconds, of the gangs that arrived. A gang that did not start counts as waiting until the end of
    the replay.
    """
    wait_p95_s: float | None = None
    evictions: int = 0
    """Number of evictions of gangs; an eviction of several members of one gang counts once."""
    utilisation: dict[str, float] = {}
    """Maps a resource to the fraction of all nodes' capacity that was used, averaged over time."""


class ReplayMeter:
    """Meter that sums up, over time, the resources that queues use and that nodes offer."""

    def __init__(self, state: PlannerState, since_s: float) -> None:
        self.state = state
        self._at = since_s
        self._used: dict[tuple[str, str], float] = {}
        self._offered: dict[str, float] = {}

    def advance(self, until_s: float) -> None:
        """Add usage and capacity for the time since the last call, during which nothing has changed."""
        took = until_s - self._at
        if took <= 0:
            return
        self._at = until_s
        table = self.state.nodes
        for resource, row in table.axis.items():
            if resource in _SHOWN or resource.endswith("gpu"):
                offered = float(table.allocatable[row].sum())
                self._offered[resource] = self._offered.get(resource, 0.0) + offered * took
        for queue, use in self.state.ledger.queues.queues.items():
            for resource, amount in use.staying.items():
                key = queue, resource
                self._used[key] = self._used.get(key, 0.0) + amount * took

    def shares(self, queue: str) -> dict[str, float]:
        """Return the fraction of each resource's capacity that a queue, or all queues, used, rounded to 0.1 %."""
        found = {}
        for resource, offered in sorted(self._offered.items()):
            if offered > 0:
                of = (used for (name, each), used in self._used.items() if each == resource and queue in {ALL, name})
                found[resource] = round(sum(of) / offered, 3)
        return found


def used_then(recording: Iterable[lines.AnyLine]) -> ReplayMeter | None:
    """Return a meter with the usage in the recording; None if the recording never contains the whole cluster."""
    world: ReplayedWorld | None = None
    meter: ReplayMeter | None = None
    session = ""
    for line in recording:
        if isinstance(line, lines.Head) and line.session != session:
            session, world = line.session, ReplayedWorld(line)
            if meter is not None:
                meter.advance(line.at)
        elif world is not None:
            whole = isinstance(line, lines.ObjectsEndLine)
            if whole and meter is None:
                meter = ReplayMeter(world.state, line.at)
            elif whole and meter is not None and meter.state is not world.state:
                meter.advance(line.at)
                meter.state = world.state
            elif meter is not None and line.at:
                meter.advance(line.at)
            world.apply_line(line)
    return meter


def figures_of(fates: Iterable[Fate], meter: ReplayMeter | None, until_s: float) -> list[QueueFigures]:
    """Return the figures of all queues together, then the figures of each queue, sorted by name."""
    by_queue: dict[str, list[Fate]] = {ALL: []}
    for fate in fates:
        by_queue[ALL].append(fate)
        by_queue.setdefault(fate.queue, []).append(fate)
    return [_figures(queue, by_queue[queue], meter, until_s) for queue in sorted(by_queue)]


def wait_s(fate: Fate, until_s: float) -> float:
    """Return the seconds for which a gang waited: until its start, its deletion, or the end of the replay."""
    ends = [each for each in (fate.start_s, fate.gave_up_s) if each is not None]
    return max(min(ends, default=until_s) - fate.came_s, 0.0)


def _figures(queue: str, fates: list[Fate], meter: ReplayMeter | None, until_s: float) -> QueueFigures:
    came = [fate for fate in fates if not fate.ran_before]
    waits = sorted(wait_s(fate, until_s) for fate in came)
    return QueueFigures(
        queue=queue,
        came=len(came),
        starts=sum(fate.start_s is not None for fate in came),
        waiting=sum(fate.start_s is None and fate.gave_up_s is None for fate in came),
        wait_median_s=_at_part(waits, 0.5),
        wait_p95_s=_at_part(waits, _PERCENTILE),
        evictions=sum(fate.evictions for fate in fates),
        utilisation=meter.shares(queue) if meter is not None else {},
    )


def _at_part(ordered: list[float], part: float) -> float | None:
    """Return the quantile `part` of a list by the nearest rank; None for an empty list."""
    return round(ordered[max(ceil(part * len(ordered)), 1) - 1], 1) if ordered else None
