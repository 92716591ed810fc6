"""Report of a what-if replay: figures of the recording, and of its replays without and with the change.

The replay with the change is compared with the replay without it instead of the recording, so that only the change
causes differences. The report also shows the difference between the replay without a change and the recording.
"""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from extender.record import lines
from extender.replay.figures import Fate, QueueFigures, figures_of, used_then, wait_s
from extender.replay.history import history_of
from extender.replay.loop import Replay
from extender.replay.workloads import History, ReplayedChange
from extender.simulate.members import SimulatedWorkload
from muster.api.kubernetes.meta import format_time

MOST = 10
"""Maximum length of each of two lists: gangs that wait longer with the change, and gangs that wait for less time."""
LEAST_S = 1.0
"""Minimum difference, in seconds, between two waits for them to count as different."""


class Waited(Struct, rename="camel"):
    """A gang that waits longer or shorter with the change than without it."""

    gang: str
    workload: str
    queue: str
    came: str
    before_s: float
    after_s: float
    started: bool
    """False if the gang had not started at the end of the replay with the change."""


class ReplayReport(Struct, rename="camel"):
    """The comparison of a recording, its replay without a change, and its replay with a change."""

    since: str
    until: str
    recorded: list[QueueFigures]
    replayed: list[QueueFigures]
    changed: list[QueueFigures]
    longer: list[Waited]
    shorter: list[Waited]
    apart_s: float
    """Median of the absolute differences, in seconds, between the recorded and the replayed waits of gangs."""
    censored: int
    """Gangs that ran at the end of the recording, and therefore run until the end of each replay."""
    never_ran: int
    """Gangs that never started when recorded; in a replay, they run for their queue's usual time."""
    lost: int
    cycles: int
    """Number of cycles in the replay with the change."""


def what_if(
    recording: Iterable[lines.AnyLine],
    *,
    config: str | None,
    changed: Callable[[str, Any], Any],
    added: Callable[[History], list[ReplayedChange]],
) -> ReplayReport:
    """Replay a recording without and with a change; `recording` is read twice.

    Raises ValueError for a configuration with errors, or a recording that is too short.
    """
    history = history_of(recording)
    more = added(history)
    before = Replay(history, None, lambda _, item: item).run()
    after = Replay(history, config, changed).run(more)
    until = history.until_s
    then = [_recorded(each, history) for each in history.workloads if not _outside(each, history)]
    befores, afters = _fates(before), _fates(after)
    moved = _waited(befores, afters, until)
    return ReplayReport(
        since=format_time(history.since_s),
        until=format_time(until),
        recorded=figures_of(then, used_then(recording), until),
        replayed=figures_of(befores, before.meter, until),
        changed=figures_of(afters, after.meter, until),
        longer=[each for each in moved if each.after_s > each.before_s][:MOST],
        shorter=[each for each in moved if each.after_s < each.before_s][:MOST],
        apart_s=_apart_s(then, befores, until),
        censored=sum(any(member.censored for member in each.members.values()) for each in history.workloads),
        never_ran=sum(each.started_s is None for each in history.workloads),
        lost=history.lost,
        cycles=after.cycles,
    )


def _outside(workload: SimulatedWorkload, history: History) -> bool:
    return workload.left_s is not None and workload.left_s <= max(workload.came_s, history.since_s)


def _recorded(workload: SimulatedWorkload, history: History) -> Fate:
    return Fate(
        workload.key,
        workload.title,
        workload.queue,
        max(workload.came_s, history.since_s),
        workload.started_s,
        workload.left_s if workload.started_s is None else None,
        workload.evictions,
        workload.ran_before,
    )


def _fates(loop: Replay) -> list[Fate]:
    return [
        Fate(
            each.workload.key,
            each.workload.title,
            each.workload.queue,
            each.came_s,
            each.first_start_s,
            each.ended_s if each.gave_up else None,
            each.evictions,
            each.workload.ran_before,
        )
        for each in loop.all
    ]


def _waited(before: list[Fate], after: list[Fate], until: float) -> list[Waited]:
    """Return the gangs whose waits differ with the change, the largest difference first."""
    known = {(fate.gang, fate.came_s): wait_s(fate, until) for fate in before}
    found = []
    for fate in after:
        was, now = known.get((fate.gang, fate.came_s)), wait_s(fate, until)
        if was is not None and not fate.ran_before and abs(now - was) >= LEAST_S:
            came, started = format_time(fate.came_s), fate.start_s is not None
            found.append(Waited(fate.gang, fate.workload, fate.queue, came, round(was, 1), round(now, 1), started))
    return sorted(found, key=lambda each: (-abs(each.after_s - each.before_s), each.gang, each.came))


def _apart_s(then: list[Fate], replayed: list[Fate], until: float) -> float:
    known = {(fate.gang, fate.came_s): wait_s(fate, until) for fate in then}
    apart = sorted(
        abs(wait_s(fate, until) - known[fate.gang, fate.came_s])
        for fate in replayed
        if (fate.gang, fate.came_s) in known and not fate.ran_before
    )
    return round(apart[len(apart) // 2], 1) if apart else 0.0
