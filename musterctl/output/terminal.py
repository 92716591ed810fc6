"""Standard output and error of all commands, which show control characters in tenants' text as escapes.

Names, reasons, logs and errors may contain sequences that set a title, clear the screen or fill the clipboard.
`guarded` wraps both streams, so that no command can bypass it; only a `Console` of this module can print styles.
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
    """A wrapper of a stream that escapes control characters like JSON; all other attributes are the stream's."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream
        """The stream to which the console writes; rich defines this name."""

    def write(self, text: str) -> int:
        """Write a text."""
        self.rich_proxied_file.write(harmless(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Return the wrapped stream's attribute with this name."""
        return getattr(self.rich_proxied_file, name)


@contextmanager
def guarded() -> Iterator[None]:
    """Within the `with` block, wrap standard output and error, and escape the traceback of an uncaught error."""
    show_all_uncaught()
    out, err = (cast("TextIO", GuardedStream(stream)) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(out), redirect_stderr(err):
        yield


class Console(RichConsole):
    """A rich console that passes its styles to the terminal, but not the control characters of the printed text."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of a renderable object, in which control characters are escaped."""
        for each in super().render(renderable, options):
            yield each if each.control else Segment(harmless(each.text), each.style)
