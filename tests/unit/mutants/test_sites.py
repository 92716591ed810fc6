"""A place knows which lines and names tell what tests run it."""

import pytest

from tests.mutants.sites import Site, sites


def site(text: str, becomes: str) -> Site:
    """The place whose line becomes that."""
    [found] = [each for each in sites("f.py", text) if each.becomes == becomes]
    return found


def test_lines_of_a_statement() -> None:
    """Its own, and those from the beginning of its statement: a tracer may see only the first."""
    text = "def f(a):\n    if (\n        a\n        < 0\n    ):\n        return a + 1\n"
    assert site(text, "< 1").lines == (2, 3, 4)
    assert site(text, "return a - 1").lines == (6,)


@pytest.mark.parametrize(("text", "becomes", "names"), [
    ("A = 2\n", "A = 3", ("A",)),
    ("A: int = 2\n", "A: int = 3", ("A",)),
    ("class A:\n    b: int = 2\n", "b: int = 3", ("A", "b")),
    ("def f(a=2):\n    pass\n", "def f(a=3):", ("f",)),
    ("def f(*, a=2):\n    pass\n", "def f(*, a=3):", ("f",)),
    ("@click.option(default=2)\ndef f():\n    pass\n", "@click.option(default=3)", ("f",)),
    ("class A:\n    def f(self):\n        return 3\n", "return 4", ()),
    ("A = lambda a: a + 3\n", "A = lambda a: a + 4", ()),
])  # fmt: skip
def test_names_outside_of_functions(text: str, becomes: str, names: tuple[str, ...]) -> None:
    """Those that the line defines, as imports run it, and tests use what it defines."""
    assert site(text, becomes).names == names


def test_mutants_that_read_the_same() -> None:
    """Are numbered, so that each has its place in a sample."""
    assert [each.nth for each in sites("f.py", "def f(a):\n    a.clear()\n    a.clear()\n")] == [1, 2]
