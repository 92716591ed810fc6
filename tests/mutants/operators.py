"""Operators of mutation: which edits of a syntax node make a plausible defect of one line.

Each function takes a node of its kind and yields edits. `EDITS` names the function of each kind of node.
"""

import ast
import re
from collections.abc import Callable, Iterator
from typing import Any

from tests.mutants.source import Edit, Source

_COMPARISONS: dict[type[ast.cmpop], tuple[str, dict[str, str]]] = {
    ast.Lt: ("<", {"boundary": "<=", "comparison": ">="}),
    ast.LtE: ("<=", {"boundary": "<", "comparison": ">"}),
    ast.Gt: (">", {"boundary": ">=", "comparison": "<="}),
    ast.GtE: (">=", {"boundary": ">", "comparison": "<"}),
    ast.Eq: ("==", {"comparison": "!="}),
    ast.NotEq: ("!=", {"comparison": "=="}),
    ast.Is: ("is", {"comparison": "is not"}),
    ast.IsNot: (r"is\s+not", {"comparison": "is"}),
    ast.In: ("in", {"comparison": "not in"}),
    ast.NotIn: (r"not\s+in", {"comparison": "in"}),
}
_ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "//"), ast.FloorDiv: ("//", "*"), ast.Div: ("/", "*"),
    ast.Mod: ("%", "*"), ast.BitOr: ("|", "&"), ast.BitAnd: ("&", "|")
}  # fmt: skip
# Edits that replace or remove a whole expression: its value may be a hint, a shortcut or a message, that no one misses.
WIDE = frozenset({"condition", "operand dropped", "keyword dropped", "slice"})
# Keywords that only check, store or measure.
UNSEEN = frozenset({"strict", "daemon", "copy", "flush", "buckets", "maxsize", "max_workers", "exc_info"})
_OPPOSITES = {"min": "max", "max": "min", "any": "all", "all": "any"}
# What a function returns that forgets its answer, by the outermost name of its annotation.
_NOTHING = {
    "str": '""', "int": "0", "float": "0.0", "list": "[]", "dict": "{}", "tuple": "()", "set": "set()",
    "frozenset": "frozenset()", "Sequence": "()", "Mapping": "{}", "Iterator": "iter(())", "Iterable": "()"
}  # fmt: skip


def compared(source: Source, node: ast.Compare) -> Iterator[Edit]:
    """Move the boundary of a comparison, or negate it."""
    left = node.left
    for kind, right in zip(node.ops, node.comparators, strict=True):
        word, changes = _COMPARISONS[type(kind)]
        for operator, becomes in changes.items():
            yield from _between(source, left, right, word, operator, becomes)
        left = right


def combined(source: Source, node: ast.BoolOp) -> Iterator[Edit]:
    """Swap `and` and `or`, or drop one of the operands."""
    start, end = source.start(node), source.end(node)
    own, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
    operands = [source.operand(value) for value in node.values]
    yield Edit("and/or", start, end, f"({f' {other} '.join(operands)})")
    for index, value in enumerate(node.values):
        if _binds(value):
            continue
        rest = operands[:index] + operands[index + 1 :]
        yield Edit("operand dropped", start, end, f"({f' {own} '.join(rest)})")


def signed(source: Source, node: ast.UnaryOp) -> Iterator[Edit]:
    """Drop `not` or a minus sign."""
    operator = {ast.Not: "not dropped", ast.USub: "sign"}.get(type(node.op))
    if operator:
        yield Edit(operator, source.start(node), source.end(node), f"({source.segment(node.operand)})")


def calculated(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """Replace an arithmetic operator or one of sets, unless it joins or formats text."""
    if type(node.op) in _ARITHMETIC and not (_is_text(node.left) or _is_text(node.right)):
        word, becomes = _ARITHMETIC[type(node.op)]
        yield from _between(source, node.left, node.right, re.escape(word), "arithmetic", becomes)


def updated(source: Source, node: ast.AugAssign) -> Iterator[Edit]:
    """Replace the operator of an update in place."""
    if type(node.op) in _ARITHMETIC and not _is_text(node.value):
        word, becomes = _ARITHMETIC[type(node.op)]
        yield from _between(source, node.target, node.value, re.escape(word) + "=", "arithmetic", f"{becomes}=")


def constant(source: Source, node: ast.Constant) -> Iterator[Edit]:
    """Count one more or one less, or invert a truth value."""
    start, end = source.start(node), source.end(node)
    if isinstance(node.value, bool):
        yield Edit("true/false", start, end, str(not node.value))
    elif isinstance(node.value, int):
        yield Edit("number", start, end, str(node.value + 1))
        yield Edit("number", start, end, str(node.value - 1) if node.value else "(-1)")
    elif isinstance(node.value, float):
        yield Edit("number", start, end, str(node.value + 1))


def called(source: Source, node: ast.Call) -> Iterator[Edit]:
    """Leave out a keyword argument, or ask for the opposite of min, max, any or all."""
    if isinstance(node.func, ast.Name) and node.func.id in _OPPOSITES:
        yield Edit("min/max, any/all", source.start(node.func), source.end(node.func), _OPPOSITES[node.func.id])
    for keyword in node.keywords:
        if keyword.arg is not None and keyword.arg not in UNSEEN:
            end = source.end(keyword)
            comma = re.match(rb"\s*,", source.data[end:])
            yield Edit("keyword dropped", source.start(keyword), end + (comma.end() if comma else 0), "")


def sliced(source: Source, node: ast.Slice) -> Iterator[Edit]:
    """Move a bound by one that is no number, which `constant` moves, or add one where there is none."""
    start, end = source.start(node), source.end(node)
    if node.lower is None:
        yield Edit("slice", start, start, "1")
    elif not isinstance(node.lower, ast.Constant):
        yield Edit("slice", start, source.end(node.lower), f"{source.operand(node.lower)} + 1")
    if node.upper is None and node.step is None:
        yield Edit("slice", end, end, "-1")
    elif node.upper is not None and not isinstance(node.upper, ast.Constant):
        yield Edit("slice", source.start(node.upper), source.end(node.upper), f"{source.operand(node.upper)} - 1")


def decided(source: Source, node: ast.If | ast.IfExp | ast.While) -> Iterator[Edit]:
    """Take a branch always, or never."""
    if not isinstance(node.test, ast.Constant) and not _binds(node.test):
        start, end = source.start(node.test), source.end(node.test)
        if not isinstance(node, ast.While):
            yield Edit("condition", start, end, "True")
        yield Edit("condition", start, end, "False")


def filtered(source: Source, node: ast.comprehension) -> Iterator[Edit]:
    """Take all elements of a comprehension."""
    for condition in node.ifs:
        if not _binds(condition):
            yield Edit("condition", source.start(condition), source.end(condition), "True")


def left(source: Source, node: ast.Break | ast.Continue) -> Iterator[Edit]:
    """Leave a loop instead of its iteration, or the other way round."""
    text = "continue" if isinstance(node, ast.Break) else "break"
    yield Edit("break/continue", source.start(node), source.end(node), text)


def done(source: Source, node: ast.Expr | ast.Delete) -> Iterator[Edit]:
    """Leave out a call made for its effect, or a deletion."""
    value = node.value if isinstance(node, ast.Expr) else None
    if isinstance(value, ast.Await):
        value = value.value
    if isinstance(node, ast.Delete) or isinstance(value, ast.Call):
        yield Edit("statement dropped", source.start(node), source.end(node), "pass")


def returned(source: Source, node: ast.Return, annotation: ast.expr | None) -> Iterator[Edit]:
    """Return nothing of the annotated type, or the opposite truth value."""
    value = node.value
    if value is None or (isinstance(value, ast.Constant) and isinstance(value.value, bool | None)):
        return
    outer = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    name = outer.id if isinstance(outer, ast.Name) else ""
    text = f"not {source.operand(value)}" if name == "bool" else _NOTHING.get(name, "None")
    if text != source.segment(value):
        yield Edit("return", source.start(value), source.end(value), text)


def _between(
    source: Source, before: ast.expr, after: ast.expr, word: str, operator: str, becomes: str
) -> Iterator[Edit]:
    """Yield the edit of the operator between two operands, beside which only parentheses and blanks may stand."""
    start = source.end(before)
    found = re.fullmatch(rf"([\s)]*){word}[\s(]*", source.between(start, source.start(after)))
    if found:
        at = start + len(found[1])
        length = len(found[0]) - len(found[1])
        token = re.match(word, found[0][len(found[1]) :])
        yield Edit(operator, at, at + (len(token[0]) if token else length), becomes)


def _binds(node: ast.expr) -> bool:
    """Return true if the expression assigns a name: without it, any test would fail by a NameError."""
    return any(isinstance(part, ast.NamedExpr) for part in ast.walk(node))


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


EDITS: dict[type[ast.AST], Callable[[Source, Any], Iterator[Edit]]] = {
    ast.Compare: compared, ast.BoolOp: combined, ast.UnaryOp: signed, ast.BinOp: calculated, ast.AugAssign: updated,
    ast.Constant: constant, ast.Call: called, ast.Slice: sliced, ast.If: decided, ast.IfExp: decided,
    ast.While: decided, ast.comprehension: filtered, ast.Break: left, ast.Continue: left, ast.Expr: done,
    ast.Delete: done
}  # fmt: skip
