"""Device claims that are used by pods of several queues.

The allocation of a queue includes the devices of its claims. If a parent queue simply added up its children, a device
shared by several children would count several times. Therefore shared devices count only once in common ancestors of
these queues.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from extender.planner.fairshare.tree import QueueTree
from extender.planner.limits import ClaimUse
from extender.planner.state.amounts import Amounts


class Sharing(NamedTuple):
    """The devices of one claim, and the rows of the queues with pods that use the claim."""

    claim: str
    devices: Amounts
    used: tuple[int, ...]
    """Rows of all queues with pods that use the claim; the devices count towards these queues' limits."""
    allocated: tuple[int, ...]
    """Rows of queues with a user of the claim that is not evicted; the devices count in their shares."""
    fixed: tuple[int, ...]
    """Rows of queues in which a non-preemptable gang still uses the claim."""


def sharing_of(
    tree: QueueTree, claim: str, uses: Mapping[str, ClaimUse], devices: Amounts, left: Collection[tuple[str, str]],
    held: Collection[str],
) -> Sharing:  # fmt: skip
    """Return the queues with pods that use a claim.

    `left` contains pairs of a claim and a queue in which no user of the claim remains. `held` contains the keys of
    non-preemptable gangs.
    """
    stays = {queue: use for queue, use in uses.items() if not use[0] and (claim, queue) not in left}
    fixed = [queue for queue, use in stays.items() if use[1] in held]
    return Sharing(claim, devices, *(tuple(map(tree.row, names)) for names in (uses, stays, fixed)))


def above(tree: QueueTree, rows: Iterable[int]) -> set[int]:
    """Return the rows of these queues and of all their ancestors."""
    return {each for row in rows for each in tree.chains[row]}


def count_once(tree: QueueTree, table: Amounts, devices: Amounts, rows: Iterable[int]) -> None:
    """Subtract devices that a queue counts more than once because several of its child queues use them."""
    known = set[int]()
    for row in rows:
        shared = next((each for each in tree.chains[row] if each in known), None)
        if shared is not None:
            table[shared] -= devices
        known.update(tree.chains[row])
