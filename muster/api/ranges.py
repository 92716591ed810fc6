"""Conversion between numbers and the text of their ranges, `0-2,5`, as Kubernetes writes the indexes of a Job."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from muster.api.limits import whole_number


def ranges(text: str) -> Iterator[tuple[int, int]]:
    """Yield the first and last number of each range; parts that are not a range are skipped."""
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        low, high = whole_number(first), whole_number(last or first)
        if low is not None and high is not None and low <= high:
            yield low, high


def numbers(text: str, below: int) -> Iterator[int]:
    """Yield each number below `below` in ascending ranges once. A text therefore never yields too many numbers."""
    following = 0
    for low, high in ranges(text):
        yield from range(max(low, following), min(high + 1, below))
        following = max(following, high + 1)


def as_ranges(found: Iterable[int]) -> str:
    """Return these numbers as the text of their ranges."""
    runs = (
        [number for _, number in run] for _, run in groupby(enumerate(sorted(found)), lambda pair: pair[1] - pair[0])
    )
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
