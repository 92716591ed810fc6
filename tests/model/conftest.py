"""Fixtures of the model."""

from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture
def no_logs() -> Iterator[None]:
    """No logs: every process of an exploration would write its own."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    yield
    structlog.reset_defaults()
