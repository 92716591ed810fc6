"""Look-ups of a review end before the API server gives up."""

import pytest

from muster.kube.errors import Unreachable
from webhook import review


def left(timeout: str, longest_s: float = 4.0) -> float:
    """How long a look-up may take in a review with this parameter."""
    with review.deadline(f"dryRun=x&timeout={timeout}&a=b"):
        return review.time_left(longest_s)


@pytest.mark.parametrize(("timeout", "seconds"), [("10s", 4), ("3s", 2.5), ("900ms", 0.4), ("1m", 4), ("30s", 4)])
def test_the_time_that_the_api_server_gives(timeout: str, seconds: float) -> None:
    """A look-up may take what is left, less a margin for the answer, and never more than its own limit."""
    assert left(timeout) == pytest.approx(seconds, abs=0.2)


@pytest.mark.parametrize("timeout", ["", "soon", "-1s", "1h", "9" * 400 + "s", "1s1s"])
def test_what_is_no_duration(timeout: str) -> None:
    """Anything else counts as the ten seconds that the registration names."""
    assert left(timeout, 20) == pytest.approx(9.5, abs=0.2)


def test_no_time_left() -> None:
    """A look-up that could not answer in time is not begun."""
    with pytest.raises(Unreachable, match="no time is left"):
        left("400ms")


def test_outside_of_a_review() -> None:
    """Before a review and after it there is no deadline."""
    assert review.time_left(4.0) == 4.0
    with review.deadline("timeout=1s"):
        assert review.time_left(4.0) < 1.0
    assert review.time_left(4.0) == 4.0
