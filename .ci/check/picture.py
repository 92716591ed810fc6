"""Draws the terminal picture of the README: `muster demo | python picture.py FILE.svg` (`make picture`).

The picture shows the submission, a table in which one gang waits while the others run, and the demo's check marks.
"""

import io
import re
import sys
from pathlib import Path

from rich.console import Console  # noqa: TID251 - a recording, which no terminal shows
from rich.text import Text

WIDTH = 130
FOREIGN = re.compile(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", re.DOTALL)
"""Fonts that rich's SVG loads from another host, and comments; the viewer's monospace font is used instead."""


def main() -> None:
    """Read the demo's output, and write the SVG."""
    lines = sys.stdin.read().splitlines()
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    console.print(Text("\n".join(line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…" for line in chosen(lines))))
    picture = FOREIGN.sub("", console.export_svg(title="make demo", unique_id="demo"))
    Path(sys.argv[1]).write_text(re.sub(r"[ \t]+$", "", picture, flags=re.MULTILINE), encoding="utf-8")


def chosen(lines: list[str]) -> list[str]:
    """Return the lines of the picture; ValueError if the demo has not shown all of its steps."""
    tables = "\n".join(lines).split("\n\n")
    waiting = [each for each in tables if " Running " in each and " Waiting " in each and "no room" in each]
    table = max(waiting, key=lambda each: each.count(" Running "), default=None)
    ticks = [line for line in lines if line.startswith("✓")]
    if table is None or not ticks:
        raise ValueError("the demo shows no gang that waits while another runs, or no check marks")
    submitted = [line for line in lines if line.startswith(("$ ", "job."))]
    return [*submitted, "", *table.splitlines()[-4:], "", *ticks]


if __name__ == "__main__":
    main()
