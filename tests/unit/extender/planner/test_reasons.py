"""The sentences of `extender.planner.reasons`: each is used, and each call fills just the blanks that there are."""

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from string import Formatter

import pytest

import extender
from extender.planner import reasons
from muster.api.muster.reason import Sentence

MODULES = [found.name for found in pkgutil.iter_modules(reasons.__path__)]
Said = dict[tuple[str, str], list[ast.Call]]


@cache
def trees() -> dict[Path, list[ast.AST]]:
    """The nodes of each file that can name a sentence."""
    texts = {path: path.read_text() for path in Path(extender.__file__).parent.rglob("*.py")}
    known = {path: text for path, text in texts.items() if path.parent.name == "reasons" or "reasons" in text}
    return {path: list(ast.walk(ast.parse(text))) for path, text in known.items()}


def texts(module: str) -> Iterator[tuple[str, str]]:
    """Sentences with blanks: name and text."""
    for name, value in vars(importlib.import_module(f"{reasons.__name__}.{module}")).items():
        text = value.text if isinstance(value, Sentence) else getattr(value, "__self__", None)
        if isinstance(text, str):
            yield name, text


def _dotted(node: ast.expr) -> list[str]:
    """The names of an expression like `a.b.c`; the last one of any other expression with an attribute."""
    match node:
        case ast.Name(id=name):
            return [name]
        case ast.Attribute(value=value, attr=name):
            return [*_dotted(value), name]
    return [""]


@cache
def calls() -> Said:
    """Module and name of sentences → where they are called, in their own module or as `reasons.<module>.<name>`."""
    found: Said = {}
    for path, nodes in trees().items():
        alias: dict[str, str] = {}
        for node in nodes:
            match node:
                case ast.Assign(targets=[ast.Name(id=short), *_], value=ast.Attribute(value=ast.Name(id="reasons"))):
                    alias[short] = node.value.attr  # type: ignore[attr-defined]
        for node in nodes:
            if isinstance(node, ast.Call):
                *module, name = _dotted(node.func)
                of = module[-1] if module else path.stem
                found.setdefault((alias.get(of, of), name), []).append(node)
    return found


@pytest.mark.parametrize(
    ("module", "name", "text"), [(module, name, text) for module in MODULES for name, text in texts(module)]
)
def test_who_says_a_sentence_fills_its_blanks(module: str, name: str, text: str) -> None:
    """All of them and no others, by name: mypy does not look into `str.format`."""
    blanks = {field.partition(".")[0] for _, field, _, _ in Formatter().parse(text) if field}
    assert (module, name) in calls(), "nobody says it"
    for call in calls()[module, name]:
        assert not call.args
        assert {keyword.arg for keyword in call.keywords} == blanks


@pytest.mark.parametrize("module", MODULES)
def test_no_sentence_is_left_behind(module: str) -> None:
    """What nothing names any more is dead."""
    known = [path for path in trees() if path.parent.name == "reasons" and path.stem == module]
    at_top = [node for node in trees()[known[0]] if getattr(node, "col_offset", None) == 0]
    own = {node.id for node in at_top if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {node.name for node in at_top if isinstance(node, ast.FunctionDef)}
    every = [node for nodes in trees().values() for node in nodes]
    used = {node.attr for node in every if isinstance(node, ast.Attribute)}
    used |= {node.id for node in every if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    assert own - used == set()
