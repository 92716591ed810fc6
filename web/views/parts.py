"""Elements that several pages use: times, bars, and the pages of a long list. Pure.

A time has a form for programs (`<time datetime>`) and a text for users. The lengths in a bar are in thousandths of the
bar's width; a text next to the bar has the same information. Each mark in a bar has its own shape, so that colours are
not needed.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from msgspec import Struct

from gangs.words import short
from muster.api.kubernetes.meta import format_time, readable_time
from muster.resources.vector import amount_text

T = TypeVar("T")
WHOLE = 1000
"""The full width of a bar, in thousandths."""


class Moment(Struct, frozen=True):
    """One moment."""

    at: str
    """The time in the format of RFC 3339."""
    day: str
    """Date and time of day in UTC, to the minute."""
    away: str
    """The time relative to now, such as `5m ago`, `in 2h` or `now`."""


def moment(timestamp: str | float | None, now: float) -> Moment | None:
    """Return the moment for an RFC 3339 text or Unix seconds; None if the time is unknown or unreadable."""
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


class Mark(Struct, frozen=True):
    """A mark, drawn as a line across a bar."""

    name: str
    at: int
    """Position of the mark, in thousandths of the bar's width."""
    words: str


class Bar(Struct, frozen=True):
    """A bar for one resource: its usage, with marks at other amounts such as the quota."""

    resource: str
    used: int
    """Length of the part of the bar for the usage, in thousandths of the bar's width."""
    used_text: str
    part: int
    """Length of the part of the usage that has its own pattern (spare slots or fragmented capacity), in thousandths."""
    marks: list[Mark]
    label: str
    """Text with the whole content of the bar, for users who cannot see the bar."""


def bar(resource: str, used: int, marks: Mapping[str, int | None], *, part: int = 0) -> Bar:
    """Return a bar whose full width represents the largest amount; marks without an amount are left out."""
    there = {name: amount for name, amount in marks.items() if amount is not None}
    longest = max(used, *there.values(), 1)
    drawn = [Mark(name, _length(amount, longest), amount_text(resource, amount)) for name, amount in there.items()]
    words = amount_text(resource, used)
    marks_text = "".join(f", {mark.name} {mark.words}" for mark in drawn)
    return Bar(
        resource,
        _length(used, longest),
        words,
        _length(min(part, used), longest),
        drawn,
        f"{resource}: used {words}{marks_text}",
    )


def _length(amount: int, longest: int) -> int:
    return min(WHOLE, max(0, amount * WHOLE // longest))


class ListPart(Struct, frozen=True):
    """One page of a long list, with the addresses of the neighbouring pages."""

    first: int
    """Number of the page's first entry, from 1; 0 for an empty page."""
    shown: int
    all: int
    before: str
    """Address of the previous page; empty on the first page."""
    after: str


def part_of(items: Sequence[T], most: int, page: int, address: Callable[[int], str]) -> tuple[Sequence[T], ListPart]:
    """Return the entries of one page of a list, at most its last page; `address` returns the address of a page."""
    page = min(max(1, page), max(1, -(-len(items) // most)))
    end = page * most
    shown = items[end - most : end]
    before, after = address(page - 1) if page > 1 else "", address(page + 1) if end < len(items) else ""
    return shown, ListPart(end - most + 1 if shown else 0, len(shown), len(items), before, after)


def page_number(text: str) -> int:
    """Return the number of a page of a list, from 1; 1 for an invalid number."""
    return max(1, int(text)) if text.isascii() and text.isdecimal() and len(text) <= len("1000000") else 1
