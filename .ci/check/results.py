"""Results of the steps: the table at the end of a run, and the table of last runs that `make checked` prints.

A file in build/ci has the last result of each step, from any run.
"""

import json
from collections.abc import Container, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

FILE = Path("build/ci/results.json")
Outcome = Literal["passed", "passed again", "failed", "not here", "out of time"]
"""`passed again`: at the second chance; `not here`: this machine lacks something that the tests need; `out of time`:
the step was ended before it had a result."""
_MISSING: tuple[Outcome, ...] = ("not here", "out of time")


@dataclass(frozen=True)
class Result:
    """One run of a step."""

    step: str
    outcome: Outcome
    commit: str
    """The short hash of the commit, followed by + if files had changed since."""
    at: str
    """Start time of the step, in the format of RFC 3339."""
    seconds: float
    why: str = ""
    """Reason for the outcome, in one line."""

    def fails(self, always: Container[str]) -> bool:
        """Return True if this result makes the run fail.

        A step that `always` runs also fails if this machine lacks something that the step needs.
        """
        return self.outcome == "failed" or (self.outcome in _MISSING and self.step in always)


def load(file: Path) -> dict[str, Result]:
    """Return the last result of each step; empty if no step has run yet."""
    return {each["step"]: Result(**each) for each in json.loads(file.read_text())} if file.exists() else {}


def keep(file: Path, result: Result) -> None:
    """Store a result, in place of the previous result of the step."""
    known = load(file) | {result.step: result}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps([asdict(each) for each in known.values()], indent=1) + "\n")


def table(results: Iterable[Result]) -> str:
    """Return a line for each result: step, outcome, seconds, commit and start."""
    rows = [("step", "result", "seconds", "commit", "started", "")]
    rows += [(each.step, each.outcome, f"{each.seconds:.0f}", each.commit, each.at, each.why) for each in results]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def checked(file: Path, steps: Iterable[str]) -> str:
    """Return the table of the last run of each step, and the names of steps that were never run."""
    known = load(file)
    never = [name for name in steps if name not in known]
    text = table(sorted(known.values(), key=lambda each: each.at)) if known else f"{file} has no results yet: .ci/run"
    return f"{text}\nnever run here: {', '.join(never)}" if known and never else text
