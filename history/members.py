"""Processing of observed pods, from which each member's events and resources, and the gang's request, are derived.

Pure.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from history import gangruns, groups, pods, spares
from history.entries import UID_CHARS, Entries, user_of
from history.model import NAME_CHARS, TEXT_CHARS, GangRun, Holding, MemberEnd, RecordedGang, What, clean
from history.pods import Ended, ObservationTime, RecordedPod
from muster.api.limits import EPOCH, TASKS
from muster.api.muster.gang import DEFAULT_POD_SET, epoch_of
from muster.api.ranges import natural
from muster.resources.vector import add, maximum, subtract
from muster.workloads.table import slot_of, task_of

PODS_ONLY: Final = "pods-"
"""Prefix of the identifiers of runs that consist of pods without a PodGroup."""


def pod(entries: Entries, new: RecordedPod, moment: ObservationTime) -> None:
    """Process an observed pod."""
    meta = new.metadata
    if meta.uid in entries.closed:
        return
    holding = entries.holdings.get(meta.uid)
    run = entries.runs.get(holding.run) if holding else _run_of_pod(entries, new, moment)
    if run is not None:
        _of_gang(entries, entries.gangs[run.gang], run, new, moment)
    if holding is None and run is not None and new.spec.node_name:
        holding = _bound(entries, new, run, moment)
    if holding is None:
        return
    _charge_more(entries, holding, new)
    if holding.ran_from is None and (ran := pods.ran_from(new, moment)) is not None:
        holding.ran_from = max(ran, holding.bound)
        entries.changed(holding)
        _count_members(entries, holding.run, entries.begun, 1)
    end = pods.ended(new, moment)
    if end is not None:
        _close(entries, holding, end)
        return
    reason = pods.disrupted(new)
    if reason is not None and reason != holding.reason:
        holding.reason = reason
        entries.why[meta.uid] = pods.why(new)
        entries.changed(holding)


def _charge_more(entries: Entries, holding: Holding, pod: RecordedPod) -> None:
    """Raise the amounts charged for a pod that has not started, if its node now offers more resources.

    A new node may register its GPUs only after pods have been bound to the node.
    """
    offered = entries.offers(holding.node)
    if offered is None or holding.ran_from is not None:
        return
    more = maximum(holding.amounts, pods.amounts_of(pod, offered))
    if more != holding.amounts:
        holding.amounts = more
        entries.changed(holding)


def _of_gang(entries: Entries, gang: RecordedGang, run: GangRun, pod: RecordedPod, moment: ObservationTime) -> None:
    """Record what a pod shows about its gang: creator, checkpoint, request, and resources per member."""
    if not gang.user and (user := user_of(pod.metadata)):
        gang.user = user
        entries.touch(gang)
    entries.save(gang, pod.metadata, moment)
    _asks(entries, run, pod)
    shapes, slot = entries.shapes.setdefault(run.uid, {}), slot_of(pod.metadata)
    pod_set = clean(slot.pod_set if slot else task_of(pod.metadata) or DEFAULT_POD_SET, NAME_CHARS)
    if pod_set in shapes or len(shapes) < TASKS.value:
        shapes[pod_set] = pods.amounts_of(pod, entries.offers(pod.spec.node_name))


def pod_gone(entries: Entries, uid: str, moment: ObservationTime, last: RecordedPod | None = None) -> None:
    """Record that a pod was deleted; `last` is its last state, if known."""
    holding = entries.holdings.get(uid)
    if holding is not None:
        known = Ended(moment.at, MemberEnd(holding.reason or MemberEnd.DELETED), entries.why.get(uid, ""))
        _close(entries, holding, known if last is None else pods.gone(last, moment))
    _asks_no_more(entries, uid)
    entries.remember(uid)


def unseen(entries: Entries, uids: Iterable[str], since: int, until: int) -> int:
    """Record that pods have left their nodes, at an unknown time between `since` and `until`.

    The middle of the interval is recorded as the time. Return the number of pods that had a node until now.
    """
    half = max(0, until - since) // 2
    count = 0
    for uid in [*uids]:
        holding = entries.holdings.get(uid)
        if holding is not None:
            at = max(since + half, holding.bound)
            _close(entries, holding, Ended(at, MemberEnd(holding.reason or MemberEnd.UNSEEN), within=half))
            count += 1
    return count


def _run_of_pod(entries: Entries, pod: RecordedPod, moment: ObservationTime) -> GangRun | None:
    """Return the run to which a pod belongs.

    Return None for pods of other schedulers, and for pods without a PodGroup that have no node yet.
    """
    name = pods.belongs(pod)
    if name is None:
        return None
    key, queue = f"{pod.metadata.namespace}/{name}", pods.queue_of(pod)
    for group in (key, f"{key}/{queue}"):
        run = entries.runs.get(entries.run_of.get(group, ""))
        if run is not None:
            return run
    return _without_group(entries, pod, f"{key}/{queue}", moment) if pod.spec.node_name and not pod.finished else None


def _without_group(entries: Entries, pod: RecordedPod, key: str, moment: ObservationTime) -> GangRun:
    """Return the run of a pod whose PodGroup was never observed.

    Pods with the same owner and queue share a run; each pod without an owner has a run of its own.
    """
    meta, owner, queue = pod.metadata, pod.metadata.controller, pods.queue_of(pod)
    identity = f"{meta.namespace}/{clean(owner.uid, UID_CHARS) if owner else meta.uid}"
    gang = entries.gangs.get(entries.of_owner.get(identity, identity)) or RecordedGang(
        id=identity,
        namespace=meta.namespace,
        name=clean(owner.name, NAME_CHARS) if owner else meta.name,
        kind=clean(owner.kind, UID_CHARS) if owner else "Pod",
        queue=queue,
        user=user_of(meta),
        submitted=moment.time_of(meta.creation_timestamp),
        state="Running",
    )
    entries.gangs[gang.id] = gang
    return entries.begin(gang, f"{PODS_ONLY}{meta.uid}", key, gang.submitted, queue)


def _bound(entries: Entries, pod: RecordedPod, run: GangRun, moment: ObservationTime) -> Holding:
    holding = Holding(
        pod=pod.metadata.uid,
        name=pod.metadata.name,
        gang=run.gang,
        run=run.uid,
        queue=run.queue,
        user=entries.gangs[run.gang].user,
        epoch=min(epoch_of(pod.metadata) or run.seen.epoch, EPOCH.value),
        node=pod.spec.node_name,
        amounts=pods.amounts_of(pod, entries.offers(pod.spec.node_name)),
        bound=moment.time_of(pods.bound_at(pod)),
        within=moment.error(pods.bound_at(pod)),
    )
    entries.opened(holding)
    spares.settle(entries, run.uid, holding.bound)
    return holding


def _close(entries: Entries, holding: Holding, end: Ended) -> None:
    """Record that a member has left its node.

    If the member's run has no PodGroup and no other member with a node, also end the run.
    """
    holding.ended = max(end.at, holding.bound)
    holding.reason = end.reason
    holding.within += end.within
    if holding.ran_from is not None:
        holding.ran_from = min(holding.ran_from, holding.ended)
        if end.reason == MemberEnd.FAILED and holding.run in entries.runs:
            entries.failed[holding.run] += 1
        if end.reason != MemberEnd.COMPLETED:
            _count_members(entries, holding.run, entries.begun, -1)
    gang = entries.gangs.get(holding.gang)
    saved = gang.saved if gang else None
    holding.saved = saved if saved is not None and holding.bound <= saved <= holding.ended else None
    entries.ended(holding)
    entries.why.pop(holding.pod, None)
    _asks_no_more(entries, holding.pod)
    spares.settle(entries, holding.run, holding.ended)
    run = entries.runs.get(holding.run)
    if run is not None:
        if (what := _EVENT_OF_END.get(end.reason)) is not None:
            news = _of_member(what, holding, end)
            if _is_first(run, news):
                entries.happens(run, news)
            known = run.seen.failure  # the owner may have deleted the pod, to have fewer pods
            deleted = known.endswith(pods.DELETED) and what is What.FAILED_MEMBER
            order = end.failed_at, natural(holding.name)
            earlier = what is What.FAILED_MEMBER and order < (run.seen.failed_at, natural(known.partition(" ")[0]))
            if deleted or earlier or (not known and what in {What.FAILED_MEMBER, What.DELETED_MEMBER}):
                run.seen.failure = clean(news.text.replace(_FIRST, ""), TEXT_CHARS)
                run.seen.failed_at = end.failed_at if what is What.FAILED_MEMBER else ""
                entries.touch(entries.gangs[run.gang], run)
        if run.uid.startswith(PODS_ONLY) and not entries.bound[run.uid]:
            gangruns.group_gone(entries, run.uid, ObservationTime(end.at, live=True))
    entries.less_alive(holding.gang)


def _is_first(run: GangRun, news: groups.NewGangEvent) -> bool:
    """Return False if the placement already has an event of this kind and only the first one is recorded."""
    if news.what not in _TOGETHER:
        return True
    last, run.seen.together[news.what] = run.seen.together.get(news.what), news.epoch
    return last != news.epoch


def _count_members(entries: Entries, run: str, counter: Counter[str], more: int) -> None:
    """Change one of the counters of a run's members, and derive the gang's state from the counters again."""
    if run in entries.runs:
        counter[run] += more
        gangruns.refresh(entries, entries.gangs[entries.runs[run].gang], entries.runs[run])


def _asks(entries: Entries, run: GangRun, pod: RecordedPod) -> None:
    """Add a pod's requests to its gang's request, unless the pod has ended or is already counted."""
    uid = pod.metadata.uid
    if uid in entries.members or pod.finished or pod.metadata.deletion_timestamp:
        return
    amounts = pods.amounts_of(pod)
    entries.members[uid] = run.uid, amounts
    _count_members(entries, run.uid, entries.unended, 1)
    together = entries.together[run.uid] = add(entries.together.get(run.uid, {}), amounts)
    more = maximum(run.asked, together)
    if more != run.asked:
        run.asked = more
        entries.touch(entries.gangs[run.gang], run)


def _asks_no_more(entries: Entries, uid: str) -> None:
    run, amounts = entries.members.pop(uid, ("", {}))
    if run:
        _count_members(entries, run, entries.unended, -1)
    if run in entries.together:
        entries.together[run] = subtract(entries.together[run], amounts)


_EVENT_OF_END = {
    MemberEnd.EVICTED: What.EVICTED_MEMBER,
    MemberEnd.FAILED: What.FAILED_MEMBER,
    MemberEnd.LOST: What.LOST_MEMBER,
    MemberEnd.DELETED: What.DELETED_MEMBER,
}
"""Maps the reason for a member's end to the kind of event that it causes; other ends cause no event."""
_TOGETHER: Final = frozenset({What.EVICTED_MEMBER, What.DELETED_MEMBER})
"""Kinds of events that usually affect several members at once; of each kind, only a placement's first event is
recorded."""
_FIRST: Final = ", the first of its placement"


def _of_member(what: What, holding: Holding, end: Ended) -> groups.NewGangEvent:
    """Return the event of a member's end, if any; members that were evicted or deleted together share one event."""
    together = what in _TOGETHER
    title = f"{holding.name} on {holding.node}{_FIRST if together else ''}"
    text = f"{title}: {end.text}" if end.text else title
    return groups.NewGangEvent(what, end.at, holding.epoch, text, "" if together else holding.name, [holding.node])
