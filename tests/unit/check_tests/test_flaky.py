"""A second chance is for the tests of tests/flaky.toml, and only for some days after they have failed."""

import ast
import datetime as dt
from pathlib import Path

import pytest
from check.flaky import FILE, KEPT_DAYS, Flaky, files, overdue, read, unlisted

ROOT = Path(__file__).parents[3]
DAY = dt.date(2026, 11, 28)
LISTED = [Flaky("tests/a.py::test_x[1]", DAY, "a race")]


def test_an_entry_is_read() -> None:
    """A test, a day, a cause."""
    assert read('[[flaky]]\ntest = "tests/a.py::test_x[1]"\ndate = 2026-11-28\ncause = "a race"\n') == LISTED
    assert read("# nothing\n") == []


@pytest.mark.parametrize("entry", [
    'test = "t"\ndate = 2026-11-28\n', 'test = "t"\ndate = "2026-11-28"\ncause = "c"\n',
    'test = "t"\ndate = 2026-11-28T01:02:03\ncause = "c"\n', 'test = "t"\ndate = 2026-11-28\ncause = ""\n',
    'test = "t"\ndate = 2026-11-28\ncause = "c"\nissue = 3\n',
])  # fmt: skip
def test_half_an_entry_is_refused(entry: str) -> None:
    """It says what is missing."""
    with pytest.raises(ValueError, match=r"is not a test with a date \(2026-11-28\) and a cause"):
        read(f"[[flaky]]\n{entry}")


def test_the_list_is_of_tests_that_there_are() -> None:
    """A test that is renamed takes its entry along."""
    for each in read((ROOT / FILE).read_text(encoding="utf-8")):
        path, _, name = each.test.partition("::")
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        assert name.partition("[")[0] in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_an_entry_is_kept_for_two_weeks() -> None:
    """Then it is to be removed, or to be renewed by somebody who has seen it fail."""
    assert not overdue(LISTED, DAY + dt.timedelta(days=KEPT_DAYS))
    [said] = overdue(LISTED, DAY + dt.timedelta(days=KEPT_DAYS + 1))
    assert said.startswith(
        "tests/flaky.toml: tests/a.py::test_x[1] has not failed since 2026-11-28: remove it, or renew"
    )


def test_others_have_no_second_chance() -> None:
    """The whole name counts; xdist writes the group of a test behind it."""
    failed = ["tests/a.py::test_x[1]@nodes", "tests/a.py::test_x[12]", "tests/b.py::test_y", "tests/a.py::test_x[1]"]
    assert unlisted(LISTED, failed) == ["tests/a.py::test_x[12]", "tests/b.py::test_y"]


def test_whole_files_run_again() -> None:
    """Each once."""
    assert files(["tests/b.py::test_y", "tests/a.py::test_x[a::b]", "tests/a.py::test_z"]) == [
        "tests/a.py",
        "tests/b.py",
    ]
