"""What a process tells about itself to who looks for a fault: /debug of its status port, on loopback only.

Stacks name files, lines and functions, never values; options are those of the command line and of the settings
file, which name files with keys and have none in them.
"""

import asyncio
import platform
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from typing import Any, Final

import msgspec

from muster.kube.loop import background_loop

THREADS: Final = "/debug/threads"
TASKS: Final = "/debug/tasks"
PAGES: Final = ("/debug", THREADS, TASKS)


class Debug:
    """The pages of one process. `options` is what it runs with; `sizes` counts what it holds, by name.

    `loop` gives the event loop whose tasks are shown; without it, that on which its API client waits.
    """

    def __init__(
        self,
        process: str,
        options: object,
        sizes: Callable[[], Mapping[str, int]],
        loop: Callable[[], asyncio.AbstractEventLoop] = background_loop,
    ) -> None:
        self._process = process
        self._options = options
        self._sizes = sizes
        self._loop = loop
        self._began_s = time.monotonic()

    def page(self, path: str) -> tuple[str, bytes] | None:
        """The content type and body of a page; None if there is none of that path."""
        if path == "/debug":
            return "application/json", msgspec.json.format(msgspec.json.encode(self.summary(), enc_hook=str)) + b"\n"
        if path == TASKS:
            return "text/plain; charset=utf-8", waits(self._loop()).encode()
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
            "more": [THREADS, TASKS],
        }


def stacks() -> str:
    """Where each thread stands, the innermost call last."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    found = [
        f"{names.get(number, 'unknown')}\n{''.join(traceback.format_stack(frame))}"
        for number, frame in sys._current_frames().items()  # noqa: SLF001 - the documented way to all stacks
    ]
    return "\n".join(sorted(found))


def waits(loop: asyncio.AbstractEventLoop) -> str:
    """Where the tasks of an event loop wait, the innermost call last; those that wait at one place are counted."""
    counts = Counter("".join(_places(task.get_coro())) for task in asyncio.all_tasks(loop))
    return "\n".join(f"{count} tasks\n{place}" for place, count in counts.most_common())


def _places(awaited: Any) -> Iterator[str]:
    """From a coroutine to what it waits for in the end; other awaitables do not tell."""
    while (frame := getattr(awaited, "cr_frame", None)) is not None:
        yield f'  File "{frame.f_code.co_filename}", line {frame.f_lineno}, in {frame.f_code.co_name}\n'
        awaited = awaited.cr_await
