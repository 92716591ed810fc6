"""Short texts for lists: a reason in ten words, names of nodes, ranks, and time spans. Pure."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from muster.api.grammar import many

MOST_WORDS = 10
"""Maximum number of words of a reason in a list; `muster ps -l` shows the whole reason."""
_LEAST_WORDS = 3
"""Minimum number of words in a useful clause; `worker:` alone, for example, explains nothing."""
_MOST_CHARS = 80
_NODES_CHARS = 40
_RANKS = 6
"""Maximum number of ranges of ranks in one table cell."""
_UNITS = (("d", 86400, 2 * 86400), ("h", 3600, 3 * 3600), ("m", 60, 120), ("s", 1, 0))
_CLAUSE = re.compile(r"(?<=[;:]) ")
_NUMBERED = re.compile(r"(?P<stem>.*?)(?P<number>[0-9]+)")


def plain(text: str) -> str:
    """Return a text on one line, without terminal control characters."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def brief(text: str) -> str:
    """Return the beginning of a reason, for a list.

    The result has as many complete clauses as fit into ten words. If not even one clause fits, the result has ten words
    and an ellipsis.
    """
    line = plain(text)
    words = line.split()
    if len(words) <= MOST_WORDS and len(line) <= _MOST_CHARS:
        return line
    kept = ""
    for clause in _CLAUSE.split(line):
        longer = f"{kept} {clause}".strip()
        if len(longer.split()) > MOST_WORDS or len(longer) > _MOST_CHARS:
            break
        kept = longer
    if len(kept.split()) >= _LEAST_WORDS:
        return kept.rstrip(";:")
    return f"{' '.join(words[:MOST_WORDS])[: _MOST_CHARS - 1].rstrip(';:, ')}…"


def ranges(names: Iterable[str]) -> list[str]:
    """Return names that differ only in a number as one text, such as `node-[0000-0003,0007]`."""
    numbers: dict[tuple[str, int], list[int]] = defaultdict(list)
    plain = []
    for name in sorted(set(names), key=_natural):
        if found := _NUMBERED.fullmatch(name):
            numbers[found["stem"], len(found["number"])].append(int(found["number"]))
        else:
            plain.append(name)
    return [*(_range(stem, width, each) for (stem, width), each in numbers.items()), *plain]


def nodes_text(names: Iterable[str], most: int = _NODES_CHARS) -> str:
    """Return the node names that fit into `most` characters, and the number of the other nodes; `-` for no nodes."""
    there = sorted(set(names), key=_natural)
    text = ",".join(ranges(there))
    if len(text) <= most:
        return text or "-"
    first = there[0][: most - 1] + "…" if len(there[0]) > most else there[0]
    return f"{first} and {len(there) - 1} more" if len(there) > 1 else first


def ranks_text(ranks: Mapping[str, Sequence[int]]) -> str:
    """Return the ranks of each pod set as text, such as `worker 0-7, 9; launcher 0`."""
    return "; ".join(f"{pod_set} {_ranks(numbers)}" for pod_set, numbers in ranks.items())


def short(seconds: float) -> str:
    """Return a time span as text in the largest unit that is precise enough, such as 90s, 12m, 5h or 3d."""
    whole_s = max(0, int(seconds))
    return next(f"{whole_s // size}{unit}" for unit, size, least in _UNITS if whole_s >= least)


def duration(seconds: float) -> str:
    """Return a time span as text in its two largest units, such as `45s`, `3m20s`, `2h05m` or `3d04h`."""
    whole_s = round(seconds)
    for (unit, size, _), (below, part, _) in pairwise(_UNITS):
        if whole_s >= size:
            return f"{whole_s // size}{unit}{whole_s % size // part:02}{below}"
    return f"{whole_s}s"


def _natural(name: str) -> tuple[str, int, int, str]:
    found = _NUMBERED.fullmatch(name)
    return (found["stem"], len(found["number"]), int(found["number"]), name) if found else (name, 0, 0, name)


def _range(stem: str, width: int, numbers: Sequence[int]) -> str:
    parts = [f"{low:0{width}}" if low == high else f"{low:0{width}}-{high:0{width}}" for low, high in _runs(numbers)]
    return f"{stem}{parts[0]}" if len(parts) == 1 and "-" not in parts[0] else f"{stem}[{','.join(parts)}]"


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and last number of each range of consecutive numbers."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        first = runs.pop()[0] if runs and runs[-1][1] + 1 == number else number
        runs.append((first, number))
    return runs


def _ranks(ranks: Sequence[int]) -> str:
    words = [str(first) if first == last else f"{first}-{last}" for first, last in _runs(ranks)]
    more = len(words) - _RANKS
    return ", ".join(words[:_RANKS]) + (f" and {many(more, 'more run')}" if more > 0 else "")
