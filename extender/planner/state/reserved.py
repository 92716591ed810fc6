"""Capacity that is reserved for the first waiting gangs of queues; pods without a gang must leave it free.

The planner renews the reservations in every cycle; the verbs read the reservations while kube-scheduler waits for an
answer. Pods that end before the gang can start may use reserved capacity. Reservations belong to the ledger
(`extender.planner.ledger`) but have separate arrays. The capacity that running pods will free is subtracted from a
reservation, and changes with time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from extender.planner.state.amounts import Amounts


@dataclass(frozen=True, slots=True, eq=False)
class ReservedRoom:
    """Capacity on nodes that is reserved for one gang."""

    at: float | None
    """Expected start of the gang, in seconds since the epoch; None if the start is unknown."""
    columns: NDArray[np.int64]
    """Columns of the reserved nodes, ascending."""
    need: Amounts
    """Resources that the gang needs on the reserved nodes, int64 of shape (resources, columns)."""
    gained: Amounts
    """Resources that running pods will have freed on the reserved nodes by the gang's start, int64 of shape (resources,
    columns)."""
    only: str = field(default="", kw_only=True)
    """The only queue whose pods and gangs must leave the capacity free; empty if all queues must leave it free."""

    def changed(self, column: int, row: Amounts | None) -> bool:
        """Subtract freed resources from `gained`. If `row` is None, the node is gone, and nothing is reserved there.

        Return True if anything has changed.

        If a pod ends that was not expected to end, its resources are subtracted, too. Too much capacity is then
        reserved until the next cycle.
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
    """Return the columns and resources to leave free: the sum of all needs, minus the smallest `gained`."""
    columns = np.unique(np.concatenate([room.columns for room in rooms]))
    needed = np.zeros((resources, len(columns)), dtype=np.int64)
    gained = np.full_like(needed, np.iinfo(np.int64).max)
    for room in rooms:
        places = np.searchsorted(columns, room.columns)
        needed[:, places] += room.need
        gained[:, places] = np.minimum(gained[:, places], room.gained)
    return columns, np.maximum(needed - gained, 0)


class ReservedRooms:
    """Reservations of the last cycle, minus the resources that were freed after the cycle's snapshot."""

    def __init__(self) -> None:
        self._rooms: list[ReservedRoom] = []
        self._start_s = 0.0
        self._since: list[tuple[int, Amounts | None]] | None = None
        """Columns, each with the resources that were freed there since the running cycle's snapshot; None between
        cycles."""
        self._views: dict[tuple[int, ...], tuple[NDArray[np.int64], Amounts]] = {}
        """Cache of the columns and resources to leave free, keyed by the positions of the reservations that apply."""

    def snapshot_taken(self) -> None:
        """Begin to record changes, because the cycle's reservations are based on the current capacity."""
        self._since = []

    def replace(self, rooms: Sequence[ReservedRoom], start_s: float) -> None:
        """Replace the reservations with a new cycle's reservations; `start_s` is the maximum time until a pod runs."""
        self._rooms = [replace(room, need=room.need.copy(), gained=room.gained.copy()) for room in rooms]
        self._start_s = start_s
        self._views = {}
        since, self._since = self._since or [], None
        for column, row in since:
            self.changed(column, row)

    def changed(self, column: int, row: Amounts | None) -> None:
        """Subtract the resources `row` of a pod that left this node; if `row` is None, end reservations on the node."""
        if self._since is not None:
            self._since.append((column, row))
        if sum(room.changed(column, row) for room in self._rooms):
            self._views = {}

    def amounts(
        self, columns: NDArray[np.int64], rows: NDArray[np.int64], now: float, runtime_s: float | None, queue: str = ""
    ) -> Amounts | None:
        """Return the resources to leave free on nodes, int64 of shape (rows, columns); None without reservations.

        `runtime_s` is the expected runtime of the pod that would use the capacity, counted from `now` (None:
        unlimited), and `queue` is the pod's queue. A column of -1 stands for no node.
        """
        end = None if runtime_s is None else now + self._start_s + runtime_s
        minded = tuple(
            place
            for place, room in enumerate(self._rooms)
            if room.only in {"", queue} and (end is None or room.at is None or end > room.at)
        )
        if not minded:
            return None
        if minded not in self._views:
            self._views[minded] = left_free([self._rooms[place] for place in minded], len(self._rooms[0].need))
        reserved, amounts = self._views[minded]
        places = np.minimum(np.searchsorted(reserved, columns), len(reserved) - 1)
        found = np.zeros((len(rows), len(columns)), dtype=np.int64)
        here, known = reserved[places] == columns, rows < len(amounts)
        found[np.ix_(known, here)] = amounts[np.ix_(rows[known], places[here])]
        return found
