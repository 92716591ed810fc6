"""How far a build is, from the lines of the go command."""

import io
import sys
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterctl.plane.gobuild import Progress, Screen


def shown(lines: list[str], packages: list[str]) -> list[str]:
    """What a log gets to see of a build whose go command says these lines after it has named the packages."""
    stream, progress = io.StringIO(), Progress()
    screen = Screen(stream)
    progress.expect(packages)
    for line in lines:
        progress.count(line)
        screen.show(progress)
    screen.end()
    return stream.getvalue().splitlines()


def test_modules_are_counted_while_they_come() -> None:
    """There is no total: the go command finds out as it goes."""
    progress = Progress()
    assert progress.count("go: downloading k8s.io/api v0.37.2")
    assert progress.count("go: downloading k8s.io/kubernetes v1.37.2")
    assert progress.text == "downloading modules: 2"


def test_a_log_has_a_line_for_each_fifty_modules() -> None:
    """They come by the hundred, and a proxy can be slow."""
    assert shown([f"go: downloading example.com/{number} v1.0.0" for number in range(120)], []) == [
        "downloading modules: 1",
        "downloading modules: 50",
        "downloading modules: 100",
    ]


def test_packages_are_counted_of_all() -> None:
    """As a bar and as numbers; when the last one is compiled the linker is at work."""
    progress = Progress()
    progress.expect(["fmt", "io", "k8s.io/api"])
    assert progress.text == f"[{'-' * 30}] 0 of 3 packages"
    progress.count("io")
    assert progress.text == f"[{'#' * 10}{'-' * 20}] 1 of 3 packages"
    progress.count("fmt")
    progress.count("k8s.io/api")
    assert progress.text == f"[{'#' * 30}] 3 of 3 packages, linking"


def test_other_lines_are_not_counted() -> None:
    """They belong into the log: an error, or a package that nobody expected."""
    progress = Progress()
    progress.expect(["fmt", "io"])
    before = progress.text
    assert not progress.count("# io")
    assert not progress.count("io/io.go:1:1: syntax error")
    assert not progress.count("os")
    assert progress.text == before


@given(st.integers(1, 300), st.randoms(use_true_random=False))
def test_a_log_has_a_line_for_each_tenth(total: int, order: Random) -> None:
    """In whatever order packages come, it has at most eleven lines, each further than the one before."""
    packages = [str(number) for number in range(total)]
    order.shuffle(packages)
    lines = shown(packages, packages)
    counts = [int(line.split("] ")[1].split(" of ")[0]) for line in lines]
    assert len(lines) <= 11
    assert counts == sorted(set(counts))
    assert counts[-1] == total


def test_a_terminal_has_one_line_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every package moves it; the rest of the longer line before is wiped off."""
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr(sys, "__stderr__", stream)
    progress, screen = Progress(), Screen(stream)
    progress.expect(["fmt", "io"])
    screen.show(progress)
    progress.count("io")
    screen.show(progress)
    screen.end()
    assert stream.getvalue().count("\n") == 1
    assert [part.removesuffix("\x1b[K") for part in stream.getvalue().split("\r")[1:]] == [
        f"[{'-' * 30}] 0 of 2 packages",
        f"[{'#' * 15}{'-' * 15}] 1 of 2 packages\x1b[K\n",
    ]


def test_what_redraws_a_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """A spinner takes the place of standard error: what changes in place would be lost between its frames."""
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    progress, screen = Progress(), Screen(stream)
    progress.expect(["fmt"])
    screen.show(progress)
    assert stream.getvalue() == f"[{'-' * 30}] 0 of 1 packages\n"
