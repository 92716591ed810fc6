"""Nodes that are reserved for one gang: as its placement tells of them, and what they leave to others. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from extender.planner import reasons
from extender.planner.actions.reserve.ends import Releases
from extender.planner.framework.reserved import LeftFree
from extender.planner.framework.session import Session
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from extender.planner.state.reserved import ReservedRoom, left_free
from muster.api.kubernetes.meta import readable_time
from muster.api.muster.placement import PodSetPlacement, ranks_of

LATER_S = 10.0
"""A time that becomes later by no more than this is not written anew."""


@dataclass(frozen=True, slots=True, eq=False)
class Reservation(ReservedRoom):
    """Reserved room with the slots that the gang would have there; `at` is in whole seconds."""

    gang: GangView
    pod_sets: list[PodSetPlacement]
    message: str = ""
    written: bool = False
    """The gang's placement says so already."""


def as_written(session: Session, gang: GangView, releases: Releases) -> Reservation | None:
    """The reservation that the gang's placement tells of, as it is now; None if it must be given up.

    It stands as long as its nodes take the gang when they are empty enough. When that is, is reckoned anew.
    """
    placement, snapshot = gang.placement, session.snapshot
    if placement is None or placement.status.phase != "Reserved":
        return None
    known, rows, counts = {each.name: each for each in gang.pod_sets}, dict[int, Amounts](), dict[str, int]()
    for told in placement.spec.pod_sets:
        for ranks, node in ranks_of(told.runs):
            pod_set, column = known.get(told.name), snapshot.index.get(node)
            cls = pod_set.cls if pod_set else None
            if cls is None or column is None or session.node_codes(cls)[column] or snapshot.unknown_resource(cls):
                return None
            if node in session.avoided.get(gang.key, ()):
                return None
            rows[column] = rows.get(column, np.zeros(len(snapshot.free), np.int64)) + snapshot.row_of(cls) * len(ranks)
            counts[told.name] = counts.get(told.name, 0) + len(ranks)
    columns = np.array(sorted(rows), dtype=np.int64)
    if not rows or not gang.satisfied(counts):
        return None
    need: Amounts = np.stack([rows[int(column)] for column in columns], axis=1)
    if (need > snapshot.allocatable[:, columns]).any():
        return None
    at, written = _when(session, placement.status.expected_at, releases.when(columns, need - snapshot.free[:, columns]))
    gained = np.zeros_like(need) if at is None else releases.gained(columns, releases.until(at))
    sets, message = placement.spec.pod_sets, placement.status.message
    return Reservation(at, columns, need, gained, gang, sets, message, written=written)


def _when(session: Session, told: str, reckoned: float | None) -> tuple[float | None, bool]:
    """When a reservation is expected to begin, and whether the placement says so well enough."""
    before = readable_time(told)
    if reckoned is None:
        return None, not told
    at = float(ceil(max(reckoned, session.now)))
    if before is None:
        return at, False
    over = before <= session.now and reckoned <= session.now  # it may begin any moment, and that is said
    return at, over or -1.0 <= at - before <= LATER_S or (reckoned <= session.now < before)


def left_to(session: Session, reservations: Sequence[Reservation]) -> LeftFree | None:
    """What must be left free for these."""
    if not reservations:
        return None
    columns, amounts = left_free(reservations, session.snapshot.free.shape[0])
    codes = np.zeros(len(columns), dtype=np.int16)
    for each in reservations:
        codes[np.searchsorted(columns, each.columns)] = session.causes.code(reasons.cause.reserved(gang=each.gang.key))
    return LeftFree(columns, amounts, codes, columns.tobytes() + amounts.tobytes())
