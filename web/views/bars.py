"""Amounts of one resource as a bar: lengths in thousandths of its width, and the same in words. Pure.

A bar is never the only one to say something: its words stand beside it, and each mark has a shape of its own, so that
nobody needs its colour.
"""

from collections.abc import Mapping

from msgspec import Struct

from muster.resources.vector import amount_words

WHOLE = 1000
"""Thousandths of the width of a bar."""


class Mark(Struct, frozen=True):
    """A line across the bar."""

    name: str
    at: int
    """Thousandths."""
    words: str


class Bar(Struct, frozen=True):
    """One resource: what is used, and the marks beside it."""

    resource: str
    used: int
    """Thousandths."""
    used_words: str
    part: int
    """Thousandths of a part of what is used, that has a pattern of its own: spares, or what is fragmented."""
    marks: list[Mark]
    label: str
    """All of it in a sentence, for who does not see the bar."""


def bar(resource: str, used: int, marks: Mapping[str, int | None], *, part: int = 0) -> Bar:
    """Return a bar as long as its largest amount; marks that are not set are left out."""
    there = {name: amount for name, amount in marks.items() if amount is not None}
    longest = max(used, *there.values(), 1)
    drawn = [Mark(name, _length(amount, longest), amount_words(resource, amount)) for name, amount in there.items()]
    words = amount_words(resource, used)
    told = "".join(f", {mark.name} {mark.words}" for mark in drawn)
    return Bar(
        resource,
        _length(used, longest),
        words,
        _length(min(part, used), longest),
        drawn,
        f"{resource}: used {words}{told}",
    )


def _length(amount: int, longest: int) -> int:
    return min(WHOLE, max(0, amount * WHOLE // longest))
