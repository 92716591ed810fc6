"""The annotations about spares."""

import pytest

from muster.api import names
from muster.api.limits import SPARES
from muster.resources.spares import borrows, mistakes, parse_spares, spares_of


@pytest.mark.parametrize(
    ("text", "read"),
    [("2", {"": 2}), ("0", {}), (" 3 ", {"": 3}), ("worker=2,ps=1", {"worker": 2, "ps": 1}), ("a=1, b=0", {"a": 1})],
)
def test_what_is_read(text: str, read: dict[str, int]) -> None:
    """One number for the largest pod set, or numbers by name."""
    assert parse_spares(text) == read
    assert spares_of({names.SPARES: text}) == read
    assert not list(mistakes({names.SPARES: text}, "metadata.annotations"))


@pytest.mark.parametrize(
    "text",
    ["", "two", "-1", "1.5", "65", "worker", "worker=", "=2", "worker=2,3", "a=1,a=2", "a=40,b=40", "A=1", "x" * 5000],
)
def test_what_is_refused(text: str) -> None:
    """With how to write it; where admission was bypassed, there are no spares."""
    assert spares_of({names.SPARES: text}) == {}
    (error,) = mistakes({names.SPARES: text}, "metadata.annotations")
    assert error.path == f"metadata.annotations[{names.SPARES}]"
    assert "worker=2,ps=1" in error.message
    assert str(SPARES.value) in error.message


def test_who_borrows() -> None:
    """It says so, and may be evicted."""
    assert borrows({names.BORROWS: "true"})
    assert not borrows({names.BORROWS: "yes"})
    path = f"x[{names.BORROWS}]"
    assert [error.path for error in mistakes({names.BORROWS: "yes"}, "x")] == [path]
    assert [error.path for error in mistakes({names.BORROWS: "true", names.PREEMPTABLE: "false"}, "x")] == [path]
    assert not list(mistakes({names.BORROWS: "false", names.PREEMPTABLE: "false"}, "x"))
