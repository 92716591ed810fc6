"""Structured logs: one JSON object per line on stderr, including the logs of libraries that use `logging`.

Log lines may contain texts of tenants and are read on terminals, so control characters are escaped.
"""

import faulthandler
import logging
import os
import re
import sys
import threading
import traceback
from types import TracebackType
from typing import Any

import msgspec
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]|\r(?!\n)")
"""Characters that a terminal interprets, except tabs and line ends."""


def harmless(text: str) -> str:
    """Return a text whose control characters are escaped as in JSON, so that a terminal does not interpret them.

    Colours are removed. A carriage return, by which progress bars rewrite a line, is replaced by a line end. JSON texts
    stay valid, because control characters outside of JSON strings are not replaced.
    """
    if text.isprintable():
        return text
    return _CONTROL.sub(lambda found: "\n" if found[0] == "\r" else f"\\u{ord(found[0]):04x}", _COLOUR.sub("", text))


def show_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Write a traceback as Python does, but escape control characters, because a message may quote text of a tenant."""
    sys.stderr.write(harmless("".join(traceback.format_exception(kind, error, trace))))


def show_all_uncaught() -> None:
    """Write the uncaught errors of all threads with `show_uncaught`."""
    sys.excepthook = show_uncaught
    if threading.excepthook is threading.__excepthook__:  # a test runner has its own hook, which fails the test
        threading.excepthook = _show_uncaught_in_thread


def _show_uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_type is not SystemExit:  # as in Python's own hook
        show_uncaught(args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback)


def configure(process: str, level: str = "info") -> None:
    """Configure logging for this process, whose name is in every line.

    With `MUSTER_LOG=console`, lines are formatted for people instead. Call the function once, before anything is
    logged. After a crash in native code, the Python stacks are also printed on stderr.
    """
    faulthandler.enable()
    show_all_uncaught()
    number = logging.getLevelNamesMapping()[level.upper()]
    shared = _shared(process)
    people = os.environ.get("MUSTER_LOG") == "console"
    values: list[Processor] = [_harmless_values] if people else []
    lines = structlog.dev.ConsoleRenderer() if people else structlog.processors.JSONRenderer(serializer=_encode)
    end: list[Processor] = [structlog.processors.format_exc_info, *values, lines]
    structlog.configure(
        processors=[*shared, *end],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *end]
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(number)


def _shared(process: str) -> list[Processor]:
    def name(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        event["process"] = process
        return event

    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        name,
    ]


def _encode(event: EventDict, **_: Any) -> str:
    """Encode a log line as JSON.

    Values that are not JSON-serializable are written as their repr, because logging must never fail.
    """
    return harmless(msgspec.json.encode(event, enc_hook=repr).decode())


def _harmless_values(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Return a log event with values that are safe on a terminal; values other than strings become their repr."""
    return {key: harmless(value) if isinstance(value, str) else value for key, value in event.items()}
