"""Hooks: a function that is registered is called, and the documentation lists the hooks that there are."""

import re
from pathlib import Path

import pytest
from extender_world import World

from extender.planner.framework.hooks import HOOKS

ROOT = Path(__file__).parents[5]
ASKS = re.compile(r'\b(?:ask|call_all|registered)\(\s*"(\w+)"')


def test_the_table_lists_the_hooks_that_something_asks() -> None:
    """All of them, and no other."""
    asked = {name for file in (ROOT / "extender").rglob("*.py") for name in ASKS.findall(file.read_text("utf-8"))}
    assert asked == HOOKS.keys()


def test_the_documentation_lists_the_hooks_that_something_asks() -> None:
    """In its table of hooks."""
    page = (ROOT / "docs" / "writing-plugins.md").read_text("utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.lstrip().startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == HOOKS.keys()


def test_a_hook_that_there_is_not_is_refused() -> None:
    """The refusal names it and lists those that can be registered."""
    session = World().session()
    said = "hook 'job_odrer' does not exist; a function can be registered for allocated, .*job_order"
    with pytest.raises(KeyError, match=said):
        session.add("job_odrer", lambda: None)
