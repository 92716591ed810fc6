"""Times as people and programs read them: `<time datetime>` takes the one, its text is the other. Pure."""

from datetime import UTC, datetime

from msgspec import Struct

from gangs.words import short
from muster.api.kubernetes.meta import format_time, readable_time


class Moment(Struct, frozen=True):
    """One moment."""

    at: str
    """RFC 3339."""
    day: str
    """Date and time of day, UTC, to the minute."""
    away: str
    """Its distance from now: `5m ago`, `in 2h`, `now`."""


def moment(timestamp: str | float | None, now: float) -> Moment | None:
    """Return a moment of RFC 3339 text or Unix seconds; None for one that is not known or cannot be read."""
    try:
        seconds = readable_time(timestamp) if isinstance(timestamp, str) else timestamp
        if not seconds:
            return None
        there = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return Moment(format_time(seconds), f"{there:%Y-%m-%d %H:%M} UTC", _away(seconds - now))


def _away(seconds: float) -> str:
    if abs(seconds) < 1:
        return "now"
    return f"in {short(seconds)}" if seconds > 0 else f"{short(-seconds)} ago"
