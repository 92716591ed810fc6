"""The outcome of a job follows from the end of its process."""

import signal

import pytest

from tests.mutants.killing import Outcome, outcome


@pytest.mark.parametrize(("lines", "code", "expected"), [
    (["run a", "run b"], 0, Outcome("", "", 2)),
    (["run a", "fail a"], 1, Outcome("a", "", 1)),
    (["run a", "run b"], -signal.SIGKILL, Outcome("b", "hangs", 2)),
    (["run a"], -signal.SIGXCPU, Outcome("a", "hangs", 1)),
    (["run a"], -signal.SIGSEGV, Outcome("a", "crashes", 1)),
    ([], -signal.SIGKILL, Outcome("", "hangs", 0)),
    ([], 2, Outcome("", "crashes", 0)),
    (["fail import"], 1, Outcome("import", "", 0)),
])  # fmt: skip
def test_an_outcome(lines: list[str], code: int, expected: Outcome) -> None:
    """A test failed, or the process hung or crashed while one ran, or before the first."""
    assert outcome(lines, code, 0.0) == expected
