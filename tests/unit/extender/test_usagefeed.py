"""The usage of queues as the extender reads it: what cannot be read counts as none."""

from typing import Any

import pytest

from extender.usage import WAIT_S, UsageFeed
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.usage import KEY


class Known:
    """A ConfigMap."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.metadata = ObjectMeta(name="muster-usage")
        self.data = data


@pytest.fixture
def clock() -> list[float]:
    """A clock that is set by hand."""
    return [0.0]


@pytest.fixture
def feed(clock: list[float]) -> UsageFeed:
    """A feed without an API server."""
    return UsageFeed(None, "muster-system", monotonic_s=lambda: clock[0])  # type: ignore[arg-type]  # never started


def test_it_follows_the_config_map(feed: UsageFeed) -> None:
    """One that cannot be read, or is gone, is none."""
    good = Known({KEY: '{"until": 5}'})
    feed.on_change(None, good)  # type: ignore[arg-type]  # with its fields
    assert feed.current is not None
    assert feed.current.until == 5
    feed.on_change(good, Known({KEY: "{"}))  # type: ignore[arg-type]  # as above
    assert feed.current is None
    feed.on_change(None, good)  # type: ignore[arg-type]  # as above
    feed.on_change(good, None)  # type: ignore[arg-type]  # as above
    assert feed.current is None


def test_planning_does_not_wait_for_it_for_ever(feed: UsageFeed, clock: list[float]) -> None:
    """A right that lacks must not keep all gangs waiting."""
    assert not feed.ready()
    clock[0] = WAIT_S + 1
    assert feed.ready()
