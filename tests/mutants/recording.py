"""Coverage by test, and the duration of each test: recorded once, then updated with the tree.

New and changed files of tests are recorded on the next run. Lines of changed modules are mapped to the text at the
time of the recording, so that a small change needs no new one.
"""

import ast
import json
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path
from typing import Any

from coverage.numbits import numbits_to_nums, nums_to_numbits, register_sqlite_functions

from tests.mutants import clones
from tests.mutants.sites import Site

_WITH_SCOPE = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

_CONFIG = "tests/mutants/coverage.ini"
_NOTES = "tests.mutants.durations"


@dataclass
class Recording:
    """Coverage of the unit tests: `duration_s` by test, and the text of product and tests at that time."""

    data: Path
    duration_s: dict[str, float] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    product: dict[str, str] = field(default_factory=dict)
    tests: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> "Recording":
        """Return the recording in the folder; an empty one if there is none."""
        notes = folder / "recording.json"
        if not notes.exists():
            return cls(folder / "coverage.sqlite")
        found: dict[str, Any] = json.loads(notes.read_text())
        return cls(
            folder / "coverage.sqlite", found["duration_s"], set(found["failed"]), found["product"], found["tests"]
        )

    def write(self) -> None:
        """Write durations, failures and texts to a file beside the coverage data."""
        notes = {
            "duration_s": self.duration_s,
            "failed": sorted(self.failed),
            "product": self.product,
            "tests": self.tests,
        }
        self.data.with_name("recording.json").write_text(json.dumps(notes))

    def outdated(self, tests: dict[str, str]) -> list[str]:
        """Return the files of tests that are new or have changed."""
        return sorted(file for file, text in tests.items() if self.tests.get(file) != text)

    def update(self, clone: Path, *, workers: int) -> None:
        """Run new and changed files of tests under coverage, in a clone of the repository."""
        now = clones.tests(clone)
        files = self.outdated(now)
        everything = not self.tests
        if everything:
            self.product = clones.product(clone)
        ran = run(clone, [clones.TIER] if everything else files, self.data, workers=workers)
        same = now.keys() - set(files)
        kept = {test: seconds for test, seconds in self.duration_s.items() if _file(test) in same}
        self.duration_s = kept | ran.duration_s
        self.failed = {test for test in self.failed if _file(test) in same} | ran.failed
        self.tests = now
        self.write()

    @cached_property
    def _coverage(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.data)
        register_sqlite_functions(connection)
        return connection

    def covering(self, file: str, text: str, lines: Iterable[int]) -> Counter[str]:
        """Return how many of the lines, as they are numbered now, each test covers; an empty name is for imports."""
        then = numbered_then(self.product.get(file, text), text)
        wanted = {old for line in lines for old in then(line)}
        found = self._coverage.execute(
            "select context, numbits from line_bits join context on context.id = context_id"
            " join file on file.id = file_id where path = ? and numbits_any_intersection(numbits, ?)",
            (file, nums_to_numbits(wanted)),
        )
        result: Counter[str] = Counter()
        for context, numbits in found:
            test = context.rpartition("|")[0]
            if not test or test in self.duration_s:
                result[test] = max(result[test], len(wanted.intersection(numbits_to_nums(numbits))))
        return result


@dataclass(frozen=True)
class Ran:
    """Durations of a run's tests, and the failed ones."""

    duration_s: dict[str, float]
    failed: set[str]


def run(clone: Path, paths: list[str], data: Path, *, workers: int) -> Ran:
    """Run tests under coverage, adding to what the data file has."""
    notes = data.with_name("durations.json")
    notes.unlink(missing_ok=True)
    options = ["-q", "-n", str(workers), "--dist", "loadfile", "-p", _NOTES, "-p", "no:cacheprovider"]
    coverage = [
        "--cov",
        "--cov-append",
        "--cov-context=test",
        "--cov-report=",
        "--cov-config=tests/mutants/coverage.ini",
    ]
    environment = clones.environment(clone) | {"COVERAGE_FILE": str(data), "MUTANTS_DURATIONS": str(notes)}
    with data.with_name("recording.log").open("w") as log:
        subprocess.run(
            [sys.executable, "-m", "pytest", *paths, *options, *coverage],
            cwd=clone,
            check=False,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
        )
    if not notes.exists():
        raise RuntimeError(f"recording did not end: see {log.name}")
    found = json.loads(notes.read_text())
    return Ran(found["duration_s"], set(found["failed"]))


def numbered_then(old: str, new: str) -> Any:
    """Return a function from a line's number in the new text to those in the old: that before it for a new line."""
    if old == new:
        return lambda line: [line]
    blocks = SequenceMatcher(None, old.split("\n"), new.split("\n"), autojunk=False).get_opcodes()

    def then(line: int) -> list[int]:
        for kind, old_from, old_to, new_from, new_to in blocks:
            if new_from < line <= new_to:
                if kind == "equal":
                    return [old_from + line - new_from]
                return list(range(old_from + 1, old_to + 1)) or [max(old_from, 1)]
        return []

    return then


@dataclass(frozen=True)
class Covered:
    """The tests that cover a mutant's line, and whether imports also run the line."""

    tests: Counter[str]
    at_import: bool


def covered(site: Site, recording: Recording, product: dict[str, str]) -> Covered:
    """Return the tests that run a mutant's line; outside of functions, those that run a line with a name it defines."""
    if site.names:
        return Covered(_users(site.names, recording, product), at_import=True)
    text = product[site.file]
    found = recording.covering(site.file, text, [site.line])
    if not found:
        found = recording.covering(site.file, text, site.lines)
    tests = Counter({test: n for test, n in found.items() if test})
    if not tests and found:  # only imports call this function
        tests = _users(_defined_at(text, [site.line]), recording, product)
    return Covered(tests, at_import="" in found)


def _users(names: Iterable[str], recording: Recording, product: dict[str, str]) -> Counter[str]:
    """Return the tests of lines with the innermost name that any test covers, or with a name defined by such lines."""
    wanted = [*names][::-1]
    for name in wanted:  # grows
        word = re.compile(rf"\b{re.escape(name)}\b")
        found: Counter[str] = Counter()
        above: list[str] = []
        for file, text in product.items():
            lines = [at for at, line in enumerate(text.split("\n"), 1) if word.search(line)] if name in text else []
            if lines:
                found += recording.covering(file, text, lines)
                above += _defined_at(text, lines)
        found.pop("", None)
        if found:
            return found
        wanted += (each for each in dict.fromkeys(above) if each not in wanted)
    return Counter()


def _defined_at(text: str, lines: Iterable[int]) -> list[str]:
    """Return the names of the module that the statements at these lines define."""
    statements = [each for each in ast.parse(text).body if any(each.lineno <= at <= _end(each) for at in lines)]
    own = [each.name for each in statements if isinstance(each, _WITH_SCOPE)]
    others = [part for each in statements if not isinstance(each, _WITH_SCOPE) for part in ast.walk(each)]
    return own + [part.id for part in others if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]


def _end(statement: ast.stmt) -> int:
    return statement.end_lineno or statement.lineno


def _file(test: str) -> str:
    return test.partition("::")[0]
