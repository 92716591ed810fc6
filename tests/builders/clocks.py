"""A clock of tests: time passes only when a test lets it."""


class Clock:
    """Seconds, `now`, that a test sets."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """Return the time in seconds."""
        return self.now
