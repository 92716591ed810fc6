"""The members of gangs: the room that each holds of its node, and what they ask for together. Pure."""

from collections.abc import Iterable
from typing import Final

from history import groups, pods
from history.entries import UID_CHARS, Entries, user_of
from history.lives import Lives
from history.model import NAME_CHARS, End, Gang, Holding, Run, What, clean
from history.pods import Ended, Moment, RecordedPod
from muster.api import names
from muster.api.limits import EPOCH
from muster.api.muster.gang import epoch_of
from muster.resources.vector import Vector, add, maximum, subtract

PODS_ONLY: Final = "pods-"
"""Begins the names of runs that are of pods without a PodGroup."""


class Members:
    """Takes in looks at pods."""

    def __init__(self, entries: Entries, lives: Lives) -> None:
        self._entries = entries
        self._lives = lives
        self._members: dict[str, tuple[str, Vector]] = {}
        """UID of a pod that has not ended → its run, and what it asks for."""
        self._together: dict[str, Vector] = {}
        """Run → the sum of these."""
        self._why: dict[str, str] = {}
        """UID of a pod that is about to be evicted → the reason, in a sentence."""

    def run_gone(self, uid: str) -> None:
        """Take in that a run has ended, whose members are counted no more."""
        self._together.pop(uid, None)

    def pod(self, new: RecordedPod, moment: Moment) -> None:
        """Look at a pod."""
        meta = new.metadata
        if meta.uid in self._entries.closed:
            return
        holding = self._entries.holdings.get(meta.uid)
        run = self._entries.runs.get(holding.run) if holding else self._run_of_pod(new, moment)
        if run is not None:
            self._of_gang(self._entries.gangs[run.gang], run, new, moment)
        if holding is None and run is not None and new.spec.node_name:
            holding = self._bound(new, run, moment)
        if holding is None:
            return
        if holding.ran_from is None and (ran := pods.ran_from(new, moment)) is not None:
            holding.ran_from = max(ran, holding.bound)
            self._entries.changed(holding)
        end = pods.ended(new, moment)
        if end is not None:
            self._close(holding, end)
            return
        goes = pods.disrupted(new)
        if goes is not None and goes != holding.reason:
            holding.reason = goes
            self._why[meta.uid] = pods.why(new)
            self._entries.changed(holding)

    def _of_gang(self, gang: Gang, run: Run, pod: RecordedPod, moment: Moment) -> None:
        """Take in what a pod says about its gang."""
        if not gang.user and (user := user_of(pod.metadata)):
            gang.user = user
            self._entries.touch(gang)
        self._entries.save(gang, pod.metadata, moment)
        self._asks(run, pod)

    def pod_gone(self, uid: str, moment: Moment, last: RecordedPod | None = None) -> None:
        """Take in that a pod is not there any more; `last` is how it was, if that is known."""
        holding = self._entries.holdings.get(uid)
        if holding is not None:
            known = Ended(moment.at, End(holding.reason or End.DELETED), self._why.get(uid, ""))
            self._close(holding, known if last is None else pods.gone(last, moment))
        self._asks_no_more(uid)
        self._entries.remember(uid)

    def unseen(self, uids: Iterable[str], since: int, until: int) -> int:
        """Close holdings of pods that ended between these times, nobody knows when; return their number."""
        half = max(0, until - since) // 2
        count = 0
        for uid in [*uids]:
            holding = self._entries.holdings.get(uid)
            if holding is not None:
                at = max(since + half, holding.bound)
                self._close(holding, Ended(at, End(holding.reason or End.UNSEEN), within=half))
                count += 1
        return count

    def _run_of_pod(self, pod: RecordedPod, moment: Moment) -> Run | None:
        """Return the run that a pod is a member of; None for a pod of others, and until it is bound without one."""
        name = pods.belongs(pod)
        if name is None:
            return None
        key = f"{pod.metadata.namespace}/{name}"
        run = self._entries.runs.get(self._entries.run_of.get(key, ""))
        if run is not None or not pod.spec.node_name or pod.finished:
            return run
        return self._without_group(pod, key, moment)

    def _without_group(self, pod: RecordedPod, key: str, moment: Moment) -> Run:
        """Return the run of a pod whose PodGroup nobody has seen: one for its owner, else for itself."""
        meta, owner = pod.metadata, pod.metadata.controller
        uid = clean(owner.uid, UID_CHARS) if owner else meta.uid
        gang = self._entries.gangs.get(self._entries.of_owner.get(uid, uid)) or Gang(
            id=uid,
            namespace=meta.namespace,
            name=clean(owner.name, NAME_CHARS) if owner else meta.name,
            kind=clean(owner.kind, UID_CHARS) if owner else "Pod",
            queue=meta.labels.get(names.QUEUE) or names.DEFAULT_QUEUE,
            user=user_of(meta),
            submitted=moment.of(meta.creation_timestamp),
            state="Running",
        )
        self._entries.gangs[gang.id] = gang
        return self._entries.begin(gang, f"{PODS_ONLY}{meta.uid}", key, gang.submitted)

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
        self._entries.opened(holding)
        return holding

    def _close(self, holding: Holding, end: Ended) -> None:
        holding.ended = max(end.at, holding.bound)
        holding.reason = end.reason
        holding.within += end.within
        if holding.ran_from is not None:
            holding.ran_from = min(holding.ran_from, holding.ended)
        gang = self._entries.gangs.get(holding.gang)
        saved = gang.saved if gang else None
        holding.saved = saved if saved is not None and holding.bound <= saved <= holding.ended else None
        self._entries.ended(holding)
        self._why.pop(holding.pod, None)
        self._asks_no_more(holding.pod)
        run = self._entries.runs.get(holding.run)
        if run is not None:
            for what, reason in _TOLD.items():
                if reason == end.reason:
                    self._entries.happens(run, _of_member(what, holding, end))
            self._members_gone(run, Moment(end.at, live=True))
        self._entries.less_alive(holding.gang)

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
            self._entries.touch(self._entries.gangs[run.gang], run)

    def _asks_no_more(self, uid: str) -> None:
        run, amounts = self._members.pop(uid, ("", {}))
        if run in self._together:
            self._together[run] = subtract(self._together[run], amounts)

    def _members_gone(self, run: Run, moment: Moment) -> None:
        """End the run of pods without a PodGroup with the last of them."""
        if run.uid.startswith(PODS_ONLY) and not any(each.run == run.uid for each in self._entries.holdings.values()):
            self._lives.group_gone(run.uid, moment)
            self.run_gone(run.uid)


_TOLD = {What.EVICTED_MEMBER: End.EVICTED, What.FAILED_MEMBER: End.FAILED, What.LOST_MEMBER: End.LOST}
"""Ends of single members that are told."""


def _of_member(what: What, holding: Holding, end: Ended) -> groups.News:
    """Return what is told of a member's end; of members that were evicted together, once for all."""
    together = what is What.EVICTED_MEMBER
    words = f"{holding.name} on {holding.node}{' and others of its placement' if together else ''}"
    text = f"{words}: {end.text}" if end.text else words
    return groups.News(what, end.at, holding.epoch, text, "" if together else holding.name, [holding.node])
