"""Host names of pods in rank order; they are generated on access, because a gang may have thousands of pods."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload


@dataclass(frozen=True)
class NumberedNames(Sequence[str]):
    """The names `<prefix><number><suffix>`, for `size` numbers beginning with `start`."""

    prefix: str
    suffix: str
    size: int
    start: int = 0

    def __len__(self) -> int:
        return self.size

    @property
    def characters(self) -> int:
        """The total length of all names, computed without generating the names."""
        end = self.start + self.size
        digits, low, length = 0, 0, 1
        while low < end:
            high = 10**length
            digits += length * max(0, min(end, high) - max(self.start, low))
            low, length = high, length + 1
        return self.size * (len(self.prefix) + len(self.suffix)) + digits

    @overload
    def __getitem__(self, rank: int) -> str: ...
    @overload
    def __getitem__(self, rank: slice) -> list[str]: ...
    def __getitem__(self, rank: int | slice) -> str | list[str]:
        numbers = range(self.start, self.start + self.size)[rank]
        if isinstance(numbers, int):
            return f"{self.prefix}{numbers}{self.suffix}"
        return [f"{self.prefix}{number}{self.suffix}" for number in numbers]


@dataclass(frozen=True)
class Joined(Sequence[str]):
    """Several sequences of host names, one after another."""

    parts: tuple["Endpoints", ...]

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    @overload
    def __getitem__(self, rank: int) -> str: ...
    @overload
    def __getitem__(self, rank: slice) -> list[str]: ...
    def __getitem__(self, rank: int | slice) -> str | list[str]:
        places = range(len(self))[rank]
        return self._at(places) if isinstance(places, int) else [self._at(place) for place in places]

    def _at(self, place: int) -> str:
        for part in self.parts:
            if place < len(part):
                return part[place]
            place -= len(part)
        raise IndexError(place)


Endpoints = NumberedNames | Joined | tuple[str, ...]
"""A sequence of host names; two sequences are equal if they have the same parameters."""
