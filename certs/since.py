"""The time for which something has been so without a break, as one process has seen it."""

from collections.abc import Iterable


class Since:
    """Remembers since when each of some things is there; times are those of one monotonic clock, in seconds."""

    def __init__(self) -> None:
        self._first_s: dict[str, float] = {}

    def update(self, present: Iterable[str], now_s: float) -> dict[str, float]:
        """Takes in what is there now; gives for how many seconds each has been. What was missing begins anew."""
        self._first_s = {each: self._first_s.get(each, now_s) for each in present}
        return {each: now_s - first_s for each, first_s in self._first_s.items()}
