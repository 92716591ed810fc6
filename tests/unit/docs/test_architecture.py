"""The walks through the code name files and functions that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PLACE = re.compile(r"`(?P<file>[\w/]+\.py)`(?P<names>(?:[:,]|\s|or|and|says|\(|`\w[\w.]*`)*)")
NAME = re.compile(r"`(\w[\w.]*)`")
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def named() -> list[tuple[str, str]]:
    """Each file of the page with the functions and classes that follow its name."""
    found = []
    for match in PLACE.finditer(PAGE):
        names = match["names"]
        if names.startswith(":"):
            found += [(match["file"], name) for name in NAME.findall(names)]
    return found


def defined(file: str) -> set[str]:
    """Functions, classes, their methods and constants of a module."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    result = set()
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            result |= {target.id for target in targets if isinstance(target, ast.Name)}
        if isinstance(node, _FUNCTIONS | ast.ClassDef):
            result.add(node.name)
        if isinstance(node, ast.ClassDef):
            result |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, _FUNCTIONS)}
    return result


def test_the_page_names_many_places() -> None:
    """The pattern finds what the page says."""
    assert len(named()) > 50


@pytest.mark.parametrize(("file", "name"), sorted(set(named())))
def test_a_place_exists(file: str, name: str) -> None:
    """A function, method, class or constant of that file."""
    assert name in defined(file)


@pytest.mark.parametrize("folder", sorted(set(re.findall(r"\| `([\w/]+)/` \|", PAGE))))
def test_a_folder_exists_and_has_where_to_start(folder: str) -> None:
    """And so do the files that the table tells to begin with."""
    [row] = [line for line in PAGE.splitlines() if line.startswith(f"| `{folder}/` |")]
    starts = re.findall(r"`([\w/]+\.py)`", row)
    assert starts
    assert all((ROOT / folder / start).exists() for start in starts)
