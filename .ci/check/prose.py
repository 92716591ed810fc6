"""Docstrings and messages of the product as Markdown, each on the lines of its source, for `make prose`.

Vale reads no strings of Python. It then reports `build/prose/<path>.md` with the line of `<path>.py`.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGES = ("certs", "controller", "extender", "gangs", "history", "muster", "musterctl", "web", "webhook")
"""The folders of the product."""

_FEW_WORDS = 3
"""A string with fewer lower-case words is not checked as a message: it is a name, a key or a heading."""


def page(source: str) -> str:
    """Return the docstrings and messages of a module, each on its line; a field of a message is an `X`."""
    tree = ast.parse(source)
    lines: dict[int, str] = {}
    documented = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            documented.add(id(node.value))
            for number, line in enumerate(node.value.value.splitlines(), node.value.lineno):
                lines[number] = line.strip() + "." * ("  " in line.strip())  # a row of a table
    for number, text in _messages(tree, documented):
        lines[number] = f"{lines.get(number, '')} {text}".strip()
    return "\n".join(lines.get(number, "") for number in range(1, max(lines, default=0) + 1)) + "\n"


def _messages(tree: ast.Module, documented: set[int]) -> Iterator[tuple[int, str]]:
    """Yield line and text of each string that is a sentence; semicolons part its advice. Whole pages are left out."""
    parts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts |= {id(value) for value in node.values}
            text = "".join(str(value.value) if isinstance(value, ast.Constant) else "X" for value in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented | parts:
            text = re.sub(r"{[^ {}]*}", "X", node.value)
        else:
            continue
        if len(re.findall(r"\b[a-z]+ ", text)) >= _FEW_WORDS and "\n\n" not in text:
            yield node.lineno, " ".join(re.sub(r";|\n", ". ", text).split()).strip("; .") + "."


def main(target: Path) -> None:
    """Write a page for each module of the product below `target`."""
    for path in (path for package in PACKAGES for path in Path(package).rglob("*.py")):
        written = target / path.with_suffix(".md")
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(page(path.read_text()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
