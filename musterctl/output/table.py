"""Tables of the command line, drawn by rich without borders; each column is as wide as its widest cell.

Lines are never wrapped or cut. If the terminal is too narrow, `PrintedTable` prints the last columns below each row.
"""

from collections.abc import Callable, Collection, Sequence
from itertools import accumulate
from typing import Any

import click
from rich.cells import cell_len
from rich.table import Table as Grid
from rich.text import Text

from muster.process.logs import harmless
from musterctl.output.terminal import Console

_GAP = 2
_COLUMN_GAP = 3
_WIDE = 1_000_000
"""Width of a console on which every line fits without a break."""


def console() -> Console:
    """Return a console for the output; it neither wraps nor cuts lines if the output is not a terminal."""
    found = Console()
    return found if found.is_terminal else Console(width=_WIDE)


def drawn(
    rows: Sequence[Sequence[str]], *, right: Collection[int] = (), gap: int = _GAP, widths: Sequence[int] = ()
) -> list[str]:
    """Return the lines of a table; columns in `right` are right-aligned, `widths` are minimum widths.

    For rich, each column is a single cell with a line for each row, because separate cells take four times as long.
    """
    grid = Grid.grid(padding=(0, gap, 0, 0))
    columns = [[harmless(cell).replace("\n", " ") for cell in column] for column in zip(*rows, strict=True)]
    for place, _ in enumerate(columns):
        grid.add_column(
            justify="right" if place in right else "left",
            min_width=widths[place] if widths else None,
            no_wrap=True,
            overflow="crop",
        )
    grid.add_row(*(Text("\n".join(column)) for column in columns))
    wide = Console(width=_WIDE, color_system=None)
    with wide.capture() as captured:
        wide.print(grid, crop=False)
    return [line.rstrip() for line in captured.get().splitlines()]


class PrintedTable:
    """A table that is printed in parts; later rows keep the column widths of earlier rows if the texts fit."""

    def __init__(self, titles: Sequence[str]) -> None:
        self._titles = list(titles)
        self._widths: list[int] = []
        self._beside = len(titles)
        """Number of columns that fit on the terminal; all further columns are printed below each row."""

    def show(self, rows: list[list[str]]) -> None:
        """Print rows, the first time with headings."""
        below = [*rows]
        if not self._widths:
            rows = [self._titles, *rows]
            below = [[""] * len(self._titles), *below]
            self._widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
            ends = accumulate(width + _COLUMN_GAP for width in self._widths)
            self._beside = max(1, sum(end - _COLUMN_GAP <= console().width for end in ends))
        kept = [row[: self._beside] for row in rows]
        for line, row in zip(drawn(kept, gap=_COLUMN_GAP, widths=self._widths[: self._beside]), below, strict=True):
            click.echo(line)
            for title, cell in [*zip(self._titles, row, strict=True)][self._beside :]:
                if cell not in {"", "-"}:
                    click.echo(f"    {title.lower()}: {cell}")


def show_rows(columns: Sequence[tuple[str, Callable[[Any], str]]], rows: Sequence[Any]) -> None:
    """Print a table with a row for each of `rows`; each column has a heading and a function that returns its cell."""
    PrintedTable([title for title, _ in columns]).show([[of(row) for _, of in columns] for row in rows])
