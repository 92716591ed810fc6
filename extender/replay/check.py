"""Comparison of this version's decisions with the recorded decisions, cycle by cycle on the same inputs.

The recorded decisions take effect instead of the new decisions, so each cycle starts from the recorded state. Therefore
only the planner (another version or configuration) causes a difference, never an earlier difference.
"""

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from extender.planner.framework.config import parse
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import Snapshot, take_snapshot
from extender.record import lines
from extender.record.decisiontexts import DecisionText, decision_lines
from extender.replay.replayedworld import ReplayedWorld, decide, planning_of
from extender.simulate.effects import count_failures
from muster.api.kubernetes.meta import format_time

SHOWN = 50
"""Maximum number of differences that a report lists; the report counts all differences."""


class Difference(Struct, rename="camel"):
    """A cycle in which this version's decisions differ from the recorded decisions."""

    at: str
    cycle: int
    """Number of the cycle in the recording."""
    then: list[DecisionText]
    """Recorded decisions that the planner no longer makes."""
    now: list[DecisionText]
    """Decisions that the planner makes now but did not make in the recording."""


class CheckReport(Struct, rename="camel"):
    """The comparison of all cycles of a recording."""

    since: str = ""
    until: str = ""
    versions: list[str] = []
    """Versions of Muster with which the recording was made."""
    cycles: int = 0
    decisions: dict[str, int] = {}
    """Maps a verb, such as place, to the number of recorded decisions with this verb."""
    equal: int = 0
    """Number of recorded decisions that the planner still makes."""
    different_cycles: int = 0
    gone: int = 0
    """Number of recorded decisions that the planner no longer makes."""
    new: int = 0
    """Number of decisions that the planner makes now but did not make in the recording."""
    lost: int = 0
    """Number of changes that the recording lacks; cycles after the gap may differ for this reason."""
    differences: list[Difference] = []


def check_recording(recording: Iterable[lines.AnyLine], config: str | None = None) -> CheckReport:
    """Repeat every cycle, also with another configuration; return the differences. Raises ValueError for its errors."""
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
        """Begin a file.

        If the recorded process was restarted, begin with an empty state and a planner without memory.
        """
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
        count_failures(self._world.state, session)
