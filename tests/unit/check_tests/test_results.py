"""What was last run when is kept for each step, and told."""

from pathlib import Path
from typing import Any

from check.results import Outcome, Result, checked, keep, load, table


def result(step: str, outcome: Outcome = "passed", **more: Any) -> Result:
    """A result of this step."""
    return Result(step, outcome, "01234567+", more.pop("at", "2026-11-28T10:00:00Z"), 12.4, **more)


def test_the_last_result_of_a_step_counts(tmp_path: Path) -> None:
    """Those of other steps stay."""
    file = tmp_path / "ci" / "results.json"
    for each in (result("lint", "failed", why="exit code 2"), result("docs"), result("lint")):
        keep(file, each)
    assert load(file) == {"lint": result("lint"), "docs": result("docs")}


def test_what_was_checked_is_told(tmp_path: Path) -> None:
    """The oldest result first; what never ran is named."""
    file = tmp_path / "results.json"
    keep(file, result("lint"))
    keep(file, result("docs", "not here", at="2026-11-27T10:00:00Z", why="it needs a browser"))
    lines = checked(file, ["docs", "lint", "model", "test"]).splitlines()
    assert lines[0].split() == ["step", "result", "seconds", "commit", "started"]
    assert " ".join(lines[1].split()) == "docs not here 12 01234567+ 2026-11-27T10:00:00Z it needs a browser"
    assert lines[2].split() == ["lint", "passed", "12", "01234567+", "2026-11-28T10:00:00Z"]
    assert lines[3:] == ["never run here: model, test"]
    assert checked(tmp_path / "none", ["lint"]) == f"{tmp_path}/none has no results yet: .ci/run"


def test_the_columns_of_the_table_are_aligned() -> None:
    """However long the names of steps are."""
    starts = {
        line.index("2026") for line in table([result("a"), result("e2e-neighbours", "passed again")]).splitlines()[1:]
    }
    assert len(starts) == 1


def test_what_fails_a_run() -> None:
    """A step that failed; and one that every commit needs and this machine cannot take."""
    outcomes = ("passed", "passed again", "failed", "not here", "out of time")
    assert [result("a", outcome).fails(always=["a"]) for outcome in outcomes] == [False, False, True, True, True]
    assert not any(result("a", outcome).fails(always=["b"]) for outcome in ("not here", "out of time"))
    assert result("a", "failed").fails(always=["b"])
