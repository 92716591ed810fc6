"""The book of all gangs that live: what was recorded of each, so that a look at an object tells what is new. Pure.

A look is an object of the API and a `Moment`; its result gathers in `changes`, which the recorder writes. Looks may
come more than once and out of order (a list beside a watch): an older version of an object is no news, and what has
ended stays ended. The book can be made again from the store (`reopen`), with what is open there.
"""

from collections.abc import Iterable, Mapping

from history.entries import Entries
from history.groups import RecordedJob
from history.lives import Lives
from history.members import Members
from history.model import Changes, Gang, Gap, Holding, Run
from history.pods import Moment, RecordedPod
from muster.api.muster.placement import Placement
from muster.api.volcano.scheduling import PodGroup


class Book:
    """Gangs, runs and holdings that are open; used by one thread."""

    def __init__(self) -> None:
        self._entries = Entries()
        self._lives = Lives(self._entries)
        self._members = Members(self._entries, self._lives)

    def reopen(
        self, gangs: Iterable[Gang], runs: Iterable[Run], holdings: Iterable[Holding], ended: Iterable[str] = ()
    ) -> None:
        """Take in what is open in the store, and UIDs of pods that have ended: they are told of no more."""
        self._entries.reopen(gangs, runs, holdings, ended)

    @property
    def changes(self) -> Changes:
        """What has changed since it was taken last."""
        return self._entries.changes

    @property
    def gangs(self) -> Mapping[str, Gang]:
        """Gangs that live, by their id."""
        return self._entries.gangs

    @property
    def runs(self) -> Mapping[str, Run]:
        """Runs that are open, by their UID."""
        return self._entries.runs

    @property
    def holdings(self) -> Mapping[str, Holding]:
        """Holdings that are open, by the UID of the pod."""
        return self._entries.holdings

    @property
    def owners(self) -> set[str]:
        """UIDs of the Volcano Jobs that gangs belong to, and that have not gone."""
        return set(self._entries.of_owner)

    def take(self) -> Changes:
        """Return what has changed since the last time."""
        return self._entries.take()

    def group(self, new: PodGroup, moment: Moment) -> None:
        """Look at a PodGroup."""
        self._lives.group(new, moment)

    def group_gone(self, uid: str, moment: Moment, stamp: str | None = None) -> None:
        """Take in that a PodGroup is not there any more; `stamp` is when it was asked to go, if that is known."""
        self._lives.group_gone(uid, moment, stamp)
        self._members.run_gone(uid)

    def placement(self, new: Placement, moment: Moment) -> None:
        """Look at a Placement."""
        self._lives.placement(new, moment)

    def job(self, new: RecordedJob, moment: Moment) -> None:
        """Look at a Volcano Job."""
        self._lives.job(new, moment)

    def job_gone(self, uid: str, moment: Moment) -> None:
        """Take in that a Volcano Job is not there any more."""
        self._lives.job_gone(uid, moment)

    def pod(self, new: RecordedPod, moment: Moment) -> None:
        """Look at a pod."""
        self._members.pod(new, moment)

    def pod_gone(self, uid: str, moment: Moment, last: RecordedPod | None = None) -> None:
        """Take in that a pod is not there any more; `last` is how it was, if that is known."""
        self._members.pod_gone(uid, moment, last)

    def unseen(self, uids: Iterable[str], since: int, until: int) -> int:
        """Close holdings of pods that ended between these times, nobody knows when; return their number."""
        return self._members.unseen(uids, since, until)

    def gap(self, since: int, until: int, text: str) -> None:
        """Note a time for which nothing was recorded."""
        self._entries.changes.gaps.append(Gap(since=since, until=until, text=text))
