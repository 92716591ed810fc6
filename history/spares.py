"""Rows for the spare slots of gangs, which count in usage and budgets like members. Pure.

Once a gang's placement is written, the planner counts the gang's spare slots, even lent ones, in its queue
(`extender.planner.state.spareentries`). In the history, a gang's spare slots count while at least one member of the
gang is bound to a node. A spare slot counts with the amounts of a member of the same pod set.
"""

from typing import Final

from history.entries import Entries
from history.model import GangRun, Holding, MemberEnd
from muster.api.limits import SPARES
from muster.api.muster.placement import Placement
from muster.resources.vector import Vector, add, maximum, scale

OF_SPARES: Final = "spares-"
"""Prefix of the keys of rows for spare slots, which belong to no pod."""
CHANGES_KEPT: Final = 200
"""Maximum number of recorded changes of spare slots per run, so that tenants cannot fill the store. Further changes are
recorded only if they increase the amounts."""


def follow(entries: Entries, run: GangRun, placement: Placement, at: int) -> None:
    """Process the spare slots of a placement."""
    if placement.spec.epoch >= run.seen.epoch:
        run.seen.spares = tuple((each.pod_set, each.count) for each in placement.spec.spares[: SPARES.value])
        settle(entries, run.uid, at)


def settle(entries: Entries, uid: str, at: int) -> None:
    """Update the row for a run's spare slots.

    A run has no spare slots if no member is bound to a node, or if its PodGroup was deleted.
    """
    run = entries.runs.get(uid)
    known = entries.holdings.get(entries.spares.get(uid, ""))
    if run is None or not entries.bound[uid] or not run.seen.spares:
        _end_holding(entries, known, at)
        return
    shapes = entries.shapes.get(uid, {})
    if known is not None and not shapes:
        return  # this process has not observed a pod yet
    wanted: Vector = {}
    for pod_set, count in run.seen.spares:
        wanted = add(wanted, scale(shapes.get(pod_set, {}), count))
    if wanted == (known.amounts if known else {}):
        return
    run.seen.kept_spares += 1
    if known is not None and run.seen.kept_spares > CHANGES_KEPT:
        known.amounts = maximum(known.amounts, wanted)
        entries.changed(known)
        return
    _end_holding(entries, known, at)
    if wanted:
        entries.opened(_held(entries, run, wanted, at))
    entries.touch(entries.gangs[run.gang], run)


def _held(entries: Entries, run: GangRun, amounts: Vector, at: int) -> Holding:
    return Holding(
        pod=f"{OF_SPARES}{run.uid}-{run.seen.kept_spares}",
        name="spare slots",
        gang=run.gang,
        run=run.uid,
        queue=run.queue,
        user=entries.gangs[run.gang].user,
        epoch=run.seen.epoch,
        node="",
        amounts=amounts,
        bound=at,
    )


def _end_holding(entries: Entries, known: Holding | None, at: int) -> None:
    if known is not None:
        known.ended, known.reason = max(at, known.bound), MemberEnd.COMPLETED
        entries.ended(known)
        entries.less_alive(known.gang)
