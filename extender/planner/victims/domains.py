"""Where victims are looked for if the gang must be in one domain: in one domain at a time.

Spread over all nodes, the cheapest victims would rarely be neighbours. So the domains that would hold the gang without
its candidates are asked for, and searched one after the other, where least has to go first (as Volcano's gangpreempt,
which also looks at so many domains at most).
"""

from collections.abc import Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from extender.planner.framework.demand import minimum_wanted
from extender.planner.framework.nodeset import EVERYWHERE
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.topology.requests import part_of, request_of
from extender.planner.victims.pieces import Piece
from extender.planner.victims.room import Need

DOMAINS = 8
"""Domains that are searched for one gang."""
LOOKED_AT = 256
"""Domains of which the amounts are compared."""
Mask = NDArray[np.bool_]


def domains_of(session: Session, gang: GangView, needs: list[Need], pieces: list[Piece]) -> Iterator[Mask | None]:
    """The nodes of each domain to search, bool of shape (nodes,); None alone: everywhere at once."""
    request = request_of(gang)
    if request is None or not request.required:
        yield None
        return
    room = [np.where(need.usable, session.room(need.cls), 0) for need in needs]
    found: list[tuple[int, Mask]] = []
    for inside in _emptied(session, gang, pieces):
        if inside is None:
            yield None
            return
        short = sum(max(0, need.pods - int(own[inside].sum())) for need, own in zip(needs, room, strict=True))
        found.append((short, inside))
    for _, inside in sorted(found, key=lambda each: each[0])[:DOMAINS]:
        yield inside


def _emptied(session: Session, gang: GangView, pieces: list[Piece]) -> list[Mask | None]:
    """The domains that plugins would propose if all pieces were gone; None for one that is everywhere."""
    snapshot = session.snapshot
    wanted, open_slots = minimum_wanted(gang), gang.open_slots()
    part = part_of(gang, {name: open_slots[name][:count] for name, count in wanted.items()})
    before, snapshot.free = snapshot.free, snapshot.free.copy()
    for piece in pieces:
        np.add.at(snapshot.free.T, piece.columns, piece.rows)
    try:
        found: list[Mask | None] = []
        for nodes in islice(session.node_sets(EVERYWHERE, gang, part), LOOKED_AT):
            if nodes.columns is None:
                return [None]
            inside = np.zeros(snapshot.free.shape[1], dtype=np.bool_)
            inside[nodes.columns] = True
            found.append(inside)
        return found
    finally:
        snapshot.free = before
