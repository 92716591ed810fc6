"""What became of each step: the table at the end of a run, and when each was last run, which `make checked` prints.

The file in build/ci has the last result of each step, whichever run it was of.
"""

import json
from collections.abc import Container, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

FILE = Path("build/ci/results.json")
Outcome = Literal["passed", "passed again", "failed", "not here", "out of time"]
"""`passed again`: at the second chance; `not here`: this machine has not what the tests need; `out of time`: it was
ended before it had failed or passed.
"""
_MISSING: tuple[Outcome, ...] = ("not here", "out of time")


@dataclass(frozen=True)
class Result:
    """One run of a step."""

    step: str
    outcome: Outcome
    commit: str
    """Its hash in short, with + behind it where files had changed since."""
    at: str
    """Its start, as RFC 3339."""
    seconds: float
    why: str = ""
    """Reason for the outcome, in one line."""

    def fails(self, always: Container[str]) -> bool:
        """Return True if the run fails by it; of a step that `always` runs nothing may be missing, either."""
        return self.outcome == "failed" or (self.outcome in _MISSING and self.step in always)


def load(file: Path) -> dict[str, Result]:
    """Return the last result of each step; none where there is no file yet."""
    return {each["step"]: Result(**each) for each in json.loads(file.read_text())} if file.exists() else {}


def keep(file: Path, result: Result) -> None:
    """Write the result in the place of the step's last one."""
    known = load(file) | {result.step: result}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps([asdict(each) for each in known.values()], indent=1) + "\n")


def table(results: Iterable[Result]) -> str:
    """Return a line for each: step, result, seconds, commit and start."""
    rows = [("step", "result", "seconds", "commit", "started", "")]
    rows += [(each.step, each.outcome, f"{each.seconds:.0f}", each.commit, each.at, each.why) for each in results]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def checked(file: Path, steps: Iterable[str]) -> str:
    """Return the table with each step's last run, and the names of steps that were never run."""
    known = load(file)
    never = [name for name in steps if name not in known]
    text = table(sorted(known.values(), key=lambda each: each.at)) if known else f"{file} has no results yet: .ci/run"
    return f"{text}\nnever run here: {', '.join(never)}" if known and never else text
