"""Each operator makes the mutants that it is named after, and no others."""

import ast

import pytest

from tests.mutants.sampling import is_valid
from tests.mutants.sites import sites

BODY = "def f(a, b, c):\n    {}\n"


def made(line: str, operator: str, before: str = BODY) -> list[str]:
    """What the line becomes by the operator."""
    text = before.format(line)
    return [site.becomes for site in sites("f.py", text) if site.edit.operator == operator and is_valid(site, text)]


@pytest.mark.parametrize(("operator", "line", "becomes"), [
    ("boundary", "return a < b", ["return a <= b"]),
    ("boundary", "return a >= b", ["return a > b"]),
    ("comparison", "return a < b <= c", ["return a >= b <= c", "return a < b > c"]),
    ("comparison", "return a is  not b", ["return a is b"]),
    ("comparison", "return (a) not in (b)", ["return (a) in (b)"]),
    ("comparison", "return a == b", ["return a != b"]),
    ("and/or", "return a and b or c", ["return ((a and b) and c)", "return (a or b) or c"]),
    ("operand dropped", "return a and (b or c)", ["return ((b or c))", "return (a)", "return a and ((c))",
        "return a and ((b))"]),
    ("not dropped", "return not a", ["return (a)"]),
    ("sign", "return -a", ["return (a)"]),
    ("arithmetic", "return a + b - c", ["return a + b + c", "return a - b - c"]),
    ("arithmetic", "return a // b", ["return a * b"]),
    ("arithmetic", "a |= b", ["a &= b"]),
    ("number", "return a + 2", ["return a + 3", "return a + 1"]),
    ("number", "return a * 0", ["return a * 1", "return a * (-1)"]),
    ("number", "return a * 0.5", ["return a * 1.5"]),
    ("true/false", "return g(True)", ["return g(False)"]),
    ("keyword dropped", "return g(a, b=b, c=c)", ["return g(a, c=c)", "return g(a, b=b, )"]),
    ("min/max, any/all", "return min(a, b)", ["return max(a, b)"]),
    ("slice", "return a[b:c]", ["return a[b + 1:c]", "return a[b:c - 1]"]),
    ("slice", "return a[:]", ["return a[1:]", "return a[:-1]"]),
    ("condition", "return a if b else c", ["return a if True else c", "return a if False else c"]),
    ("condition", "return [a for a in b if a]", ["return [a for a in b if True]"]),
    ("condition", "if a: g()", ["if True: g()", "if False: g()"]),
    ("condition", "while a: g()", ["while False: g()"]),
    ("break/continue", "while a: break", ["while a: continue"]),
    ("statement dropped", "a.clear()", ["pass"]),
    ("statement dropped", "del a[b]", ["pass"]),
])  # fmt: skip
def test_an_operator(operator: str, line: str, becomes: list[str]) -> None:
    """In the order of the syntax tree, without those that are no programs."""
    assert made(line, operator) == becomes


@pytest.mark.parametrize(("annotation", "becomes"), [
    ("bool", "return not (a or b)"),
    ("list[int]", "return []"),
    ("str", 'return ""'),
    ("int", "return 0"),
    ("int | None", "return None"),
    ("Thing", "return None"),
])  # fmt: skip
def test_nothing_is_returned(annotation: str, becomes: str) -> None:
    """Of the annotated type."""
    assert made("return a or b", "return", f"def f(a, b) -> {annotation}:\n    {{}}\n") == [becomes]


@pytest.mark.parametrize("text", [
    "def f(a: Literal[1] = None) -> Literal[2]:\n    pass\n", "@dataclass(frozen=True)\nclass A:\n    pass\n",
    "class A(Struct, frozen=True):\n    pass\n", "@lru_cache(maxsize=8)\ndef f():\n    pass\n",
    "if TYPE_CHECKING:\n    A = 1\n", "if __name__ == '__main__':\n    main(1)\n", "__all__ = [1]\n", "SHARE = 96\n",
    "BYTES: int = 16 * 2**20\n", "A = zip(B, strict=True)\n", 'def f():\n    log.warning("x", count=1)\n',
    'def f(a):\n    return None\n    raise KeyError(f"{a + 1}")\n', '"""A module."""\n',
])  # fmt: skip
def test_no_behaviour_follows(text: str) -> None:
    """From annotations, from how classes are stored, from what type checkers read, from logs and from text."""
    assert sites("f.py", text) == []


def test_a_name_that_is_bound_stays() -> None:
    """Without the condition that binds it, any test would fail by a NameError."""
    assert made("return b if (b := a) else c", "condition") == []
    assert made("return a and (b := c)", "operand dropped") == ["return ((b := c))"]


def test_text_beyond_ascii() -> None:
    """Positions of the tree count bytes."""
    assert made('return "→→" if a < b else c', "boundary") == ['return "→→" if a <= b else c']


def test_an_edit_over_lines() -> None:
    """Shows all of its lines, as one."""
    text = "def f(a, b):\n    return g(\n        a\n        and b\n    )\n"
    [site] = [each for each in sites("f.py", text) if each.edit.operator == "and/or"]
    assert (site.line, site.text, site.becomes) == (3, "a and b", "(a or b)")
    assert ast.parse(text.replace("a\n        and b", "(a or b)"))
