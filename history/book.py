"""The book of all gangs that live: what was recorded of each, so that a look at an object tells what is new. Pure.

A look is an object of the API and a `Moment`; its result gathers in `changes`, which the recorder writes. Looks may
come more than once and out of order (a list beside a watch): an older version of an object is no news, and what has
ended stays ended. The book can be made again from the store (`reopen`), with what is open there.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable

from history import groups, pods
from history.groups import RecordedJob
from history.model import (
    HAPPENINGS_KEPT,
    MS,
    NAME_CHARS,
    NODES_KEPT,
    TEXT_CHARS,
    Changes,
    End,
    Gang,
    Gap,
    Happening,
    Holding,
    Run,
    What,
    clean,
)
from history.pods import Ended, Moment, RecordedPod
from muster.api import names
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.limits import EPOCH
from muster.api.muster.checkpoint import checkpoint_of
from muster.api.muster.gang import epoch_of
from muster.api.muster.placement import Placement, noted
from muster.api.volcano.scheduling import PodGroup
from muster.resources.vector import Vector, add, maximum, subtract

_REMEMBERED = 200_000
"""Pods whose end is remembered, for late looks at them."""
_USER_CHARS = 512
_UID_CHARS = 63
PODS_ONLY = "pods-"
"""Begins the names of runs that are of pods without a PodGroup."""


class Book:
    """Gangs, runs and holdings that are open; used by one thread."""

    def __init__(self) -> None:
        self.changes = Changes()
        self.gangs: dict[str, Gang] = {}
        self.runs: dict[str, Run] = {}
        self.holdings: dict[str, Holding] = {}
        self._run_of: dict[str, str] = {}
        """Namespace and name of a PodGroup → UID of its run."""
        self._members: dict[str, tuple[str, Vector]] = {}
        """UID of a pod that has not ended → its run, and what it asks for."""
        self._together: dict[str, Vector] = {}
        """Run → the sum of these."""
        self._alive: Counter[str] = Counter()
        """Gang → the number of its runs and holdings that are open."""
        self._why: dict[str, str] = {}
        """UID of a pod that is about to be evicted → the reason, in a sentence."""
        self._closed: OrderedDict[str, None] = OrderedDict()
        self._of_owner: dict[str, str] = {}
        """UID of a Volcano Job → its gang."""
        self._jobs: dict[str, tuple[int, int, str]] = {}
        """UID of a Volcano Job → version, restarts and phase that were seen."""

    def reopen(self, gangs: Iterable[Gang], runs: Iterable[Run], holdings: Iterable[Holding]) -> None:
        """Take in what is open in the store."""
        self.gangs.update((each.id, each) for each in gangs)
        self._of_owner.update((each.owner, each.id) for each in self.gangs.values() if each.owner)
        for run in runs:
            self.runs[run.uid] = run
            self._run_of[run.seen.group] = run.uid
            self._alive[run.gang] += 1
        for holding in holdings:
            self.holdings[holding.pod] = holding
            self._alive[holding.gang] += 1

    @property
    def owners(self) -> set[str]:
        """UIDs of the Volcano Jobs that gangs belong to, and that have not gone."""
        return set(self._of_owner)

    def take(self) -> Changes:
        """Return what has changed since the last time."""
        taken, self.changes = self.changes, Changes()
        return taken

    # PodGroups

    def group(self, new: PodGroup, moment: Moment) -> None:
        """Look at a PodGroup."""
        run = self.runs.get(new.metadata.uid) or self._opened(new, moment)
        if run is None or int(new.metadata.resource_version or 0) <= run.seen.group_version:
            return
        run.seen.group_version = int(new.metadata.resource_version or 0)
        run.asked = maximum(run.asked, groups.minimum(new))
        gang = self.gangs[run.gang]
        gang.queue = clean(new.spec.queue, NAME_CHARS) or gang.queue
        gang.user = gang.user or _user(new.metadata)
        self._save(gang, new.metadata, moment)
        placement = noted(new)
        if placement is not None:
            self._placed(run, placement, moment)
        for news in groups.news(run.seen, new, moment):
            self._happens(run, news)
        self._state(gang, run, new, moment)
        self._touch(gang, run)

    def _opened(self, new: PodGroup, moment: Moment) -> Run | None:
        """Return the run of a PodGroup that was not known; None if it has ended already."""
        meta = new.metadata
        over = new.status.phase == "Completed" and not moment.live  # before anybody looked, or recorded and closed
        if not meta.uid or meta.uid in self._closed or over:
            return None
        workload, owner = groups.workload(new), clean(groups.owner_uid(new), _UID_CHARS)
        created = moment.of(meta.creation_timestamp)
        identity = f"{clean(workload.uid, _UID_CHARS) or meta.uid}/{meta.name}"
        known = self.gangs.get(identity)
        gang = known or Gang(
            id=identity,
            namespace=meta.namespace,
            name=clean(workload.name, NAME_CHARS),
            kind=clean(workload.kind, _UID_CHARS),
            queue=clean(new.spec.queue, NAME_CHARS),
            submitted=created,
        )
        gang.ended, gang.owner = None, owner
        self.gangs[gang.id] = gang
        if owner:
            self._of_owner[owner] = gang.id
        return self._begin(gang, meta.uid, meta.key, created)

    def _begin(self, gang: Gang, uid: str, group: str, created: int) -> Run:
        run = Run(uid=uid, gang=gang.id, submitted=created)
        run.seen.group = group
        self.runs[uid] = run
        self._run_of[group] = uid
        self._alive[gang.id] += 1
        self._happens(run, groups.News(What.SUBMITTED, created, epoch=0, text=f"to queue {gang.queue}"))
        self._touch(gang, run)
        return run

    def group_gone(self, uid: str, moment: Moment, stamp: str | None = None) -> None:
        """Take in that a PodGroup is not there any more; `stamp` is when it was asked to go, if that is known."""
        run = self.runs.pop(uid, None)
        if run is None:
            return
        self._remember(uid)
        if self._run_of.get(run.seen.group) == uid:
            del self._run_of[run.seen.group]
        self._together.pop(uid, None)
        gang = self.gangs[run.gang]
        at = max(moment.of(stamp), run.submitted)
        if run.ended is None:
            run.ended = at
        if gang.ended is None and not self._is_told_by_job(gang):
            self._end(gang, run, at, "Deleted", "it was deleted")
        self._touch(gang, run)
        self._less_alive(gang.id)

    def _is_told_by_job(self, gang: Gang) -> bool:
        """Return True for the gang of a Volcano Job that has not gone: its PodGroup also goes at restarts."""
        return gang.owner in self._of_owner

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
            self._happens(run, groups.News(What.STARTED, moment.at, run.seen.epoch, groups.ALL_THERE))

    def _last_end(self, run: Run, moment: Moment) -> int:
        ends = [each.ended for each in self.changes.holdings.values() if each.run == run.uid and each.ended]
        return max(ends, default=moment.at)

    def _has_started(self, gang: Gang, run: Run, at: int) -> None:
        """Tell of the start of a gang that has completed, and whose start nobody has written or seen."""
        if gang.started is None:
            gang.started = at
            self._happens(run, groups.News(What.STARTED, at, run.seen.epoch, "by the time of its end; it was not seen"))

    def _end(self, gang: Gang, run: Run, at: int, state: str, text: str) -> None:
        if gang.ended is None or gang.state != state:
            if state == "Completed":
                self._has_started(gang, run, at)
            gang.ended, gang.state = at, state
            words = state.lower() + (f": {text}" if text and state != "Deleted" else "")
            self._happens(run, groups.News(What.ENDED, at, run.seen.epoch, words, subject=state))

    # Placements

    def placement(self, new: Placement, moment: Moment) -> None:
        """Look at a Placement."""
        run = self.runs.get(new.spec.pod_group_uid)
        if run is not None:
            version = int(new.metadata.resource_version or 0)
            if version > run.seen.placement_version:
                run.seen.placement_version = version
                self._placed(run, new, moment)
                self._touch(self.gangs[run.gang], run)

    def _placed(self, run: Run, placement: Placement, moment: Moment) -> None:
        gang = self.gangs[run.gang]
        for news in groups.placed(run.seen, placement, moment):
            self._happens(run, news)
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
        gang = self.gangs.get(self._of_owner.get(meta.uid, ""))
        if gang is None or now[1:] == seen[1:]:
            return
        before = gang.state, gang.ended, gang.user
        gang.user = gang.user or _user(meta)
        for news in groups.of_job(status, moment):
            if news.what is What.ENDED and news.subject == "Completed":
                self._has_started(gang, _alone(gang, meta.uid), news.at)
            self._happens(_alone(gang, meta.uid), news)
        phase = groups.JOB_STATES.get(status.state.phase)
        if phase is not None:
            gang.state, gang.ended = phase, gang.ended or moment.of(status.state.last_transition_time)
        if (gang.state, gang.ended, gang.user) != before:
            self._touch(gang)

    def job_gone(self, uid: str, moment: Moment) -> None:
        """Take in that a Volcano Job is not there any more."""
        self._jobs.pop(uid, None)
        gang = self.gangs.get(self._of_owner.pop(uid, ""))
        if gang is None:
            return
        if gang.ended is None:
            self._end(gang, _alone(gang, uid), moment.at, "Deleted", "")
            self._touch(gang)
        self._forget(gang)

    # Pods

    def pod(self, new: RecordedPod, moment: Moment) -> None:
        """Look at a pod."""
        meta = new.metadata
        if meta.uid in self._closed:
            return
        holding = self.holdings.get(meta.uid)
        run = self.runs.get(holding.run) if holding else self._run_of_pod(new, moment)
        if run is not None:
            self._of_gang(self.gangs[run.gang], run, new, moment)
        if holding is None and run is not None and new.spec.node_name:
            holding = self._bound(new, run, moment)
        if holding is None:
            return
        if holding.ran_from is None and (ran := pods.ran_from(new, moment)) is not None:
            holding.ran_from = max(ran, holding.bound)
            self._changed(holding)
        end = pods.ended(new, moment)
        if end is not None:
            self._close(holding, end)
            return
        goes = pods.disrupted(new)
        if goes is not None and goes != holding.reason:
            holding.reason = goes
            self._why[meta.uid] = pods.why(new)
            self._changed(holding)

    def _of_gang(self, gang: Gang, run: Run, pod: RecordedPod, moment: Moment) -> None:
        """Take in what a pod says about its gang."""
        if not gang.user and (user := _user(pod.metadata)):
            gang.user = user
            self._touch(gang)
        self._save(gang, pod.metadata, moment)
        self._asks(run, pod)

    def pod_gone(self, uid: str, moment: Moment, last: RecordedPod | None = None) -> None:
        """Take in that a pod is not there any more; `last` is how it was, if that is known."""
        holding = self.holdings.get(uid)
        if holding is not None:
            known = Ended(moment.at, End(holding.reason or End.DELETED), self._why.get(uid, ""))
            self._close(holding, known if last is None else pods.gone(last, moment))
        self._asks_no_more(uid)
        self._remember(uid)

    def unseen(self, uids: Iterable[str], since: int, until: int) -> int:
        """Close holdings of pods that ended between these times, nobody knows when; return their number."""
        half = max(0, until - since) // 2
        count = 0
        for uid in [*uids]:
            holding = self.holdings.get(uid)
            if holding is not None:
                at = max(since + half, holding.bound)
                self._close(holding, Ended(at, End(holding.reason or End.UNSEEN), within=half))
                count += 1
        return count

    def gap(self, since: int, until: int, text: str) -> None:
        """Note a time for which nothing was recorded."""
        self.changes.gaps.append(Gap(since=since, until=until, text=text))

    def _run_of_pod(self, pod: RecordedPod, moment: Moment) -> Run | None:
        """Return the run that a pod is a member of; None for a pod of others, and until it is bound without one."""
        name = pods.belongs(pod)
        if name is None:
            return None
        key = f"{pod.metadata.namespace}/{name}"
        run = self.runs.get(self._run_of.get(key, ""))
        if run is not None or not pod.spec.node_name or (pod.finished and not moment.live):
            return run
        return self._without_group(pod, key, moment)

    def _without_group(self, pod: RecordedPod, key: str, moment: Moment) -> Run:
        """Return the run of a pod whose PodGroup nobody has seen: one for its owner, else for itself."""
        meta, owner = pod.metadata, pod.metadata.controller
        uid = clean(owner.uid, _UID_CHARS) if owner else meta.uid
        gang = self.gangs.get(self._of_owner.get(uid, uid)) or Gang(
            id=uid,
            namespace=meta.namespace,
            name=clean(owner.name, NAME_CHARS) if owner else meta.name,
            kind=clean(owner.kind, _UID_CHARS) if owner else "Pod",
            queue=meta.labels.get(names.QUEUE) or names.DEFAULT_QUEUE,
            user=_user(meta),
            submitted=moment.of(meta.creation_timestamp),
            state="Running",
        )
        self.gangs[gang.id] = gang
        return self._begin(gang, f"{PODS_ONLY}{meta.uid}", key, gang.submitted)

    def _bound(self, pod: RecordedPod, run: Run, moment: Moment) -> Holding:
        holding = Holding(
            pod=pod.metadata.uid,
            name=pod.metadata.name,
            gang=run.gang,
            run=run.uid,
            epoch=min(epoch_of(pod.metadata) or run.seen.epoch, EPOCH.value),
            node=pod.spec.node_name,
            amounts=pods.amounts_of(pod),
            bound=moment.of(pods.bound_at(pod)),
            within=moment.error(pods.bound_at(pod)),
        )
        self.holdings[holding.pod] = holding
        self._alive[run.gang] += 1
        self._changed(holding)
        return holding

    def _close(self, holding: Holding, end: Ended) -> None:
        holding.ended = max(end.at, holding.bound)
        holding.reason = end.reason
        holding.within += end.within
        if holding.ran_from is not None:
            holding.ran_from = min(holding.ran_from, holding.ended)
        gang = self.gangs.get(holding.gang)
        saved = gang.saved if gang else None
        holding.saved = saved if saved is not None and holding.bound <= saved <= holding.ended else None
        self._changed(holding)
        del self.holdings[holding.pod]
        self._why.pop(holding.pod, None)
        self._remember(holding.pod)
        self._asks_no_more(holding.pod)
        run = self.runs.get(holding.run)
        if run is not None:
            for what, reason in _TOLD.items():
                if reason == end.reason:
                    self._happens(run, _of_member(what, holding, end))
            self._members_gone(run, Moment(end.at, live=True))
        self._less_alive(holding.gang)

    def _asks(self, run: Run, pod: RecordedPod) -> None:
        """Count a pod among those that its gang asks for, unless it has ended."""
        uid = pod.metadata.uid
        if uid in self._members or pod.finished or pod.metadata.deletion_timestamp:
            return
        amounts = pods.amounts_of(pod)
        self._members[uid] = run.uid, amounts
        together = self._together[run.uid] = add(self._together.get(run.uid, {}), amounts)
        more = maximum(run.asked, together)
        if more != run.asked:
            run.asked = more
            self._touch(self.gangs[run.gang], run)

    def _asks_no_more(self, uid: str) -> None:
        run, amounts = self._members.pop(uid, ("", {}))
        if run in self._together:
            self._together[run] = subtract(self._together[run], amounts)

    # Common to all

    def _save(self, gang: Gang, meta: ObjectMeta, moment: Moment) -> None:
        """Note the checkpoint that an object tells of, if it is of this time: anybody may write one."""
        text = meta.annotations.get(names.CHECKPOINT)
        told = checkpoint_of(text) if text else None
        if told is not None and gang.submitted <= told.at * MS <= moment.at:
            at = round(told.at * MS)
            if at > (gang.saved or 0):
                gang.saved = at
                self._touch(gang)

    def _happens(self, run: Run, news: groups.News) -> None:
        run.seen.happened += 1
        if run.seen.happened > HAPPENINGS_KEPT:
            return
        self.changes.happenings.append(
            Happening(
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

    def _touch(self, gang: Gang, run: Run | None = None) -> None:
        self.changes.gangs[gang.id] = gang
        if run is not None:
            self.changes.runs[run.uid] = run

    def _changed(self, holding: Holding) -> None:
        self.changes.holdings[holding.pod] = holding

    def _remember(self, uid: str) -> None:
        self._closed[uid] = None
        if len(self._closed) > _REMEMBERED:
            self._closed.popitem(last=False)

    def _less_alive(self, gang: str) -> None:
        self._alive[gang] -= 1
        if known := self.gangs.get(gang):
            self._forget(known)

    def _members_gone(self, run: Run, moment: Moment) -> None:
        """End the run of pods without a PodGroup with the last of them."""
        if run.uid.startswith(PODS_ONLY) and not any(each.run == run.uid for each in self.holdings.values()):
            self.group_gone(run.uid, moment)

    def _forget(self, gang: Gang) -> None:
        """Drop a gang that has ended and of which nothing is there any more."""
        if gang.ended is not None and self._alive[gang.id] <= 0 and gang.owner not in self._of_owner:
            self.gangs.pop(gang.id, None)
            del self._alive[gang.id]


_TOLD = {What.EVICTED_MEMBER: End.EVICTED, What.FAILED_MEMBER: End.FAILED, What.LOST_MEMBER: End.LOST}
"""Ends of single members that are told."""


def _of_member(what: What, holding: Holding, end: Ended) -> groups.News:
    """Return what is told of a member's end; of members that were evicted together, once for all."""
    together = what is What.EVICTED_MEMBER
    words = f"{holding.name} on {holding.node}{' and others of its placement' if together else ''}"
    text = f"{words}: {end.text}" if end.text else words
    return groups.News(what, end.at, holding.epoch, text, "" if together else holding.name, [holding.node])


def _alone(gang: Gang, uid: str) -> Run:
    """Return a stand-in for the run of a Job, under which what happens to the Job itself is told."""
    return Run(uid=uid, gang=gang.id, submitted=gang.submitted)


def _user(meta: ObjectMeta) -> str:
    return clean(meta.annotations.get(names.CREATED_BY, ""), _USER_CHARS)
