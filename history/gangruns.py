"""Processing of observed PodGroups, Placements and Volcano Jobs, from which events of whole gangs are derived. Pure."""

from msgspec.structs import replace

from history import groups, spares
from history.entries import UID_CHARS, Entries, user_of
from history.groups import RecordedJob
from history.model import NAME_CHARS, GangRun, RecordedGang, What, clean
from history.pods import ObservationTime
from muster.api.kubernetes.meta import Object
from muster.api.muster.placement import Placement
from muster.api.muster.placementnotes import noted
from muster.api.muster.states import State, facts_of, state_of, stopped
from muster.api.volcano.scheduling import SUSPENDED, PodGroup
from muster.resources.vector import maximum
from muster.workloads.owners import workload_of

# PodGroups


def group(entries: Entries, new: PodGroup, moment: ObservationTime) -> None:
    """Process an observed PodGroup."""
    run = entries.runs.get(new.metadata.uid) or _opened(entries, new, moment)
    if run is None or int(new.metadata.resource_version or 0) <= run.seen.group_version:
        return
    run.seen.group_version = int(new.metadata.resource_version or 0)
    run.asked = maximum(run.asked, groups.minimum(new))
    gang = entries.gangs[run.gang]
    for news in groups.edits(run.seen, run.queue, new, moment):
        entries.happens(run, news)
    entries.move(gang, run, groups.queue_of(new), max(moment.at, run.submitted))
    gang.user = run.user = gang.user or user_of(new.metadata)
    entries.save(gang, new.metadata, moment)
    placement = noted(new)
    if placement is not None:
        _record_placement(entries, run, placement, moment)
    for news in groups.news(run.seen, new, moment):
        entries.happens(run, news)
    _state(entries, gang, run, new, moment)
    entries.touch(gang, run)


def _opened(entries: Entries, new: PodGroup, moment: ObservationTime) -> GangRun | None:
    """Return the run of a new PodGroup; None if the PodGroup has already ended."""
    meta = new.metadata
    over = new.status.phase == "Completed" and not moment.live  # it ended before the first pass, or is already recorded
    if not meta.uid or meta.uid in entries.closed or over:
        return None
    workload, owner = workload_of(new), clean(groups.owner_uid(new), UID_CHARS)
    created = moment.time_of(meta.creation_timestamp)
    identity = f"{meta.namespace}/{clean(workload.uid, UID_CHARS) or meta.uid}/{meta.name}"
    known = entries.gangs.get(identity)
    gang = known or RecordedGang(
        id=identity,
        namespace=meta.namespace,
        name=clean(workload.name, NAME_CHARS),
        kind=clean(workload.kind, UID_CHARS),
        queue=groups.queue_of(new),
        submitted=created,
    )
    gang.ended, gang.owner = None, owner
    entries.gangs[gang.id] = gang
    if owner:
        entries.of_owner[gang.owner_key] = gang.id
    return entries.begin(gang, meta.uid, meta.key, created, groups.queue_of(new), asks=groups.asks(new))


def group_gone(entries: Entries, uid: str, moment: ObservationTime, stamp: str | None = None) -> None:
    """Record that a PodGroup was deleted; `stamp` is the time of the deletion request, if known."""
    entries.together.pop(uid, None)
    for counter in (entries.begun, entries.failed, entries.unended):
        counter.pop(uid, None)
    entries.shapes.pop(uid, None)
    run = entries.runs.pop(uid, None)
    if run is None:
        return
    spares.settle(entries, uid, moment.time_of(stamp))
    entries.remember(uid)
    entries.keep_asked(run)
    if entries.run_of.get(run.seen.group) == uid:
        del entries.run_of[run.seen.group]
    gang = entries.gangs[run.gang]
    at = max(moment.time_of(stamp), run.submitted)
    if run.ended is None:
        run.ended = at
    if gang.ended is None and not _is_reported_by_job(entries, gang):
        if run.seen.waits == SUSPENDED:
            gang.ended, gang.state = at, "Suspended"
        else:
            _end_run(entries, gang, run, at, "Deleted", "")
    entries.touch(gang, run)
    entries.deleted(gang.namespace, uid)
    entries.less_alive(gang.id)


def _is_reported_by_job(entries: Entries, gang: RecordedGang) -> bool:
    """Return True if the gang's Volcano Job still exists, because the Job's restart also deletes the PodGroup."""
    return gang.owner_key in entries.of_owner


def refresh(entries: Entries, gang: RecordedGang, run: GangRun) -> None:
    """Set the state of an unfinished gang from its PodGroup, its placement and its pods."""
    facts = run.seen.facts
    if facts is None or gang.ended is not None:
        return
    uid = run.uid
    begun = entries.begun[uid] > 0 or (entries.failed[uid] > 0 and not entries.unended[uid])
    state = state_of(replace(facts, placement=run.seen.phase or facts.placement, begun=begun))
    if state != gang.state:
        gang.state = state
        entries.touch(gang)


def _state(entries: Entries, gang: RecordedGang, run: GangRun, group: PodGroup, moment: ObservationTime) -> None:
    """Set the state and the end of a gang from its PodGroup."""
    facts, reported_by_job = facts_of(group), _is_reported_by_job(entries, gang)
    if facts.members == "over":
        if run.ended is None:
            run.ended = max(moment.at if moment.live else _last_end(entries, run, moment), run.submitted)
        if not reported_by_job:
            _end_run(entries, gang, run, run.ended, state_of(facts), group.status.ending)
    elif not reported_by_job:
        gang.ended = None
    refresh(entries, gang, run)
    if facts.members in {"whole", "short"} and gang.started is None and moment.live:
        gang.started = moment.at
        entries.happens(run, groups.NewGangEvent(What.STARTED, moment.at, run.seen.epoch, groups.ALL_THERE))


def _last_end(entries: Entries, run: GangRun, moment: ObservationTime) -> int:
    ends = [each.ended for each in entries.changes.holdings.values() if each.run == run.uid and each.ended]
    return max(ends, default=moment.at)


def _has_started(entries: Entries, gang: RecordedGang, run: GangRun, at: int) -> None:
    """Record an estimated start of a completed gang, if no start of the gang was observed or recorded."""
    if gang.started is None:
        gang.started = at
        entries.happens(
            run, groups.NewGangEvent(What.STARTED, at, run.seen.epoch, "estimated from the time of its end")
        )


def _end_run(entries: Entries, gang: RecordedGang, run: GangRun, at: int, state: State, text: str) -> None:
    if gang.ended is None or gang.state != state:
        if state == "Completed":
            _has_started(entries, gang, run, at)
        gang.ended, gang.state = at, state
        ending = groups.ending_text(state, run.seen.failure, text)
        entries.happens(run, groups.NewGangEvent(What.ENDED, at, run.seen.epoch, ending, subject=state))


# Placements


def placement(entries: Entries, new: Placement, moment: ObservationTime) -> None:
    """Process an observed Placement."""
    run = entries.runs.get(new.spec.pod_group_uid)
    if run is not None and entries.gangs[run.gang].namespace == new.metadata.namespace:
        version = int(new.metadata.resource_version or 0)
        if version > run.seen.placement_version:
            run.seen.placement_version = version
            _record_placement(entries, run, new, moment)
            entries.touch(entries.gangs[run.gang], run)


def _record_placement(entries: Entries, run: GangRun, placement: Placement, moment: ObservationTime) -> None:
    gang = entries.gangs[run.gang]
    if placement.spec.epoch > run.seen.epoch:  # a placement names its victims from the beginning
        _record_victims(entries, gang, run, placement, moment)
    for news in groups.placed(run.seen, placement, moment):
        entries.happens(run, news)
        if news.what is What.STARTED:
            gang.started = gang.started or news.at
    refresh(entries, gang, run)
    spares.follow(entries, run, placement, moment.at)


def _record_victims(
    entries: Entries, gang: RecordedGang, run: GangRun, placement: Placement, moment: ObservationTime
) -> None:
    """Record, for each victim that a placement lists, in favour of which gang the victim is to be evicted."""
    by = f"{gang.namespace}/{gang.kind} {gang.name}"
    for key in dict.fromkeys(map(placement.gang_key, placement.spec.victims)):
        victim = entries.runs.get(entries.run_of.get(key, ""))
        if victim is not None and victim is not run:
            entries.happens(victim, groups.NewGangEvent(What.MAKES_ROOM, moment.at, victim.seen.epoch, subject=by))
            entries.touch(entries.gangs[victim.gang], victim)


# Volcano Jobs: their PodGroup is deleted at each restart, and at the end


def job(entries: Entries, new: RecordedJob, moment: ObservationTime) -> None:
    """Process an observed Volcano Job."""
    meta, status, key = new.metadata, new.status, owner_key(new)
    seen = entries.jobs.get(key, (-1, 0, ""))
    now = int(meta.resource_version or 0), status.retry_count, status.state.phase
    if now[0] <= seen[0]:
        return
    entries.jobs[key] = now
    gang = entries.gangs.get(entries.of_owner.get(key, ""))
    if gang is None or now[1:] == seen[1:]:
        return
    before = gang.state, gang.ended, gang.user
    gang.user = gang.user or user_of(meta)
    run = entries.runs.get(entries.run_of.get(gang.group, ""))
    for news in groups.of_job(new, moment, run.seen.failure if run else ""):
        if news.what is What.ENDED and news.subject == "Completed":
            _has_started(entries, gang, _alone(gang, meta.uid), news.at)
        entries.happens(_alone(gang, meta.uid), news)
    if (state := stopped(status.state.phase, meta)) is not None:
        gang.state, gang.ended = state, gang.ended or moment.time_of(status.state.last_transition_time)
    if (gang.state, gang.ended, gang.user) != before:
        entries.touch(gang)


def owner_key(job: Object) -> str:
    """Return the key of a Volcano Job: namespace and UID, because PodGroups in other namespaces may name this UID."""
    return f"{job.metadata.namespace}/{job.metadata.uid}"


def job_gone(entries: Entries, key: str, moment: ObservationTime) -> None:
    """Record that the Volcano Job with the given namespace and UID was deleted."""
    entries.jobs.pop(key, None)
    gang = entries.gangs.get(entries.of_owner.pop(key, ""))
    if gang is None:
        return
    if gang.ended is None:
        _end_run(entries, gang, _alone(gang, key.rpartition("/")[2]), moment.at, "Deleted", "")
        entries.touch(gang)
    entries.forget(gang)


def _alone(gang: RecordedGang, uid: str) -> GangRun:
    """Return a placeholder run, for events of a Volcano Job that has no PodGroup."""
    return GangRun(uid=uid, gang=gang.id, submitted=gang.submitted)
