"""Text of a module by the positions of its syntax tree."""

import ast
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.List, ast.Dict, ast.Set, ast.JoinedStr)


@dataclass(frozen=True)
class Edit:
    """A change of one place: bytes `start` to `end` become `text`."""

    operator: str
    start: int
    end: int
    text: str


class Source:
    """A module's text, in UTF-8 as positions of `ast` count it, and its tree."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.data = text.encode()
        self.tree = ast.parse(text)

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for line in self.data.split(b"\n"):
            starts.append(starts[-1] + len(line) + 1)
        return starts

    def start(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        """Return the offset of the node's first byte."""
        return self._starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        """Return the offset after the node's last byte."""
        if node.end_lineno is None or node.end_col_offset is None:
            raise ValueError(f"line {node.lineno}: {ast.dump(node)} has no end")
        return self._starts[node.end_lineno - 1] + node.end_col_offset

    def segment(self, node: ast.expr | ast.stmt | ast.keyword) -> str:
        """Return the node's text, without parentheses around it."""
        return self.between(self.start(node), self.end(node))

    def between(self, start: int, end: int) -> str:
        """Return the text of bytes `start` to `end`."""
        return self.data[start:end].decode()

    def operand(self, node: ast.expr) -> str:
        """Return the node's text such that an operator can stand beside it."""
        text = self.segment(node)
        return text if isinstance(node, _ATOMS) else f"({text})"

    def line_of(self, offset: int) -> int:
        """Return the number of the line, from 1, in which the byte is."""
        return bisect_right(self._starts, offset)

    def lines(self, first: int, last: int) -> tuple[int, int]:
        """Return the offsets of the first byte of line `first`, and of that after the last of line `last`."""
        return self._starts[first - 1], self._starts[last] - 1

    def edited(self, edit: Edit) -> str:
        """Return the whole text with the edit applied."""
        return (self.data[: edit.start] + edit.text.encode() + self.data[edit.end :]).decode()


def squeeze(text: str) -> str:
    """Return the text with runs of white space as one blank, and none at its ends."""
    return " ".join(text.split())
