"""How long to wait after a failure: longer each time, up to a limit, and never in step with others."""

from collections.abc import Callable


class Backoff:
    """Delays that double from `first_s` to `longest_s`, each shortened by up to a half at random."""

    def __init__(self, first_s: float, longest_s: float, random: Callable[[], float]) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._random = random
        self._delay_s = first_s

    def next(self) -> float:
        """Seconds to wait now; the next wait is longer."""
        delay_s = self._delay_s
        self._delay_s = min(delay_s * 2, self._longest_s)
        return delay_s * (1 - self._random() / 2)

    def reset(self) -> None:
        """All is well: start again with the first delay."""
        self._delay_s = self._first_s
