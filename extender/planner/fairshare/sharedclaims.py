"""Claims to devices that pods of several queues use: their devices count once in a queue above these.

What a queue uses has the devices of its claims. So the sums of the queues above have them once for each queue below.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from extender.planner.fairshare.tree import QueueTree
from extender.planner.limits import ClaimUse
from extender.planner.state.amounts import Amounts


class Sharing(NamedTuple):
    """The devices of one claim, and the rows of the queues whose pods use it."""

    claim: str
    devices: Amounts
    used: tuple[int, ...]
    """All: they count for limits."""
    allocated: tuple[int, ...]
    """Those of which some pods stay: they count for shares."""
    fixed: tuple[int, ...]
    """Of these, those whose gang is not preemptable."""


def sharing_of(
    tree: QueueTree, claim: str, uses: Mapping[str, ClaimUse], devices: Amounts, left: Collection[tuple[str, str]],
    held: Collection[str],
) -> Sharing:  # fmt: skip
    """Return who uses a claim; `left`: pairs of claim and queue whose pods all go; `held`: gangs not preemptable."""
    stays = {queue: use for queue, use in uses.items() if not use[0] and (claim, queue) not in left}
    fixed = [queue for queue, use in stays.items() if use[1] in held]
    return Sharing(claim, devices, *(tuple(map(tree.row, names)) for names in (uses, stays, fixed)))


def above(tree: QueueTree, rows: Iterable[int]) -> set[int]:
    """Return these queues and all above them."""
    return {each for row in rows for each in tree.chains[row]}


def count_once(tree: QueueTree, table: Amounts, devices: Amounts, rows: Iterable[int]) -> None:
    """Take devices off each queue where those of several queues below it come together."""
    known = set[int]()
    for row in rows:
        shared = next((each for each in tree.chains[row] if each in known), None)
        if shared is not None:
            table[shared] -= devices
        known.update(tree.chains[row])
