"""mypy checks plugins: a function that is not of the shape of its hook is an error that names the hook's Protocol."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[5]
ERROR = re.compile(r"\.py:(\d+): error: (.*)")
HEAD = """
from collections.abc import Sequence

from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass


def stage(gang: GangView) -> int:
    return int(gang.started)


def words(cls: PodClass) -> str:
    return "no" if cls.dynamic else ""


def amounts(gang: GangView, wanted: Sequence[str]) -> None:
    del gang, wanted


def register(session: Session) -> None:
"""
WRONG = {
    "session.hooks.job_order.add(stage)": 'expected "Order[GangView]"',
    "session.hooks.predicate.add(words)": 'expected "Predicate"',
    "session.hooks.preempt_victim_filter.add(lambda victim: victim.started)": 'expected "VictimFilter"',
    "session.hooks.job_ready.add(lambda gang: str(gang))": 'expected "Ready"',
    "session.hooks.is_job_over_queue_capacity.add(amounts)": 'expected "QueueLimit"',
    "session.hooks.job_odrer.add(stage)": '"Hooks" has no attribute "job_odrer"',
    "session.hooks.job_ready.call(session)": 'expected "GangView"',
}
"""A line of a plugin, and a part of what mypy says of it."""
RIGHT = ("session.hooks.job_ready.add(lambda gang: gang.started)", 'session.hooks.named("job_order").add(stage)')


def checked(*files: Path) -> str:
    """What mypy says, with what it knows already from `make lint`."""
    config, cache = ROOT / "pyproject.toml", ROOT / ".mypy_cache"
    command = [sys.executable, "-m", "mypy", f"--config-file={config}", f"--cache-dir={cache}", *map(str, files)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Each line of the plugin with what mypy says of it."""
    lines = [*WRONG, *RIGHT]
    file = tmp_path_factory.mktemp("plugin") / "theirs.py"
    file.write_text(HEAD + "".join(f"    {line}\n" for line in lines))
    before = HEAD.count("\n")
    return {lines[int(number) - before - 1]: text for number, text in ERROR.findall(checked(file))}


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_function_is_an_error(said: dict[str, str], line: str) -> None:
    """It says what is expected."""
    assert WRONG[line] in said[line]


@pytest.mark.parametrize("line", RIGHT)
def test_a_right_one_is_none(said: dict[str, str], line: str) -> None:
    """Nor is a name that is known only when the program runs."""
    assert line not in said


def test_the_example_is_right() -> None:
    """As it stands in docs."""
    assert checked(ROOT / "docs" / "plugin-example" / "quietnodes.py").startswith("Success")
