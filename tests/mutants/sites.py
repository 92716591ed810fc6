"""Places of a module at which a mutant can be made.

Code without effect on behaviour is left out: annotations, docstrings, type checking, log calls, the arguments of
`@dataclass` and of caches, keywords of classes, text with placeholders, and keywords that only check or store
(`zip(strict=)`, `Thread(daemon=)`). So are tuning constants: outside of functions, numbers other than -1 to 2.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tests.mutants.operators import EDITS, UNSEEN, returned
from tests.mutants.source import Edit, Source, squeeze

_LOGS = {"log", "_log", "logger", "bound"}
_SETTINGS = {"dataclass", "lru_cache", "cache", "dataclass_transform", "overload"}
_COUNTS = {0, 1, 2}
_NOT_RUN = {"TYPE_CHECKING", "__name__"}
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Site:
    """A possible mutant: one edit of one file.

    `lines` are the lines whose coverage selects the tests: its own, and the earlier lines of its statement.
    `names` is empty within functions. Outside of them an import runs the line, and tests are found by the names that
    the line defines. `nth` counts mutants of one file that read the same.
    """

    file: str
    edit: Edit
    line: int
    lines: tuple[int, ...]
    text: str
    becomes: str
    before: str
    names: tuple[str, ...]
    nth: int

    @property
    def after(self) -> str:
        """Return the replacement text."""
        return squeeze(self.edit.text) or "(nothing)"


@dataclass(frozen=True)
class _Scope:
    """The context of a node: its statement, the names that it defines outside of functions, and its return type."""

    statement: ast.stmt | None = None
    names: tuple[str, ...] = ()
    annotation: ast.expr | None = None
    in_function: bool = False


def sites(file: str, text: str) -> list[Site]:
    """Return all places of a module in their order, each with every edit."""
    source = Source(text)
    seen: Counter[tuple[str, str, str]] = Counter()
    return [_site(file, source, edit, scope, seen) for edit, scope in _walk(source, source.tree, _Scope())]


def _site(file: str, source: Source, edit: Edit, scope: _Scope, seen: Counter[tuple[str, str, str]]) -> Site:
    first, last = source.line_of(edit.start), source.line_of(max(edit.start, edit.end - 1))
    start, end = source.lines(first, last)
    text = squeeze(source.between(start, end))
    becomes = squeeze(source.between(start, edit.start) + edit.text + source.between(edit.end, end))
    before = squeeze(source.between(edit.start, edit.end)) or "(nothing)"
    key = (edit.operator, text, becomes)
    seen[key] += 1
    header = scope.statement.lineno if scope.statement else first
    names = () if scope.in_function else scope.names
    return Site(file, edit, first, tuple(range(min(header, first), last + 1)), text, becomes, before, names, seen[key])


def _walk(source: Source, node: ast.AST, scope: _Scope) -> Iterator[tuple[Edit, _Scope]]:
    """Yield the edits of a node and of its descendants that affect behaviour."""
    if _is_left_out(node):
        return
    if not scope.in_function and _is_tuning(node):
        return
    if isinstance(node, ast.stmt):
        scope = _entered(node, scope)
    edits = EDITS.get(type(node))
    if edits:
        yield from ((edit, scope) for edit in edits(source, node))
    if isinstance(node, ast.Return):
        yield from ((edit, scope) for edit in returned(source, node, scope.annotation))
    for child, inner in _children(node, scope):
        yield from _walk(source, child, inner)


def _children(node: ast.AST, scope: _Scope) -> Iterator[tuple[ast.AST, _Scope]]:
    """Yield the children of a node, each with the scope in which it runs."""
    inside = _Scope(scope.statement, scope.names, None, in_function=True)
    if isinstance(node, _FUNCTIONS):
        inside = _Scope(None, scope.names, node.returns, in_function=True)
        outer = [*node.decorator_list, *node.args.defaults, *(value for value in node.args.kw_defaults if value)]
        yield from ((child, scope) for child in outer if not _is_setting(child))
        yield from ((child, inside) for child in node.body)
    elif isinstance(node, ast.Lambda):
        yield from ((value, scope) for value in [*node.args.defaults, *node.args.kw_defaults] if value)
        yield node.body, inside
    elif isinstance(node, ast.ClassDef):
        yield from ((child, scope) for child in [*node.decorator_list, *node.body] if not _is_setting(child))
    elif isinstance(node, ast.AnnAssign):
        yield from ((child, scope) for child in [node.target, node.value] if child)
    elif isinstance(node, ast.match_case):
        yield from ((child, scope) for child in [node.guard, *node.body] if child)
    else:
        yield from ((child, scope) for child in ast.iter_child_nodes(node))


def _entered(node: ast.stmt, scope: _Scope) -> _Scope:
    """Return the scope within a statement: outside of functions, with the names that it defines."""
    names = scope.names
    if not scope.in_function:
        if isinstance(node, ast.ClassDef | _FUNCTIONS):
            names = (node.name,)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            own = {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
            names = (*scope.names, *sorted(own))
    return _Scope(node, names, scope.annotation, scope.in_function)


def _is_left_out(node: ast.AST) -> bool:
    if isinstance(node, ast.JoinedStr):
        return True
    if isinstance(node, ast.keyword):
        return node.arg in UNSEEN
    if isinstance(node, ast.If):
        return any(isinstance(part, ast.Name) and part.id in _NOT_RUN for part in ast.walk(node.test))
    if isinstance(node, ast.Assign | ast.AnnAssign):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        return isinstance(target, ast.Name) and target.id.startswith("__")
    return isinstance(node, ast.Expr) and _is_log(node.value)


def _is_tuning(node: ast.AST) -> bool:
    """Return true for a number that counts nothing, also a calculated one: a time, a size or a limit."""
    if isinstance(node, ast.BinOp):
        return all(isinstance(part, ast.Constant) or _is_tuning(part) for part in (node.left, node.right))
    value = node.value if isinstance(node, ast.Constant) else None
    return isinstance(value, int | float) and not isinstance(value, bool) and value not in _COUNTS


def _is_log(node: ast.expr) -> bool:
    """Return true for a call of a logger."""
    function = node.func if isinstance(node, ast.Call) else None
    levels = {"debug", "info", "warning", "error", "exception"}
    return (
        isinstance(function, ast.Attribute)
        and function.attr in levels
        and isinstance(function.value, ast.Name)
        and function.value.id in _LOGS
    )


def _is_setting(node: ast.AST) -> bool:
    """Return true for a decorator that changes storage or caching only."""
    function = node.func if isinstance(node, ast.Call) else node
    name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    return name in _SETTINGS
