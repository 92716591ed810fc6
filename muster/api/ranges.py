"""Number ranges in texts, such as `0-2,5`, as Kubernetes writes a Job's indexes, and the order of numbered names."""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from muster.api.limits import whole_number

NaturalKey = tuple[tuple[int, int | str], ...]


def ranges(text: str) -> Iterator[tuple[int, int]]:
    """Yield the first and last number of each range; parts that are not a range are skipped."""
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        low, high = whole_number(first), whole_number(last or first)
        if low is not None and high is not None and low <= high:
            yield low, high


def numbers(text: str, below: int) -> Iterator[int]:
    """Yield each number below `below` in ascending ranges, but only once, so that no text yields too many numbers."""
    following = 0
    for low, high in ranges(text):
        yield from range(max(low, following), min(high + 1, below))
        following = max(following, high + 1)


def as_ranges(found: Iterable[int]) -> str:
    """Return a text of ranges that contains these numbers."""
    runs = (
        [number for _, number in run] for _, run in groupby(enumerate(sorted(found)), lambda pair: pair[1] - pair[0])
    )
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def natural(name: str) -> NaturalKey:
    """Return a sort key for names that puts node-2 before node-10."""
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", name) if part)
