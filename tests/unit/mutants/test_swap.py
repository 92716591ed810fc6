"""Loaded functions get the code of a mutant."""

from types import FunctionType
from typing import Any

import pytest

from tests.mutants import swap

TEXT = """
def wrapped(function):
    def inner(a):
        return function(a) + 1
    return inner

@wrapped
def plain(a):
    return a * 2

class A:
    @property
    def value(self):
        return [n * 3 for n in range(3)]

def free(a):
    b = a
    def inner():
        return a - b
    return inner

inner = free(1)
"""


def loaded(after: str) -> tuple[dict[str, Any], bool]:
    """The module, loaded from TEXT and then changed; True if the whole change was possible."""
    module: dict[str, Any] = {}
    exec(compile(TEXT, "loaded.py", "exec"), module)  # noqa: S102 - our own text
    functions = [each for each in swap.functions()["loaded.py"] if each.__globals__ is module]
    changed = swap.compared(TEXT, after, "loaded.py")
    return module, changed.is_complete and swap.apply(changed, functions)


@pytest.mark.parametrize(("before", "after", "plain", "value"), [
    ("a * 2", "a * 3", 7, [0, 3, 6]),
    ("function(a) + 1", "function(a) - 1", 3, [0, 3, 6]),
    ("n * 3", "n * 4", 5, [0, 4, 8]),
    ("a * 2", "a *\\\n 2", 5, [0, 3, 6]),
])  # fmt: skip
def test_loaded_functions_change(before: str, after: str, plain: int, value: list[int]) -> None:
    """Those within decorators and properties too, and each as often as it is loaded."""
    module, is_changed = loaded(TEXT.replace(before, after))
    assert is_changed
    assert module["plain"](2) == plain
    assert module["A"]().value == value


@pytest.mark.parametrize(
    ("before", "after"), [("return a - b", "return a"), ("[n * 3 for n in range(3)]", "None"), ("return inner", "pass")]
)
def test_another_shape_is_told(before: str, after: str) -> None:
    """Where functions have other free variables, or come and go: that needs a new start."""
    module, is_changed = loaded(TEXT.replace(before, after, 1))
    assert isinstance(module["inner"], FunctionType)
    assert is_changed == (before == "return inner")
