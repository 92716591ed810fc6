"""Fixtures of the tests without a control plane."""

import random
from collections.abc import Iterator

import pytest
import structlog
from simulated_cluster import Cluster
from simulated_faults import Faults


def quiet_cluster(seed: int) -> Cluster:
    """A cluster in which nothing fails."""
    chance = random.Random(seed)  # noqa: S311 - not a secret
    return Cluster(chance, Faults(chance, 0.0, 0.0), lambda *_: None)


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    """The loop of tests that are coroutines: that of the processes."""
    return "asyncio", {"use_uvloop": True}


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster in which nothing fails, and no logs; an indirect parameter is its seed."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    yield quiet_cluster(getattr(request, "param", 1))
    structlog.reset_defaults()
