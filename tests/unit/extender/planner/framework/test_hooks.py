"""Hooks: the table has those that something asks, and no function is registered for another."""

import re
from pathlib import Path

import pytest
from extender_world import World

from extender.planner.framework.hooks import HOOKS

ROOT = Path(__file__).parents[5]
ASKS = re.compile(r"\bhooks\.(\w+)\.(?:call|functions)\b")


def test_the_table_lists_the_hooks_that_something_asks() -> None:
    """All of them, and no other."""
    asked = {name for file in (ROOT / "extender").rglob("*.py") for name in ASKS.findall(file.read_text("utf-8"))}
    assert asked == set(HOOKS)


def test_a_hook_that_there_is_not_is_refused() -> None:
    """The refusal names it and lists those that can be registered."""
    session = World().session()
    said = "hook 'job_odrer' does not exist; a function can be registered for allocated, .*job_order"
    with pytest.raises(KeyError, match=said):
        session.hooks.named("job_odrer").add(lambda: None)
