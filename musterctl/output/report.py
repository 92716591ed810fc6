"""Reports of `explain` and `simulate`: lines for users, in colour on a terminal, or JSON."""

from collections.abc import Iterable, Iterator
from textwrap import wrap
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.text import Text

from extender.explain.simulation import SimulatedGang
from extender.explain.text import Line

STYLES = {"title": "bold", "good": "green", "bad": "yellow", "plain": "", "hint": "cyan"}
LABEL_WIDTH = 15


def print_lines(lines: Iterable[Line]) -> None:
    """Print label and text in two columns; without colour and broken lines if the output is no terminal."""
    console = Console(highlight=False)
    for line in lines:
        inner = bool(line.label) or line.tone in {"plain", "hint"}
        indent = " " * LABEL_WIDTH if inner else ""
        width = max(20, console.width - len(indent)) if console.is_terminal else 0
        rows = wrap(line.text, width, break_long_words=False, break_on_hyphens=False) if width else [line.text]
        for number, row in enumerate(rows or [""]):
            label = f"{line.label:<{LABEL_WIDTH}}" if inner and not number else indent
            text = Text.assemble((label, "dim"), (row, STYLES[line.tone]))
            text.rstrip()
            console.print(text, soft_wrap=True)


def print_json(report: Any) -> None:
    """Print a report as indented JSON, for programs: the same facts as the lines, under stable names."""
    click.echo(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())


def simulated_lines(gangs_after: list[SimulatedGang], ignored: list[str]) -> Iterator[Line]:
    """Yield the lines of a simulation: nodes or reason of each gang, then the objects that were left out."""
    if not gangs_after:
        yield Line("", "no gang waits")
    for outcome in gangs_after:
        who = outcome.workload + (" (submitted)" if outcome.submitted else "")
        if outcome.placed:
            pods = "1 pod" if outcome.slots == 1 else f"{outcome.slots} pods"
            yield Line("", f"{who} would start: {pods}", "good")
            for nodes in outcome.nodes:
                yield Line("on", nodes)
        elif outcome.why:
            yield Line("", f"{who} would wait", "bad")
            yield Line("why", outcome.why.summary.removeprefix("it waits: "))
            queue = outcome.why.queue
            yield Line("queue", f"{queue.name}, place {queue.place} of {queue.waiting} in it")
    for what in ignored:
        yield Line("left out", f"{what}: there is nothing to place")
