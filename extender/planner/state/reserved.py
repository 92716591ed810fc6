"""Room that is reserved for gangs which wait at the head of their queue: what pods without a gang leave free.

The planner reckons it in every cycle and leaves it here; the verbs ask while kube-scheduler waits for their answer. A
pod that has ended before the head can start need not mind it. It is a part of the ledger (`extender.planner.ledger`)
with arrays of its own: what is needed on a node is less what will have been given back there, which changes with time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from extender.planner.state.amounts import Amounts


@dataclass(frozen=True, slots=True, eq=False)
class ReservedRoom:
    """What is reserved for one gang, on those nodes where anything is."""

    at: float | None
    """When the gang is expected to start there, in seconds since the epoch; None if that is not known."""
    columns: NDArray[np.int64]
    """Ascending."""
    need: Amounts
    """What it needs there, int64 of shape (resources, columns)."""
    gained: Amounts
    """What will have been given back there by then, of the same shape."""

    def changed(self, column: int, row: Amounts | None) -> bool:
        """So much is free there by now, and not to come any more (None: the node is gone); says whether that matters.

        Of a pod that was not expected to end, too: too much is reserved then, until the next cycle.
        """
        place = int(np.searchsorted(self.columns, column))
        if place == len(self.columns) or self.columns[place] != column:
            return False
        if row is None:
            self.need[:, place] = 0
        else:
            gained = self.gained[:, place]
            np.maximum(gained - row[: len(gained)], 0, out=gained)
        return True


def left_free(rooms: Sequence[ReservedRoom], resources: int) -> tuple[NDArray[np.int64], Amounts]:
    """Columns, and what must be left free there: what all need together, less what the first of them gets back."""
    columns = np.unique(np.concatenate([room.columns for room in rooms]))
    needed = np.zeros((resources, len(columns)), dtype=np.int64)
    gained = np.full_like(needed, np.iinfo(np.int64).max)
    for room in rooms:
        places = np.searchsorted(columns, room.columns)
        needed[:, places] += room.need
        gained[:, places] = np.minimum(gained[:, places], room.gained)
    return columns, np.maximum(needed - gained, 0)


class ReservedRooms:
    """What the last cycle reserved, less what has come to pass since its snapshot."""

    def __init__(self) -> None:
        self._rooms: list[ReservedRoom] = []
        self._start_s = 0.0
        self._since: list[tuple[int, Amounts | None]] | None = None
        """What has changed since the snapshot of the cycle that runs: columns, and what was given back there.

        None between cycles: a replica that does not plan has nothing to remember, however long it stands by.
        """
        self._views: dict[int, tuple[NDArray[np.int64], Amounts]] = {}

    def snapshot_taken(self) -> None:
        """What a cycle will reserve is reckoned from what is there now."""
        self._since = []

    def replace(self, rooms: Sequence[ReservedRoom], start_s: float) -> None:
        """What a cycle reserves; `start_s` is what a pod may need until it runs."""
        rooms = [replace(room, need=room.need.copy(), gained=room.gained.copy()) for room in rooms]
        self._rooms = sorted(rooms, key=lambda room: (room.at is None, -(room.at or 0.0)), reverse=True)
        self._start_s = start_s
        self._views = {}
        since, self._since = self._since or [], None
        for column, row in since:
            self.changed(column, row)

    def changed(self, column: int, row: Amounts | None) -> None:
        """A pod left this node: the amounts in `row` that were expected of it are there now, and reserved too.

        None: the node is gone; its column may be given to another one, of which nothing is reserved.
        """
        if self._since is not None:
            self._since.append((column, row))
        if sum(room.changed(column, row) for room in self._rooms):
            self._views = {}

    def amounts(
        self, columns: NDArray[np.int64], rows: NDArray[np.int64], now: float, runtime_s: float | None
    ) -> Amounts | None:
        """What must be left free of these resources on these nodes, int64 of shape (rows, columns); None for nothing.

        `runtime_s` is how long the pod that asks is expected to run from `now` on; None: for ever. A column may be -1.
        """
        end = None if runtime_s is None else now + self._start_s + runtime_s
        minded = [room for room in self._rooms if end is None or room.at is None or end > room.at]
        if not minded:
            return None
        if len(minded) not in self._views:  # they are in the order of their times, so that their number says which
            self._views[len(minded)] = left_free(minded, len(minded[0].need))
        reserved, amounts = self._views[len(minded)]
        places = np.minimum(np.searchsorted(reserved, columns), len(reserved) - 1)
        found = np.zeros((len(rows), len(columns)), dtype=np.int64)
        here, known = reserved[places] == columns, rows < len(amounts)
        found[np.ix_(known, here)] = amounts[np.ix_(rows[known], places[here])]
        return found
