"""Many patterns compared with one name in one pass (RE2's sets), however many there are.

A set works through all its patterns at once, so that a thousand of them cost a name little more than one. It has a
fixed amount of memory; patterns that do not fit into one set are spread over several.
"""

from collections.abc import Sequence
from typing import Any, Final

import re2

from muster.api.patterns import options, steps_of

MOST_PATTERNS: Final = 256
MOST_STEPS: Final = 50_000
"""Of the patterns of one set; RE2's state for so many takes a few hundred KB, and it keeps many."""
_MEMORY_BYTES: Final = 64 << 20
"""At most, for one set; usual patterns take far less."""
_CANARY: Final = "\x00canary"
"""No node has such a name. A set that does not find it has too little memory, and would find nothing else either."""


class PatternSet:
    """Patterns that are known to be good, by their place in the list."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._sets: list[tuple[Any, list[int]]] = []
        self._single: list[tuple[Any, int]] = []
        """What not even a set of one has the memory for; by itself RE2 finds another way."""
        chunk: list[int] = []
        steps = 0
        for number, pattern in enumerate(patterns):
            more = steps_of(pattern)
            if chunk and (len(chunk) == MOST_PATTERNS or steps + more > MOST_STEPS):
                self._add(patterns, chunk)
                chunk, steps = [], 0
            chunk.append(number)
            steps += more
        if chunk:
            self._add(patterns, chunk)

    def found_in(self, name: str) -> list[int]:
        """Which of the patterns are found anywhere in the name."""
        text = name.encode(errors="replace")
        found = [
            numbers[place] for one, numbers in self._sets for place in one.Match(text) or () if place < len(numbers)
        ]
        return [*found, *(number for one, number in self._single if one.search(text))] if self._single else found

    def _add(self, patterns: Sequence[str], numbers: list[int]) -> None:
        one = re2.Set.SearchSet(options(_MEMORY_BYTES))
        for number in numbers:
            one.Add(patterns[number])
        canary = one.Add(re2.escape(_CANARY))
        try:
            one.Compile()
            works = canary in (one.Match(_CANARY) or ())
        except re2.error:
            works = False
        if works:
            self._sets.append((one, numbers))
        elif len(numbers) > 1:
            half = len(numbers) // 2
            self._add(patterns, numbers[:half])
            self._add(patterns, numbers[half:])
        else:
            self._single.append((re2.compile(patterns[numbers[0]], options(_MEMORY_BYTES)), numbers[0]))
