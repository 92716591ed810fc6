"""Eviction notices: the length of a notice, the time of the eviction, and the cost for the victim.

The end of a notice is written once, to the placement of the gang that needs the capacity. A victim can therefore rely
on the end of its notice: another planner reads the same time, and a later gang with the same victim uses the earlier
end.
"""

from collections.abc import Iterable, Sequence
from math import floor

from extender.planner.framework.decisions import Victims
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.state.pods import PodRecord
from extender.planner.timing import CLOCKS_S, is_over
from muster.api.kubernetes.meta import format_time, readable_time
from muster.api.muster.checkpoint import Checkpoint, latest
from muster.api.muster.placement import Notice, Placement
from muster.api.names import EVICT_NOTICE, MAX_EVICT_NOTICE
from muster.resources.runtime import notice_s
from muster.volcano.access import lineage

LATE_S = 60.0
"""Time, in seconds, for which a terminating pod is still expected to end after its grace period is over."""


def expected_to_go(session: Session, pod: PodRecord) -> bool:
    """Return True unless the pod has been terminating for longer than expected.

    A pod is expected to end within its grace period, at most `Timing.longest_grace_s`, plus `LATE_S`.
    """
    if not pod.gone_by:
        return True
    end = readable_time(pod.gone_by)
    if end is None:
        return False
    longest_s = session.inputs.timing.longest_grace_s
    until = end - max(0.0, pod.grace_s - longest_s) + LATE_S
    return session.now == until or not is_over(until, session.now, longest_s + LATE_S)


def length_s(session: Session, gang: GangView) -> float:
    """Return the length of a gang's notice in seconds: as requested, within the limits of queues and installation.

    The length that the PodGroup requests takes precedence over the longest length that a member requests.
    """
    text = gang.group.metadata.annotations.get(EVICT_NOTICE)
    of_pods = {pod.answer.notice for pod in gang.pods if pod.answer and pod.answer.notice} if text is None else set()
    asked = max((notice_s(each) or 0.0 for each in of_pods), default=notice_s(text))
    if not asked:
        return 0.0
    queues = session.snapshot.queues
    chain = lineage(gang.queue, queues.get)
    limits = (notice_s(queue.metadata.annotations.get(MAX_EVICT_NOTICE)) for queue in chain)
    return min(asked, session.inputs.timing.longest_notice_s, *(limit for limit in limits if limit is not None))


def notices_for(session: Session, gang: GangView, victims: Victims) -> tuple[Notice, ...]:
    """Return the eviction notices for a gang's victims, in whole seconds; victims without a notice are left out.

    If a victim has an earlier notice for a gang that no longer needs its capacity, the end of the earlier notice is
    kept.
    """
    home, found = gang.group.metadata.namespace, []
    going = {pod.uid for _, pod in victims}
    for victim in {victim.key: victim for victim, _ in victims}.values():
        seconds = length_s(session, victim)
        if not seconds:
            continue
        now, end = floor(session.now), floor(session.now + seconds)
        before = (readable_time(pod.answer.evict_at) for pod in victim.pods if pod.uid in going and pod.answer)
        end = max(now, min([end, *(floor(time) for time in before if time is not None)]))
        meta = victim.group.metadata
        found.append(
            Notice(
                gang=meta.name,
                namespace="" if meta.namespace == home else meta.namespace,
                told_at=format_time(min(now, floor(end - seconds))),
                evict_at=format_time(end),
            )
        )
    return tuple(found)


def notices_of(placement: Placement) -> dict[str, Notice]:
    """Return the notices in a placement, keyed by the notified gang's key."""
    return {placement.gang_key(each): each for each in placement.spec.notices}


def due(notices: dict[str, Notice], staying: Victims, now: float) -> Victims:
    """Return the victims that must be evicted now, among the victims that have not been evicted yet.

    A gang with a notice is evicted once it has answered or the notice is over. If a notified gang has already fallen
    below its minimum, its other members are evicted at once, because they cannot make progress. The gang's answer may
    be lost together with the members that reported the answer. Gangs without a notice are evicted once all notified
    gangs have ended or may be evicted, because capacity that is freed earlier would stay idle.
    """
    of_gangs: dict[str, bool] = {}
    running = set()
    for gang, pod in staying:
        notice = notices.get(gang.key)
        if notice is None or _is_over(notice, now):
            continue
        if not gang.independent and gang.key not in of_gangs:
            of_gangs[gang.key] = not (answered(gang, notice, now) or _failed_before(gang))
        # each independent pod answers for itself
        if not answered(gang, notice, now, [pod]) if gang.independent else of_gangs[gang.key]:
            running.add(pod.uid)
    if not running:
        return staying
    return tuple((gang, pod) for gang, pod in staying if gang.key in notices and pod.uid not in running)


def _is_over(notice: Notice, now: float) -> bool:
    """Return True for a notice that is over, cannot be parsed, or is in the future (the clock was set back)."""
    end, given = readable_time(notice.evict_at) or 0.0, readable_time(notice.told_at) or now
    return now >= end or given > now + CLOCKS_S


def answered(gang: GangView, notice: Notice, now: float, pods: Sequence[PodRecord] | None = None) -> bool:
    """Return True if a member reports that the gang is ready or has saved a checkpoint since the gang's notice.

    Only acknowledgements by members in `pods` count; if `pods` is None, all members and the PodGroup can acknowledge.
    """
    answers = gang.answers if pods is None else [pod.answer for pod in pods if pod.answer]
    since = max(readable_time(notice.told_at) or now, gang.started_s or 0.0)
    saved = latest((each.checkpoint for each in answers), since=since, now=now)
    return saved is not None or any(each.ready for each in answers)


def last_saved(gang: GangView, now: float) -> Checkpoint | None:
    """Return the latest checkpoint, since the gang's last start, that a member or the PodGroup reports."""
    answers = gang.answers
    return latest((each.checkpoint for each in answers), since=gang.started_s or 0.0, now=now) if answers else None


def unsaved_s(gang: GangView, now: float) -> float:
    """Return the seconds of work that an eviction costs each member: the time since the last checkpoint or start.

    If neither time is known, the gang counts as always running, so that other gangs are evicted first.
    """
    saved = last_saved(gang, now)
    return max(0.0, now - (saved.at if saved else gang.started_s or 0.0))


def pending_notice_text(pods: Iterable[PodRecord]) -> str:
    """Return the earliest time (RFC 3339) at which one of these pods is to be evicted; empty without a notice."""
    return min((pod.answer.evict_at for pod in pods if pod.answer and pod.answer.evict_at), default="")


def latest_end(notices: Sequence[Notice]) -> float:
    """Return the latest end of these notices, in seconds since the epoch; 0 if there are no notices."""
    return max((readable_time(each.evict_at) or 0.0 for each in notices), default=0.0)


def _failed_before(gang: GangView) -> bool:
    return not gang.viable(gang.taken_by_set)
