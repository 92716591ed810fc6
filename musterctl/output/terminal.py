"""Standard output and error of all commands: what tenants have written shows there, and controls no terminal.

Names, reasons, logs and errors may hold sequences that set a title, clear the screen or fill the clipboard. `guarded`
stands before both streams, so that no command prints past it; styles come from a `Console` of this module only.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO, cast

from rich.console import Console as RichConsole  # noqa: TID251 - this one
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from muster.process.logs import harmless, show_all_uncaught


class GuardedStream:
    """A stream that shows control characters as JSON writes them; all else is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream
        """Where a console of rich writes, by rich's own name for it."""

    def write(self, text: str) -> int:
        """Write a text."""
        self.rich_proxied_file.write(harmless(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Return what the stream has of this name."""
        return getattr(self.rich_proxied_file, name)


@contextmanager
def guarded() -> Iterator[None]:
    """Guard standard output and error meanwhile, and what Python writes of an error after it."""
    show_all_uncaught()
    out, err = (cast("TextIO", GuardedStream(stream)) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(out), redirect_stderr(err):
        yield


class Console(RichConsole):
    """A console of rich whose own styles reach the terminal, and no control character of what it prints."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of something."""
        for each in super().render(renderable, options):
            yield each if each.control else Segment(harmless(each.text), each.style)
