"""Compares the planner's present decisions with the recorded ones, on the same inputs cycle by cycle.

The recorded decisions take effect, not the new ones, so the next cycle again sees the recorded state. So each
difference comes from the planner (another version, another configuration), and not from an earlier difference.
"""

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from extender.planner.framework import decisions
from extender.planner.framework.config import parse
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import Snapshot, take_snapshot
from extender.record import lines
from extender.record.words import Words, decision_lines
from extender.replay.told import ReplayedWorld, decide, planning_of
from muster.api.kubernetes.meta import format_time

SHOWN = 50
"""Differences that a report lists; all are counted."""


class Difference(Struct, rename="camel"):
    """One cycle that decides otherwise now."""

    at: str
    cycle: int
    """Number of the cycle in the recording."""
    then: list[Words]
    """Decisions of then that are not among those of now."""
    now: list[Words]
    """Decisions of now that are not among those of then."""


class CheckReport(Struct, rename="camel"):
    """The comparison of all cycles of a recording."""

    since: str = ""
    until: str = ""
    versions: list[str] = []
    """Versions of Muster that recorded."""
    cycles: int = 0
    decisions: dict[str, int] = {}
    """Verb → decisions of then."""
    equal: int = 0
    """Decisions that are the same now."""
    different_cycles: int = 0
    gone: int = 0
    """Recorded decisions that are no longer made."""
    new: int = 0
    """Decisions that were not taken then."""
    lost: int = 0
    """Changes that were lost to the recording, so that cycles after them may differ for that."""
    differences: list[Difference] = []


def check_recording(recording: Iterable[lines.AnyLine], config: str | None = None) -> CheckReport:
    """Run every recorded cycle again, with the recorded configuration or another one; return what is different.

    Raises ValueError for a configuration with mistakes.
    """
    report = CheckReport(versions=[], decisions={}, differences=[])
    checking = _Checking(report, config)
    for line in recording:
        checking.read_line(line)
    return report


class _Checking:
    def __init__(self, report: CheckReport, config: str | None) -> None:
        self._report = report
        self._config = config
        self._session = ""
        self._world = ReplayedWorld(lines.Head(format=lines.FORMAT))
        self._planning = planning_of("", {})
        self._snapshot: Snapshot | None = None

    def read_line(self, line: lines.AnyLine) -> None:
        report = self._report
        if line.at:
            report.since = report.since or format_time(line.at)
            report.until = format_time(line.at)
        match line:
            case lines.Head():
                self._begin(line)
            case lines.ConfigLine(text=text) if self._config is None:
                self._planning.configure(parse(text))
            case lines.SnapshotLine():
                self._snapshot = take_snapshot(self._world.state)
            case lines.Cycle() if self._snapshot is not None:
                self._compare(line, decide(self._planning, self._snapshot, self._world, line))
                self._snapshot = None
            case lines.Lost(changes=changes):
                report.lost += changes
                self._snapshot = None
            case _:
                self._world.apply_line(line)

    def _begin(self, head: lines.Head) -> None:
        """Begin a file; where the process had restarted, its planner remembers nothing, and its state is new."""
        if head.session == self._session:
            return
        self._session = head.session
        self._world = ReplayedWorld(head)
        self._planning = planning_of(head.config if self._config is None else self._config, head.settings)
        self._snapshot = None
        if head.version not in self._report.versions:
            self._report.versions.append(head.version)

    def _compare(self, cycle: lines.Cycle, session: Session) -> None:
        report = self._report
        report.cycles += 1
        then, now = Counter(map(tuple, cycle.decided)), Counter(decision_lines(session))
        for words, count in then.items():
            report.decisions[words[0]] = report.decisions.get(words[0], 0) + count
        gone, new = then - now, now - then
        report.equal += (then & now).total()
        report.gone += gone.total()
        report.new += new.total()
        if gone or new:
            report.different_cycles += 1
            if len(report.differences) < SHOWN:
                found = Difference(format_time(cycle.at), report.cycles, [*gone.elements()], [*new.elements()])
                report.differences.append(found)
        self._remember(session)

    def _remember(self, session: Session) -> None:
        """Count failures of members as the writer of placements does, which no watch reports."""
        failures = self._world.state.failures
        for avoid in session.decided(decisions.Avoid):
            failures.remember(avoid.gang.key, avoid.avoided or ())
            failures.forget(avoid.gang.key, [pod.uid for pod in avoid.counted])
