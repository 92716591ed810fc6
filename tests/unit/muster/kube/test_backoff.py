"""Delays grow to a limit, vary, and start over."""

from muster.kube.errors import Backoff


def test_doubles_to_the_limit_and_starts_over() -> None:
    """Without luck the delays are exactly the doubling ones."""
    backoff = Backoff(0.2, 1.0, lambda: 0.0)
    assert [backoff.next() for _ in range(5)] == [0.2, 0.4, 0.8, 1.0, 1.0]
    backoff.reset()
    assert backoff.next() == 0.2


def test_jitter_takes_up_to_half() -> None:
    """Many clients do not come back in step."""
    assert Backoff(0.2, 1.0, lambda: 1.0).next() == 0.1
