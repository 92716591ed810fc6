"""A function that is not of the shape of its hook is refused: by mypy, and when the plugin is built."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from extender.planner.actions import ACTIONS
from extender.planner.configuration.build import Assembly, examine
from extender.planner.framework.config import parse
from extender.planner.framework.hooks import HOOKS
from extender.planner.framework.ordering import by_key
from extender.planner.framework.registry import PlainPlugin, Registry, call_of
from extender.planner.framework.session import Session
from extender.planner.plugins import PLUGINS

ROOT = Path(__file__).parents[5]
EXAMPLE = ROOT / "docs" / "plugin-example" / "quietnodes.py"
ERROR = re.compile(r"/theirs\.py:(\d+): error: (.*)")
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
    """Each line of the plugin with mypy's messages on it. The example of the docs has no error."""
    lines = [*WRONG, *RIGHT]
    file = tmp_path_factory.mktemp("plugin") / "theirs.py"
    file.write_text(HEAD + "".join(f"    {line}\n" for line in lines))
    before, output = HEAD.count("\n"), checked(file, EXAMPLE)
    found = {lines[int(number) - before - 1]: text for number, text in ERROR.findall(output)}
    assert output.endswith(f"Found {len(found)} errors in 1 file (checked 2 source files)\n"), output
    return found


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_function_is_an_error(said: dict[str, str], line: str) -> None:
    """It says what is expected."""
    assert WRONG[line] in said[line]


@pytest.mark.parametrize("line", RIGHT)
def test_a_right_one_is_none(said: dict[str, str], line: str) -> None:
    """Nor is a name that is known only when the program runs."""
    assert line not in said


class Theirs(PlainPlugin):
    """A plugin with one function, or with a defect after it."""

    name = "theirs"

    def __init__(self, hook: str, function: Callable[..., Any], defect: str = "") -> None:
        super().__init__({})
        self._hook, self._function, self._defect = hook, function, defect

    def on_session_open(self, session: Session) -> None:
        """Registers."""
        session.hooks.named(self._hook).add(self._function)
        if self._defect:
            raise RuntimeError(self._defect)


def takes(shape: str) -> Callable[..., Any]:
    """A function with these parameters."""
    function: Callable[..., Any] = eval(f"lambda {shape}: None")  # noqa: S307 - no others
    return function


def refusals(hook: str, function: Callable[..., Any], defect: str = "") -> list[str]:
    """What is said of a file with this plugin; the planner does not start with it, either."""
    made = Registry({**PLUGINS, "theirs": lambda _: Theirs(hook, function, defect)}, ACTIONS, installed=False)
    text = "tiers: [{plugins: [{name: gang}, {name: theirs}]}]"
    errors = examine(text, made).errors
    if errors:
        with pytest.raises(ValueError, match=re.escape(errors[0])):
            Assembly(made).build(parse(text))
    else:
        Assembly(made).build(parse(text))
    return errors


@pytest.mark.parametrize("hook", HOOKS)
def test_a_function_that_its_hook_cannot_call_is_refused_at_start(hook: str) -> None:
    """With a sentence that names the plugin, the hook and what is expected; one that it can call is not."""
    shape = ", ".join(call_of(HOOKS[hook]).parameters)
    [error] = refusals(hook, takes("one, two, three, four"))
    start = f"tiers[0].plugins[1]: plugin 'theirs': a function for hook {hook} takes (one, two, three, four)"
    assert error.startswith(f"{start}, and is called with ({shape}); its answer: ")
    assert refusals(hook, takes(shape)) == []


@pytest.mark.parametrize(("hook", "function"), [
    ("job_order", by_key(lambda gang: gang)),
    ("evicted", [].append),  # a built-in one, whose parameter has another name
    ("topologies", dict),  # one without a signature
    ("predicate", takes("cls, session=None")),
    ("closest_domain", takes("*_, ever=False")),
], ids=lambda case: case if isinstance(case, str) else "")  # fmt: skip
def test_any_function_that_can_be_called_will_do(hook: str, function: Callable[..., Any]) -> None:
    """Whatever it is, and whatever it takes besides."""
    assert refusals(hook, function) == []


def test_a_function_without_the_argument_that_callers_name_is_refused() -> None:
    """It would fail when the first gang waits for a domain."""
    [error] = refusals("closest_domain", takes("gang, slots"))
    assert "takes (gang, slots), and is called with (gang, slots, ever)" in error


def test_a_defect_of_another_kind_is_left_to_the_first_cycle() -> None:
    """An empty cluster may be what it cannot open; what it has registered before is checked."""
    assert refusals("job_ready", takes("gang"), defect="no nodes") == []
    assert len(refusals("job_ready", takes(""), defect="no nodes")) == 1


def test_muster_s_own_plugins_fit() -> None:
    """Each is built without a complaint."""
    own = Registry(PLUGINS, ACTIONS, installed=False)
    assert [own.plugin(name, {}).name for name in PLUGINS] == list(PLUGINS)
