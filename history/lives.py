"""The life of gangs, as their PodGroups, Placements and Volcano Jobs tell it. Pure."""

from history import groups
from history.entries import UID_CHARS, Entries, user_of
from history.groups import RecordedJob
from history.model import NAME_CHARS, Gang, Run, What, clean
from history.pods import Moment
from muster.api.muster.placement import Placement, noted
from muster.api.volcano.scheduling import PodGroup
from muster.resources.vector import maximum


class Lives:
    """Takes in looks at what tells of whole gangs."""

    def __init__(self, entries: Entries) -> None:
        self._entries = entries
        self._jobs: dict[str, tuple[int, int, str]] = {}
        """UID of a Volcano Job → version, restarts and phase that were seen."""

    # PodGroups

    def group(self, new: PodGroup, moment: Moment) -> None:
        """Look at a PodGroup."""
        run = self._entries.runs.get(new.metadata.uid) or self._opened(new, moment)
        if run is None or int(new.metadata.resource_version or 0) <= run.seen.group_version:
            return
        run.seen.group_version = int(new.metadata.resource_version or 0)
        run.asked = maximum(run.asked, groups.minimum(new))
        gang = self._entries.gangs[run.gang]
        gang.queue = clean(new.spec.queue, NAME_CHARS) or gang.queue
        gang.user = gang.user or user_of(new.metadata)
        self._entries.save(gang, new.metadata, moment)
        placement = noted(new)
        if placement is not None:
            self._placed(run, placement, moment)
        for news in groups.news(run.seen, new, moment):
            self._entries.happens(run, news)
        self._state(gang, run, new, moment)
        self._entries.touch(gang, run)

    def _opened(self, new: PodGroup, moment: Moment) -> Run | None:
        """Return the run of a PodGroup that was not known; None if it has ended already."""
        meta = new.metadata
        over = new.status.phase == "Completed" and not moment.live  # before anybody looked, or recorded and closed
        if not meta.uid or meta.uid in self._entries.closed or over:
            return None
        workload, owner = groups.workload(new), clean(groups.owner_uid(new), UID_CHARS)
        created = moment.of(meta.creation_timestamp)
        identity = f"{clean(workload.uid, UID_CHARS) or meta.uid}/{meta.name}"
        known = self._entries.gangs.get(identity)
        gang = known or Gang(
            id=identity,
            namespace=meta.namespace,
            name=clean(workload.name, NAME_CHARS),
            kind=clean(workload.kind, UID_CHARS),
            queue=clean(new.spec.queue, NAME_CHARS),
            submitted=created,
        )
        gang.ended, gang.owner = None, owner
        self._entries.gangs[gang.id] = gang
        if owner:
            self._entries.of_owner[owner] = gang.id
        return self._entries.begin(gang, meta.uid, meta.key, created)

    def group_gone(self, uid: str, moment: Moment, stamp: str | None = None) -> None:
        """Take in that a PodGroup is not there any more; `stamp` is when it was asked to go, if that is known."""
        run = self._entries.runs.pop(uid, None)
        if run is None:
            return
        self._entries.remember(uid)
        if self._entries.run_of.get(run.seen.group) == uid:
            del self._entries.run_of[run.seen.group]
        gang = self._entries.gangs[run.gang]
        at = max(moment.of(stamp), run.submitted)
        if run.ended is None:
            run.ended = at
        if gang.ended is None and not self._is_told_by_job(gang):
            self._end(gang, run, at, "Deleted", "it was deleted")
        self._entries.touch(gang, run)
        self._entries.less_alive(gang.id)

    def _is_told_by_job(self, gang: Gang) -> bool:
        """Return True for the gang of a Volcano Job that has not gone: its PodGroup also goes at restarts."""
        return gang.owner in self._entries.of_owner

    def _state(self, gang: Gang, run: Run, group: PodGroup, moment: Moment) -> None:
        """Set the state of a gang, and its end, by its PodGroup."""
        state = groups.state(group, run.seen)
        if state in {"Completed", "Failed"}:
            if run.ended is None:
                run.ended = max(moment.at if moment.live else self._last_end(run, moment), run.submitted)
            if not self._is_told_by_job(gang):
                self._end(gang, run, run.ended, state, group.status.ending)
        elif gang.ended is None or not self._is_told_by_job(gang):
            gang.state = state
            gang.ended = None
        if state in {"Running", "Degraded"} and gang.started is None and moment.live:
            gang.started = moment.at
            self._entries.happens(run, groups.News(What.STARTED, moment.at, run.seen.epoch, groups.ALL_THERE))

    def _last_end(self, run: Run, moment: Moment) -> int:
        ends = [each.ended for each in self._entries.changes.holdings.values() if each.run == run.uid and each.ended]
        return max(ends, default=moment.at)

    def _has_started(self, gang: Gang, run: Run, at: int) -> None:
        """Tell of the start of a gang that has completed, and whose start nobody has written or seen."""
        if gang.started is None:
            gang.started = at
            self._entries.happens(
                run, groups.News(What.STARTED, at, run.seen.epoch, "by the time of its end; it was not seen")
            )

    def _end(self, gang: Gang, run: Run, at: int, state: str, text: str) -> None:
        if gang.ended is None or gang.state != state:
            if state == "Completed":
                self._has_started(gang, run, at)
            gang.ended, gang.state = at, state
            words = state.lower() + (f": {text}" if text and state != "Deleted" else "")
            self._entries.happens(run, groups.News(What.ENDED, at, run.seen.epoch, words, subject=state))

    # Placements

    def placement(self, new: Placement, moment: Moment) -> None:
        """Look at a Placement."""
        run = self._entries.runs.get(new.spec.pod_group_uid)
        if run is not None:
            version = int(new.metadata.resource_version or 0)
            if version > run.seen.placement_version:
                run.seen.placement_version = version
                self._placed(run, new, moment)
                self._entries.touch(self._entries.gangs[run.gang], run)

    def _placed(self, run: Run, placement: Placement, moment: Moment) -> None:
        gang = self._entries.gangs[run.gang]
        for news in groups.placed(run.seen, placement, moment):
            self._entries.happens(run, news)
            if news.what is What.STARTED:
                gang.started = gang.started or news.at
            if news.what is What.PLANNED and gang.state == "Waiting":
                gang.state = "Starting"

    # Volcano Jobs: their PodGroup goes at each restart, and with the end

    def job(self, new: RecordedJob, moment: Moment) -> None:
        """Look at a Volcano Job."""
        meta, status = new.metadata, new.status
        seen = self._jobs.get(meta.uid, (-1, 0, ""))
        now = int(meta.resource_version or 0), status.retry_count, status.state.phase
        if now[0] <= seen[0]:
            return
        self._jobs[meta.uid] = now
        gang = self._entries.gangs.get(self._entries.of_owner.get(meta.uid, ""))
        if gang is None or now[1:] == seen[1:]:
            return
        before = gang.state, gang.ended, gang.user
        gang.user = gang.user or user_of(meta)
        for news in groups.of_job(status, moment):
            if news.what is What.ENDED and news.subject == "Completed":
                self._has_started(gang, _alone(gang, meta.uid), news.at)
            self._entries.happens(_alone(gang, meta.uid), news)
        phase = groups.JOB_STATES.get(status.state.phase)
        if phase is not None:
            gang.state, gang.ended = phase, gang.ended or moment.of(status.state.last_transition_time)
        if (gang.state, gang.ended, gang.user) != before:
            self._entries.touch(gang)

    def job_gone(self, uid: str, moment: Moment) -> None:
        """Take in that a Volcano Job is not there any more."""
        self._jobs.pop(uid, None)
        gang = self._entries.gangs.get(self._entries.of_owner.pop(uid, ""))
        if gang is None:
            return
        if gang.ended is None:
            self._end(gang, _alone(gang, uid), moment.at, "Deleted", "")
            self._entries.touch(gang)
        self._entries.forget(gang)


def _alone(gang: Gang, uid: str) -> Run:
    """Return a stand-in for the run of a Job, under which what happens to the Job itself is told."""
    return Run(uid=uid, gang=gang.id, submitted=gang.submitted)
