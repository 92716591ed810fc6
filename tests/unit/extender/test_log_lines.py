"""What the extender logs of pods and placements can be followed through all lines: UID, gang and epoch."""

import ast
from functools import cache
from pathlib import Path

import pytest

EXTENDER = Path(__file__).parents[3] / "extender"


@cache
def lines() -> list[tuple[str, str, set[str]]]:
    """Each line that is logged: where, what it says, and the names of its fields."""
    found = []
    for path in sorted(EXTENDER.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="log")),
                    args=[ast.Constant(value=str(says)), *_],
                    keywords=more,
                ):
                    found.append((f"{path.name}:{node.lineno}", says, {each.arg or "" for each in more}))
    return found


def test_pods_are_told_with_their_uid() -> None:
    """A later pod of the same name is another one."""
    told = {where: fields for where, _, fields in lines() if "pod" in fields}
    assert len(told) > 4
    for where, fields in told.items():
        assert "uid" in fields or where.startswith("scaling"), where


@pytest.mark.parametrize(
    "message", ["placed", "placement abandoned", "placement cut short", "evicted", "the capacity for the gang is free"]
)
def test_placements_are_told_with_gang_and_epoch(message: str) -> None:
    """So that the story of one placement can be picked out."""
    found = [fields for _, what, fields in lines() if what == message]
    assert found
    for fields in found:
        assert {"gang", "epoch"} <= fields or "started" in fields, "an eviction without an asker has no epoch"
