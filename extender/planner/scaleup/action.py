"""The last step of every cycle, which requests nodes from autoscalers for each queue's first gang that lacks nodes.

Gangs that wait for something other than nodes (their queue, their pods, other gates) are skipped. Gangs that an
autoscaler cannot help are also skipped. A gang whose last request failed is skipped for a while. A gang whose victims
will be evicted requests no nodes, because it would get capacity twice. The request of a gang with victims is withdrawn
unless the request is already provisioned. If requested nodes arrive before the victims' notice ends, the gang uses the
nodes, and no victim is evicted (`elsewhere`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from extender.planner import reasons
from extender.planner.actions.makeroom import awaiting_placement
from extender.planner.framework.decisions import Place, Unschedulable, WithdrawRequest
from extender.planner.framework.session import Session
from extender.planner.reasons.shortages import Shortage, Wanted
from extender.planner.scaleup.limits import ExistingNodes, ScaleUpAttempts, refusal
from extender.planner.scaleup.podwrites import EvictionAnnotations, PodConditions, WaitingMessage
from extender.planner.scaleup.preferences import NO_SCALE_UP, ScaleUpPreference, ScaleUpPreferences
from extender.planner.scaleup.requests import (
    MAX_POD_SETS,
    answer_to,
    attempt_of,
    name_of,
    new_request,
    pause_s,
    provisioned,
)
from extender.planner.state.gangs import GangView
from muster.api.kubernetes.autoscaling import ProvisioningRequest
from muster.api.muster.reason import Reason, reason_of

MOST_CHECKED = 8
"""Maximum number of gangs per queue that are checked until one gang can request nodes."""
Note = tuple[str, Reason]
"""The reason for a gang's condition (empty if unchanged), and the text to add to the condition's message."""
_NODES_EXIST: Note = ("", reasons.scaleup.NODES_EXIST)
KEPT_S = 10.0
"""Minimum number of seconds for which a gang's pods request nodes, even if another gang now comes first. Each change of
the requesting gang costs many writes."""


@dataclass(slots=True)
class _CycleResults:
    """The current cycle's decisions about requests for nodes."""

    preferences: ScaleUpPreferences
    existing: ExistingNodes
    asks: dict[str, Mapping[str, int]] = field(default_factory=dict)
    """Maps a gang's UID and a pod set to the number of pods that request nodes."""
    needed: set[str] = field(default_factory=set)
    """UIDs of the gangs whose ProvisioningRequest is still needed."""
    notes: dict[str, Note] = field(default_factory=dict)
    """Maps a gang's UID to the text that is added to the message for its owner."""


class AskForNodes:
    """The action that requests nodes from autoscalers; it remembers gangs' attempts and the last writes to pods."""

    name = "scale-up"

    def __init__(self) -> None:
        self._attempts = ScaleUpAttempts()
        self._conditions = PodConditions()
        self._evictions = EvictionAnnotations()

    def execute(self, session: Session) -> None:
        """Admit gangs that request nodes, decide which requests and conditions to write, and extend gangs' messages."""
        waits, placed = _waiting(session), map(session.gang, session.snapshot.placed)
        given = {
            gang.uid: (gang, placement) for gang in filter(None, placed) if (placement := awaiting_placement(gang))
        }
        results = _CycleResults(ScaleUpPreferences(session.snapshot.queues), ExistingNodes(session))
        self._attempts.forget_all_but({*waits, *given})
        asks = [
            each
            for uid, each in waits.items()
            if uid not in self._attempts or not self._rests(session, each.gang, results)
        ]
        for kinds in _candidates(asks, results.preferences).values():
            self._go_through(session, kinds, results)
        self._attempts.ask(results.asks, session.now)
        _annotate(session, results.notes)
        _withdraw(session, waits, results)
        messages = [
            WaitingMessage(each.gang, _with(each, results.notes.get(uid)).why, results.asks.get(uid))
            for uid, each in waits.items()
            if each.gang.key not in session.postponed or uid in results.notes or uid in results.asks
        ]
        messages += [WaitingMessage(gang, reason_of(placement.status.message)) for gang, placement in given.values()]
        for write in self._conditions.writes(session.now, messages, waits.keys() | given.keys()):
            session.decide(write)
        self._evictions.decide(session)

    def _go_through(self, session: Session, kinds: list[list[GangView]], results: _CycleResults) -> None:
        """Request nodes for the first gang of a queue that can request nodes; existing requests continue for `KEPT_S`.

        A gang's existing request continues even if a gang with more failed attempts requests nodes, because that gang
        may never succeed.
        """
        given, in_vain = False, 0
        queue = kinds[0] if len(kinds) == 1 else session.ordered_gangs([gang for kind in kinds for gang in kind])
        for gang in queue[:MOST_CHECKED]:
            tried = self._attempts.of(gang.uid)
            keeps = tried.since is not None and (session.now - tried.since < KEPT_S or tried.failures < in_vain)
            if (not given or keeps) and session.attempt(gang, lambda session, gang: self._ask(session, gang, results)):
                given, in_vain = True, max(in_vain, tried.failures)

    def _ask(self, session: Session, gang: GangView, results: _CycleResults) -> bool:
        """Request nodes for one gang in the gang's preferred way; return False if no nodes are requested."""
        preference, wanted = results.preferences.of(gang), session.ask(gang).nodes
        if note := _hindrance(session, gang, wanted, preference, results):
            if note == _NODES_EXIST:  # the nodes added for this gang cannot hold all of its pods
                self._attempts.give_up(gang.uid, session.now)
            results.notes[gang.uid] = note
            return False
        session.admit(gang)  # autoscalers react to pods, so the pods must exist
        if preference.mode == "condition":
            if gang.started or gang.has_pods:
                results.asks[gang.uid] = wanted
            return True
        return _request(session, gang, wanted, preference, results)

    def _rests(self, session: Session, gang: GangView, results: _CycleResults) -> bool:
        """Return True during the pause after a failed request of the gang."""
        tried = self._attempts.of(gang.uid)
        if tried.since is None and session.now >= tried.rests_until:
            return False
        preference = results.preferences.of(gang)
        if tried.since is not None and session.now - tried.since >= preference.timeout_s:
            self._attempts.give_up(gang.uid, session.now)
        if session.now >= tried.rests_until or preference.mode != "condition":
            return False
        again_s = pause_s(tried.failures)
        results.notes[gang.uid] = reasons.scaleup.IN_VAIN, reasons.scaleup.in_vain(pause_s=again_s)
        return True


def _hindrance(
    session: Session, gang: GangView, wanted: Mapping[str, int], preference: ScaleUpPreference, results: _CycleResults
) -> Note | None:
    """Return a note with the reason why the gang cannot request nodes; None if the gang can request nodes."""
    if why := preference.complaint or refusal(session, gang, wanted):
        return "", reasons.scaleup.not_asked(why=why)
    if _known(session, gang, wanted, preference) is None and results.existing.hold(gang, wanted):
        return _NODES_EXIST
    if preference.mode != "provisioning-request":
        return None
    session.provisioning_wanted = True
    if session.inputs.provisioning_served is False:
        return reasons.scaleup.NOT_SERVED, reasons.scaleup.KIND_MISSING
    pod_sets = sum(count > 0 for count in wanted.values())
    if pod_sets > MAX_POD_SETS:
        return "", reasons.scaleup.too_many_pod_sets(pod_sets=pod_sets, most=MAX_POD_SETS)
    return None


def _request(
    session: Session, gang: GangView, wanted: Mapping[str, int], preference: ScaleUpPreference, results: _CycleResults
) -> bool:
    """Create or follow a gang's ProvisioningRequest; return False while the gang waits before the next request."""
    known, attempt = _known(session, gang, wanted, preference), 1
    if known is not None:
        reason, words, again_at = answer_to(known, timeout_s=preference.timeout_s, now=session.now)
        results.notes[gang.uid] = reason, words
        if again_at is None or session.now < again_at:
            results.needed.add(gang.uid)
            return again_at is None
        attempt = attempt_of(known) + 1
    if stale := session.inputs.provisioning.get(gang.uid):
        session.decide(WithdrawRequest(gang, stale, reasons.scaleup.REPLACED))
        results.needed.add(gang.uid)
    if session.inputs.provisioning_served is None or not (gang.started or gang.has_pods):
        return True
    if request := new_request(gang, wanted, preference, attempt):
        session.decide(request)
    return True


def _known(
    session: Session, gang: GangView, wanted: Mapping[str, int], preference: ScaleUpPreference
) -> ProvisioningRequest | None:
    """Return the gang's ProvisioningRequest if it matches the current demand."""
    known = session.inputs.provisioning.get(gang.uid)
    if known is None or preference.mode != "provisioning-request":
        return None
    return known if known.metadata.name == name_of(gang, wanted, preference, attempt_of(known)) else None


def _waiting(session: Session) -> dict[str, Unschedulable]:
    """Return the last decision about each waiting gang, keyed by the gang's UID."""
    placed = {place.gang.uid for place in session.decided(Place)}
    waits = session.decided(Unschedulable)
    return {each.gang.uid: each for each in waits if each.gang.uid not in placed and not each.gang.active}


def _candidates(waits: Iterable[Unschedulable], preferences: ScaleUpPreferences) -> dict[str, list[list[GangView]]]:
    """Return the first gangs that lack nodes and may request nodes, by queue and kind of shortage, in order."""
    found: dict[tuple[str, Wanted], list[GangView]] = {}
    for decision in waits:
        gang, lacks = decision.gang, decision.shortage
        if lacks is None or preferences.of(gang) is NO_SCALE_UP or not _lacks_nodes(gang, lacks):
            continue
        gangs = found.setdefault((gang.queue, lacks.kind), [])
        if len(gangs) < MOST_CHECKED:
            gangs.append(gang)
    queues: dict[str, list[list[GangView]]] = {}
    for (queue, _), gangs in found.items():
        queues.setdefault(queue, []).append(gangs)
    return queues


def _lacks_nodes(gang: GangView, lacks: Shortage) -> bool:
    if lacks.miss is None:
        return False
    return gang.taken < gang.floor.min_member if gang.started else lacks.kind != "extra"


def _with(decision: Unschedulable, note: Note | None) -> Unschedulable:
    if note is None:
        return decision
    reason, more = note
    return replace(decision, reason=reason or decision.reason, why=decision.why.also(more))


def _annotate(session: Session, notes: Mapping[str, Note]) -> None:
    """Add notes to the messages that explain in PodGroups why gangs wait."""
    if notes:
        session.decisions = [
            _with(each, notes.get(each.gang.uid)) if isinstance(each, Unschedulable) else each
            for each in session.decisions
        ]


def _withdraw(session: Session, waits: Mapping[str, Unschedulable], results: _CycleResults) -> None:
    """Withdraw the requests of gangs that have started or are no longer allowed to request nodes.

    Provisioned requests of waiting gangs are kept, as are requests of gangs that are starting without victims.
    """
    if not session.inputs.provisioning:
        return
    for gang in session.snapshot.gangs:
        request = session.inputs.provisioning.get(gang.uid)
        if request is None or gang.uid in results.needed:
            continue
        if gang.uid in waits or awaiting_placement(gang):
            stays = provisioned(request) and results.preferences.of(gang).mode == "provisioning-request"
        else:
            stays = not gang.started and gang.group.status.phase != "Completed"  # the gang is about to start
        if not stays:
            session.decide(WithdrawRequest(gang, request, reasons.scaleup.NOT_NEEDED))
