"""No code reads a sentence: what it has to know of a reason is in the reason's code and parameters."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import extender

ROOT = Path(extender.__file__).parent.parent
PACKAGES = ("extender", "gangs", "web", "history", "controller", "musterctl")
SENTENCES = frozenset({"message", "why_waiting", "victims_reason", "summary", "sentence", "words", "why"})
"""Attributes that have a sentence, or a reason."""
READS = frozenset({
    "startswith", "endswith", "partition", "rpartition", "removeprefix", "removesuffix", "split", "rsplit", "replace",
    "find", "index", "count", "match", "fullmatch", "search", "sub", "findall",
})  # fmt: skip
RENDERING = ("extender/planner/reasons/",)
OF_OTHERS = frozenset({
    ("extender/planner/state/pods.py", "scheduled.message"),  # the mark of Muster's own writes in pods
    ("gangs/plainjobs.py", "each.message"),  # Events of kube-controller-manager about pods that it cannot create
})  # fmt: skip
"""What is no reason of Muster's."""


def read_in(text: str) -> Iterator[str]:
    """The sentences that a module takes apart, or looks into; errors of the API server are no reasons."""
    for node in ast.walk(ast.parse(text)):
        found: list[ast.expr] = []
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr=attr), args=args) if attr in READS:
                found = [value, *args]
            case ast.Compare(ops=ops, comparators=others) if any(isinstance(op, ast.In | ast.NotIn) for op in ops):
                found = others
            case ast.Compare(left=left, comparators=[ast.Constant(value=str(constant))]) if constant:
                found = [left]
        for each in found:
            if isinstance(each, ast.Attribute) and each.attr in SENTENCES and ast.unparse(each) != "error.message":
                yield ast.unparse(each)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_sentence_is_read(package: str) -> None:
    """Outside the package that makes them."""
    paths = [path.relative_to(ROOT) for path in (ROOT / package).rglob("*.py")]
    assert paths
    outside = [path for path in paths if not str(path).startswith(RENDERING)]
    found = {(str(path), expression) for path in outside for expression in read_in((ROOT / path).read_text())}
    assert found - OF_OTHERS == set()


@pytest.mark.parametrize("line", [
    "if 'empty cluster' in group.why_waiting: pass", "what.summary.removeprefix('it waits: ')",
    "PATTERN.sub('x', report.message)", "cause.words == 'cordoned'",
    "placement.spec.victims_reason.startswith(REPAIRS)",
])  # fmt: skip
def test_what_reads_a_sentence_is_found(line: str) -> None:
    """Lines like those that there were."""
    assert list(read_in(line))
