"""What a process tells about itself to who looks for a fault: /debug of its status port, on loopback only.

Stacks name files, lines and functions, never values; options are those of the command line and of the settings
file, which name files with keys and have none in them.
"""

import platform
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, Final

import msgspec

THREADS: Final = "/debug/threads"
PAGES: Final = ("/debug", THREADS)


class Debug:
    """The pages of one process. `options` is what it runs with; `sizes` counts what it holds, by name."""

    def __init__(self, process: str, options: object, sizes: Callable[[], Mapping[str, int]]) -> None:
        self._process = process
        self._options = options
        self._sizes = sizes
        self._began_s = time.monotonic()

    def page(self, path: str) -> tuple[str, bytes] | None:
        """The content type and body of a page; None if there is none of that path."""
        if path == "/debug":
            return "application/json", msgspec.json.format(msgspec.json.encode(self.summary(), enc_hook=str)) + b"\n"
        return ("text/plain; charset=utf-8", stacks().encode()) if path == THREADS else None

    def summary(self) -> dict[str, Any]:
        """Version, options with the settings, and sizes; times are in seconds."""
        return {
            "process": self._process,
            "version": version("muster"),
            "python": platform.python_version(),
            "upSeconds": round(time.monotonic() - self._began_s),
            "threads": threading.active_count(),
            "options": self._options,
            "sizes": dict(self._sizes()),
            "more": [THREADS],
        }


def stacks() -> str:
    """Where each thread stands, the innermost call last."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    found = [
        f"{names.get(number, 'unknown')}\n{''.join(traceback.format_stack(frame))}"
        for number, frame in sys._current_frames().items()  # noqa: SLF001 - the documented way to all stacks
    ]
    return "\n".join(sorted(found))
