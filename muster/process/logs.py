"""Structured logs: one JSON object per line on stderr, also for libraries that use `logging`."""

import faulthandler
import logging
import os
import sys
from typing import Any

import msgspec
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger


def configure(process: str, level: str = "info") -> None:
    """Set up logging for this process; every line names it. `MUSTER_LOG=console` gives lines for people instead.

    Call it once, before anything logs. A crash in native code leaves the stacks of Python on stderr, too.
    """
    faulthandler.enable()
    number = logging.getLevelNamesMapping()[level.upper()]
    shared = _shared(process)
    people = os.environ.get("MUSTER_LOG") == "console"
    lines = structlog.dev.ConsoleRenderer() if people else structlog.processors.JSONRenderer(serializer=_encode)
    end: list[Processor] = [structlog.processors.format_exc_info, lines]
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
    """Encode a line as JSON, other values as Python shows them: a log line must never fail."""
    return msgspec.json.encode(event, enc_hook=repr).decode()
