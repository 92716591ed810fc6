"""What a gang that is to be evicted was told, for `muster explain`: for whom, until when, and what it has saved."""

from extender.explain.reader import Reader
from extender.planner import reasons
from extender.planner.actions.makeroom import awaits_room
from extender.planner.framework.decisions import asked_by
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.victims.notices import last_saved, notices_of, told_now
from muster.api.grammar import also
from muster.api.kubernetes.meta import format_time
from muster.api.muster.placement import victims_reason


def notice_words(session: Session, gang: GangView, reader: Reader) -> str:
    """Return the notice of a gang in words; empty if it has none.

    Who may not see the gang that asks still sees on the gang's own pods until when it has time.
    """
    for asker in session.snapshot.gangs:
        if awaits_room(asker) and asker.placement is not None:
            notice = notices_of(asker.placement).get(gang.key)
            if notice is not None:
                why = reader.reason(asked_by(asker, victims_reason(asker.placement), gang))
                return also(reasons.placements.to_be_evicted(notice.evict_at, why), _saved(gang, session.now))
    until = told_now(pod for pod in gang.pods if pod.alive)
    return also(reasons.placements.to_be_evicted(until), _saved(gang, session.now)) if until else ""


def _saved(gang: GangView, now: float) -> str:
    saved = last_saved(gang, now)
    return str(reasons.placements.saved(saved.text, format_time(saved.at))) if saved else reasons.placements.NOT_SAVED
