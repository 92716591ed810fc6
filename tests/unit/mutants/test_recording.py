"""A coverage recording gives the tests of a line, also after small changes of the product."""

import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from coverage.numbits import nums_to_numbits

from tests.mutants import clones
from tests.mutants import recording as module
from tests.mutants.recording import Covered, Ran, Recording, covered, numbered_then
from tests.mutants.sites import Site, sites

CODE = "LIMIT = 2\n\n\ndef f(a):\n    return (\n        a\n        < LIMIT\n    )\n\n\ndef g(a):\n    return a + 1\n"
# The file's lines by context, as a recording has them.
LINES = {
    "": {1, 4, 11},
    "tests/unit/test_f.py::test_f|run": {5, 6},
    "tests/unit/test_f.py::test_f|teardown": {6},
    "tests/unit/test_f.py::test_both|run": {5, 6, 7, 12},
    "tests/unit/test_old.py::test_removed|run": {5, 6, 7, 12},
}
BOTH, F = "tests/unit/test_f.py::test_both", "tests/unit/test_f.py::test_f"


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    """That of CODE, with a test that is not there any more."""
    data = tmp_path / "coverage.sqlite"
    with sqlite3.connect(data) as connection:
        connection.execute("create table file (id integer, path text)")
        connection.execute("create table context (id integer, context text)")
        connection.execute("create table line_bits (file_id integer, context_id integer, numbits blob)")
        connection.execute("insert into file values (1, 'a.py')")
        for number, (context, lines) in enumerate(LINES.items()):
            connection.execute("insert into context values (?, ?)", (number, context))
            connection.execute("insert into line_bits values (1, ?, ?)", (number, nums_to_numbits(lines)))
    connection.close()
    return Recording(data, duration_s={F: 1.0, BOTH: 1.0}, product={"a.py": CODE})


def made(text: str, becomes: str) -> Site:
    """The mutant with that line."""
    return next(site for site in sites("a.py", text) if site.becomes == becomes)


def test_tests_of_a_line(recording: Recording) -> None:
    """Those that still exist; of a line that the tracer saw itself, its own."""
    assert covered(made(CODE, "<= LIMIT"), recording, {"a.py": CODE}) == Covered(Counter({BOTH: 1}), at_import=False)
    assert covered(made(CODE, "return a - 1"), recording, {"a.py": CODE}).tests == {BOTH: 1}


def test_tests_of_a_statement(recording: Recording) -> None:
    """Of its first lines, where the tracer did not see the line itself."""
    text = CODE.replace("    )\n", "        + 2)\n")
    assert covered(made(text, "- 2)"), recording, {"a.py": text}).tests == {BOTH: 3, F: 2}


def test_tests_of_a_name(recording: Recording) -> None:
    """Tests of a line outside of functions: the tests of the lines that use its name."""
    assert covered(made(CODE, "LIMIT = 3"), recording, {"a.py": CODE}) == Covered(Counter({BOTH: 1}), at_import=True)


@pytest.mark.parametrize(("first", "becomes"), [
    ("BASE = 2\nLIMIT = BASE", "BASE = 3"),
    ("def base():\n    return 1 + 1\n\n\nLIMIT = base()", "return 1 - 1"),
])  # fmt: skip
def test_tests_of_a_name_that_another_one_is_made_from(recording: Recording, first: str, becomes: str) -> None:
    """The tests of the lines that use the other one, as tests use neither the first one nor a function of imports."""
    text = CODE.replace("LIMIT = 2", first)
    assert covered(made(text, becomes), recording, {"a.py": text}).tests == {BOTH: 1}


def test_a_product_that_has_changed(recording: Recording) -> None:
    """Lines are mapped to their former position."""
    text = '"""A module."""\n\n' + CODE
    assert covered(made(text, "return a - 1"), recording, {"a.py": text}).tests == {BOTH: 1}


@pytest.mark.parametrize(("old", "new", "line", "then"), [
    ("a\nb\nc", "a\nb\nc", 2, [2]),
    ("a\nb\nc", "x\na\nb\nc", 3, [2]),
    ("a\nb\nc", "a\nx\nb\nc", 2, [1]),
    ("a\nb\nc\nd", "a\nx\nd", 2, [2, 3]),
    ("a\nb", "x\na\nb", 1, [1]),
])  # fmt: skip
def test_lines_as_they_were_numbered(old: str, new: str, line: int, then: list[int]) -> None:
    """A new line is that before it; a changed one those that it replaces."""
    assert numbered_then(old, new)(line) == then


def test_files_of_tests_that_are_outdated() -> None:
    """Those that are new, and those that read otherwise."""
    assert Recording(Path("none"), tests={"a": "1", "b": "2"}).outdated({"a": "1", "b": "3", "c": "4"}) == ["b", "c"]


def test_tests_of_lost_files_are_forgotten(
    recording: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a later run would start them, and end; those of other files stay."""
    gone, new = "tests/unit/test_gone.py::test_x", "tests/unit/test_new.py::test_y"
    recording.duration_s[gone] = 1.0
    recording.failed = {gone, F}
    recording.tests = {"tests/unit/test_f.py": "", "tests/unit/test_gone.py": ""}
    now = {"tests/unit/test_f.py": "", "tests/unit/test_new.py": ""}
    monkeypatch.setattr(clones, "tests", lambda _: now)
    monkeypatch.setattr(
        module, "run", lambda _clone, files, *_, **__: Ran(dict.fromkeys([new], 2.0), {*files} - {*now})
    )
    recording.update(tmp_path, workers=1)
    assert (set(recording.duration_s), recording.failed, recording.tests) == ({F, BOTH, new}, {F}, now)
