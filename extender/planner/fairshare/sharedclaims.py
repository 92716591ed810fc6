"""Device claims that pods of several queues use, whose devices must count once in the queues above these.

The allocation of a queue includes the devices of its claims. Plain sums in the queues above would count shared devices
once for each child queue.
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
    """Rows of all queues that use the claim; these rows count for limits."""
    allocated: tuple[int, ...]
    """Rows of queues in which some users of the claim stay; these rows count for shares."""
    fixed: tuple[int, ...]
    """Rows of queues with a remaining user in a non-preemptable gang."""


def sharing_of(
    tree: QueueTree, claim: str, uses: Mapping[str, ClaimUse], devices: Amounts, left: Collection[tuple[str, str]],
    held: Collection[str],
) -> Sharing:  # fmt: skip
    """Return a claim's users; `left` has pairs of claim and queue without remaining users, `held` the fixed gangs."""
    stays = {queue: use for queue, use in uses.items() if not use[0] and (claim, queue) not in left}
    fixed = [queue for queue, use in stays.items() if use[1] in held]
    return Sharing(claim, devices, *(tuple(map(tree.row, names)) for names in (uses, stays, fixed)))


def above(tree: QueueTree, rows: Iterable[int]) -> set[int]:
    """Return the rows of these queues and of all queues above them."""
    return {each for row in rows for each in tree.chains[row]}


def count_once(tree: QueueTree, table: Amounts, devices: Amounts, rows: Iterable[int]) -> None:
    """Subtract devices that a queue counts more than once because several child queues use them."""
    known = set[int]()
    for row in rows:
        shared = next((each for each in tree.chains[row] if each in known), None)
        if shared is not None:
            table[shared] -= devices
        known.update(tree.chains[row])
