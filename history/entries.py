"""State of the gangs that have not ended, from which each observation derives new events and rows to write. Pure.

Observations may arrive repeatedly and out of order, because lists are read while watches run. Therefore older versions
of an object are ignored, and ended gangs stay ended. Entries can be restored from the store's rows of gangs that have
not ended (`reopen`).
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from typing import Final

from history import groups
from history.hourly import HourlyLimit
from history.model import (
    EVENTS_KEPT,
    MS,
    NAME_CHARS,
    NODES_KEPT,
    TEXT_CHARS,
    GangEventRow,
    GangRun,
    Holding,
    RecordedGang,
    RowChanges,
    What,
    clean,
)
from history.pods import ObservationTime
from muster.api import names
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.checkpoint import checkpoint_of
from muster.resources.vector import Vector

REMEMBERED: Final = 200_000
"""Maximum number of ended pods and PodGroups whose UIDs are kept, so that late observations do not begin new entries
for them."""
_USER_CHARS: Final = 512
UID_CHARS: Final = 63
"""Maximum number of characters of a UID in the store."""


class Entries:
    """The gangs that have not ended, their current runs and the nodes that they hold, and all changes not taken yet."""

    def __init__(self, offers: Callable[[str], Vector | None] = lambda _: None) -> None:
        self.changes = RowChanges()
        self.offers = offers
        """Returns the resources that a node offers; None if the node is unknown."""
        self.gangs: dict[str, RecordedGang] = {}
        self.runs: dict[str, GangRun] = {}
        self.holdings: dict[str, Holding] = {}
        self.run_of: dict[str, str] = {}
        """Maps the namespace and name of a PodGroup to the UID of its run."""
        self.of_owner: dict[str, str] = {}
        """Maps the namespace and UID of a Volcano Job to its gang."""
        self.closed: OrderedDict[str, None] = OrderedDict()
        """UIDs of the most recently ended pods and PodGroups."""
        self.asked: OrderedDict[str, tuple[int, str]] = OrderedDict()
        """Maps a gang whose PodGroup was deleted recently to the minimum and PriorityClass of this PodGroup."""
        self.jobs: dict[str, tuple[int, int, str]] = {}
        """Maps the namespace and UID of a Volcano Job to the Job's last seen version, number of restarts, and phase."""
        self.members: dict[str, tuple[str, Vector]] = {}
        """Maps the UID of a pod that has not ended to the run of its gang, and to the pod's requests."""
        self.together: dict[str, Vector] = {}
        """Maps a run to the sum of its pods' requests."""
        self.begun: Counter[str] = Counter()
        """Maps a run to the number of its running or succeeded members."""
        self.failed: Counter[str] = Counter()
        """Maps a run to the number of its members that ran and then failed."""
        self.unended: Counter[str] = Counter()
        """Maps a run to the number of its members that have not ended."""
        self.bound: Counter[str] = Counter()
        """Maps a run to the number of its members that are bound to nodes."""
        self.shapes: dict[str, dict[str, Vector]] = {}
        """Maps a run and a pod set to the resources of the pod set's most recently observed member."""
        self.spares: dict[str, str] = {}
        """Maps a run to the key of the row that represents the run's spare slots."""
        self.why: dict[str, str] = {}
        """Maps the UID of a pod that is about to be evicted to the reason as text."""
        self.hourly = HourlyLimit()
        self._alive: Counter[str] = Counter()
        """Maps a gang to the number of its unfinished runs, plus the number of records of nodes that it holds."""

    def reopen(
        self,
        gangs: Iterable[RecordedGang],
        runs: Iterable[GangRun],
        holdings: Iterable[Holding],
        ended: Iterable[str] = (),
    ) -> None:
        """Load, from the store, the gangs that have not ended, their current runs and the nodes that they hold.

        `ended` contains the UIDs of ended pods that the API server may still list.
        """
        for uid in ended:
            self.remember(uid)
        self.gangs.update((each.id, each) for each in gangs)
        self.of_owner.update((each.owner_key, each.id) for each in self.gangs.values() if each.owner)
        for run in runs:
            run.queue = run.queue or self.gangs[run.gang].queue
            self.runs[run.uid] = run
            self.run_of[run.seen.group] = run.uid
            self._alive[run.gang] += 1
        for holding in holdings:
            holding.queue = holding.queue or self.gangs[holding.gang].queue
            self.holdings[holding.pod] = holding
            self.begun[holding.run] += holding.ran_from is not None
            self._has_begun(holding)

    def take_changes(self) -> RowChanges:
        """Return the changes since the last call of this method."""
        taken, self.changes = self.changes, RowChanges()
        return taken

    def begin(self, gang: RecordedGang, uid: str, group: str, created: int, queue: str, *, asks: str = "") -> GangRun:
        """Start a run of a gang in a queue, at the time of its submission.

        `asks` describes the gang's other requests, for the text of the event.
        """
        run = GangRun(uid=uid, gang=gang.id, submitted=created, queue=queue, user=gang.user)
        run.seen.minimum, run.seen.priority_class = self.asked.pop(gang.id, (0, ""))
        run.seen.group = group
        self.runs[uid] = run
        self.run_of[group] = uid
        self._alive[gang.id] += 1
        self.hourly.add_rows(gang.namespace, 2)
        self.happens(run, groups.NewGangEvent(What.SUBMITTED, created, epoch=0, text=f"to queue {queue}{asks}"))
        self.touch(gang, run)
        return run

    def move(self, gang: RecordedGang, run: GangRun, queue: str, at: int) -> None:
        """Charge a run and its members to another queue from the given time on."""
        gang.queue = queue
        if run.move(queue, at, run.submitted):
            for each in self.holdings.values():
                if each.run == run.uid and each.move(queue, at, each.bound):
                    self.changed(each)

    def opened(self, holding: Holding) -> None:
        """Record that a member got its node, or if `holding` names no node, that a run got spare slots."""
        self.holdings[holding.pod] = holding
        self._has_begun(holding)
        self.hourly.add_rows(self.gangs[holding.gang].namespace, 1)
        self.changed(holding)

    def _has_begun(self, holding: Holding) -> None:
        self._alive[holding.gang] += 1
        if holding.node:
            self.bound[holding.run] += 1
        else:
            self.spares[holding.run] = holding.pod

    def ended(self, holding: Holding) -> None:
        """Record that a member left its node, or if `holding` names no node, that a run lost its spare slots."""
        self.changed(holding)
        del self.holdings[holding.pod]
        if not holding.node:
            del self.spares[holding.run]
        elif self.bound[holding.run] > 1:
            self.bound[holding.run] -= 1
        else:
            del self.bound[holding.run]
        self.remember(holding.pod)

    def save(self, gang: RecordedGang, meta: ObjectMeta, moment: ObservationTime) -> None:
        """Record the checkpoint that an object reports, unless its time is implausible: any user may write it."""
        text = meta.annotations.get(names.CHECKPOINT)
        checkpoint = checkpoint_of(text) if text else None
        if checkpoint is not None and gang.submitted <= checkpoint.at * MS <= moment.at:
            at = round(checkpoint.at * MS)
            if at > (gang.saved or 0):
                gang.saved = at
                self.touch(gang)

    def happens(self, run: GangRun, news: groups.NewGangEvent) -> None:
        """Record an event of a run, unless the run, its gang or its namespace has reached the limit of events."""
        run.seen.happened += 1
        gang = self.gangs.get(run.gang)
        if run.seen.happened > EVENTS_KEPT or (
            gang is not None and not self.hourly.admits(gang, run.uid, news.what, news.at)
        ):
            return
        self.changes.gang_events.append(
            GangEventRow(
                gang=run.gang,
                run=run.uid,
                epoch=news.epoch,
                what=news.what,
                subject=clean(news.subject, NAME_CHARS),
                at=news.at,
                text=clean(news.text, TEXT_CHARS),
                nodes=tuple(clean(each, NAME_CHARS) for each in news.nodes[:NODES_KEPT]),
            )
        )

    def touch(self, gang: RecordedGang, run: GangRun | None = None) -> None:
        """Mark a gang, and if given one of its runs, as changed, so that it is written to the store."""
        self.changes.gangs[gang.id] = gang
        if run is not None:
            self.changes.runs[run.uid] = run

    def changed(self, holding: Holding) -> None:
        """Mark the record of a held node as changed, so that the record is written to the store."""
        self.changes.holdings[holding.pod] = holding

    def deleted(self, namespace: str, key: str) -> None:
        """Mark a deleted object's stored row for aggregation, if the object's namespace has too many rows this hour."""
        if self.hourly.is_full(namespace):
            self.changes.summed.add(key)

    def remember(self, uid: str) -> None:
        """Record that a pod or a PodGroup has ended."""
        self.closed[uid] = None
        if len(self.closed) > REMEMBERED:
            self.closed.popitem(last=False)

    def keep_asked(self, run: GangRun) -> None:
        """Keep the minimum and PriorityClass of a deleted PodGroup for the next run of its gang."""
        self.asked[run.gang] = run.seen.minimum, run.seen.priority_class
        if len(self.asked) > REMEMBERED:
            self.asked.popitem(last=False)

    def less_alive(self, gang: str) -> None:
        """Record that a run of a gang has ended, or that a member of the gang has left its node.

        If the gang itself has ended, too, has no other unfinished run and holds no other node, drop the gang.
        """
        self._alive[gang] -= 1
        if known := self.gangs.get(gang):
            self.forget(known)

    def forget(self, gang: RecordedGang) -> None:
        """Drop a gang that has ended, has no unfinished run and holds no node."""
        if gang.ended is not None and self._alive[gang.id] <= 0 and gang.owner_key not in self.of_owner:
            self.gangs.pop(gang.id, None)
            del self._alive[gang.id]
            self.deleted(gang.namespace, gang.id)


def user_of(meta: ObjectMeta) -> str:
    """Return the creator of an object, whom admission has written into the object; empty if unknown."""
    return clean(meta.annotations.get(names.CREATED_BY, ""), _USER_CHARS)
