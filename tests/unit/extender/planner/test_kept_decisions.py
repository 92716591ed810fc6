"""What the planner decides in random clusters stays as it was.

`kept_decisions.txt` has the decisions of each life of a cluster: gangs come and end, nodes die and come back, and what
is decided is done. A change that is meant is written by `make decisions`; its difference shows what becomes of gangs.
"""

from pathlib import Path

import pytest
from life_world import Life
from wide_life_world import WideLife

KEPT = Path(__file__).with_name("kept_decisions.txt")
PLAIN, LIVES = 20, 60


def life(number: int) -> str:
    """The decisions of a life."""
    return "\n".join((Life(number) if number < PLAIN else WideLife(number)).lives())


@pytest.mark.parametrize("number", range(LIVES))
def test_decisions_are_those_that_were_kept(number: int) -> None:
    """In the life of one cluster."""
    assert life(number) == KEPT.read_text().split("# ")[1 + number].split("\n", 1)[1].rstrip()


if __name__ == "__main__":
    KEPT.write_text("".join(f"# {number}\n{life(number)}\n\n" for number in range(LIVES)))
