"""Parts of the tests: which files each has. CI has time for one part of `make test-long`, and each commit names one."""

import re
from pathlib import Path
from typing import NamedTuple


class Part(NamedTuple):
    """The Kth of N parts, from 1 on."""

    which: int
    of: int

    @classmethod
    def read(cls, text: str) -> "Part":
        """K/N; ValueError for anything else."""
        found = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text)
        part = cls(*map(int, found.groups())) if found else None
        if part is None or part.which > part.of:
            message = f"{text!r} is no part: K/N, K from 1 to N"
            raise ValueError(message)
        return part

    def has(self, files: set[Path]) -> set[Path]:
        """Its files: the parts together have each file once, and their sizes differ by one at most."""
        return set(sorted(files)[self.which - 1 :: self.of])
