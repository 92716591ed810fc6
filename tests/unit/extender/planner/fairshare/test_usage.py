"""Usage over time, with a half-life."""

import pytest

from extender.planner.fairshare.shares import UsageBook


def test_what_was_used_a_half_life_ago_counts_half() -> None:
    """However many steps the time went in."""
    book = UsageBook(100.0)
    book.advance(0.0, {"a": {"cpu": 8000}})
    for now in (30.0, 60.0, 100.0):
        book.advance(now, {"a": {"cpu": 8000}})
    assert book.means["a"]["cpu"] == pytest.approx(4000)
    book.advance(200.0, {})
    assert book.means["a"]["cpu"] == pytest.approx(2000)


def test_a_mean_survives_a_restart() -> None:
    """It has decayed meanwhile."""
    book = UsageBook(100.0)
    book.load("a", {"cpu": 4000}, at=0.0, now=100.0)
    assert book.means["a"]["cpu"] == pytest.approx(2000)


def test_what_is_nothing_any_more_is_forgotten() -> None:
    """So that queues that are gone leave nothing."""
    book = UsageBook(1.0)
    book.advance(0.0, {})
    book.advance(1.0, {"a": {"cpu": 1}})
    book.advance(100.0, {})
    assert book.means == {}
