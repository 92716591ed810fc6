"""Progress and end of placements, and evictions: in status, Events, and conditions of the PodGroup."""

from collections.abc import Sequence

from muster.api.grammar import be, listed, many, were
from muster.api.muster.reason import NOTHING, Reason, Sentence, constant, worded
from muster.api.volcano import scheduling

PLACED = "the gang has a placement"
ADMITTED = "the gang has been admitted"
ENOUGH = "enough members have a node"


@worded("placement-bound")
def bound(members: int) -> str:
    """All members have a node."""
    return "its member is bound" if members == 1 else f"all {members} members are bound"


too_few_bound = Sentence("placement-too-few-bound", "only {taken} of the {wanted} pods that start together got a node")


@worded("placement-not-arrived")
def not_arrived(pods: int) -> str:
    """So many members have not come."""
    return f"{many(pods, 'member')} did not arrive before the deadline"


NOT_BOUND = "placement-not-bound"


@worded(NOT_BOUND)
def not_bound(pods: int, pod: str, why: str) -> str:
    """Members exist, and were not bound before the deadline: the first of them, and its hindrance if known."""
    hindrance = f": {why}" if why else ""
    return f"{pods} of its pods {were(pods)} not bound in time, {pod} among them{hindrance}"


refused = Sentence("placement-refused", "kube-scheduler refused {pod} on node {node}")
node_gone = Sentence("placement-node-gone", "node {node} is gone")
node_refuses = Sentence("placement-node-refuses", "node {node}: {cause}")
gated = Sentence("placement-gated", "{pod} waits for the scheduling gate {gate}, which is not Muster's")


@worded("placement-not-evicted")
def not_evicted(pods: int) -> str:
    """Victims are still there."""
    return f"{many(pods, 'pod')} that had to go for it {were(pods)} not evicted in time"


BUDGET = constant("placement-budget", "a PodDisruptionBudget does not let pods go that had to go for it")


@worded("placement-victims-stay")
def victims_stay(pod: str = "", node: str = "") -> str:
    """Victims are being deleted and do not end; `pod` is one of them, `ns/name` or empty for who may not know it."""
    one = f", {pod or 'one'} on node {node} among them" if node else ""
    return f"pods that had to go for it do not end{one}"


ROOM_TAKEN = constant("placement-room-taken", "the room that was made for it is taken")


EVICTED = scheduling.EVICTED
"""Reason of a condition."""

STRAY = constant("eviction-stray", "it is pinned by a placement that is over")
_FOR_ANOTHER = "eviction-preempted", "eviction-reclaimed", "eviction-recalled", "eviction-moved"
"""Codes of evictions for another gang. Owners of other namespaces may not see it: `named` is for the others."""


@worded(_FOR_ANOTHER[0])
def preempted(priority: int, queue: str, who: str = "a gang") -> str:
    """A gang of higher priority gets the room."""
    return f"preempted by {who} of priority {priority} in queue {queue}"


@worded(_FOR_ANOTHER[1])
def reclaimed(queue: str, who: str = "a gang of its own") -> str:
    """Another queue gets what it deserves."""
    return f"reclaimed by queue {queue} for {who}"


@worded(_FOR_ANOTHER[2])
def recalled(queue: str, who: str = "a gang") -> str:
    """The gang that keeps the spares needs them."""
    return f"it runs on spares that {who} of queue {queue} needs for members that it has lost"


@worded(_FOR_ANOTHER[3])
def moved(queue: str, who: str = "a gang") -> str:
    """The members go to other nodes."""
    return f"moved to make room for {who} of queue {queue}"


def named(reason: Reason, who: str) -> Reason:
    """The reason of an eviction with the name of the gang, unless it has it: its owners could read that anyway."""
    inner = {name: named(each, who) for name, each in reason.params.items() if isinstance(each, Reason)}
    unnamed = reason.code in _FOR_ANOTHER and "who" not in reason.params
    return reason.given(**inner, **({"who": who} if unnamed else {}))


incomplete = Sentence(
    "eviction-incomplete", "the gang has {taken} of the {needed} members it needs and was not completed in time"
)


def failed_there(pod: str, times: int) -> str:
    """A member failed on a node that is left out for it."""
    return f"{pod} failed there" if times == 1 else f"{pod} failed there (failure {times} of the gang on this node)"


def planned(pods: int, nodes: Sequence[str], victims: int) -> str:
    """The pods have these nodes, on which victims may have to be evicted first."""
    where = f"{many(pods, 'pod')} {be(pods)} planned on {many(len(nodes), 'node')}: {listed(nodes)}"
    return f"{where}; {many(victims, 'pod')} of others must go from there first" if victims else where


def on_spares(nodes: Sequence[str]) -> str:
    """Members run on spares of other gangs."""
    where = f"{many(len(nodes), 'node')}: {listed(nodes)}"
    return f"it runs on spares of other gangs on {where}; it is evicted as soon as one of those has lost a member"


def keeps(kept: int, wanted: int, lent: int, nodes: Sequence[str]) -> str:
    """The gang keeps so many of its spare slots on these nodes, for members that it loses."""
    words = f"{kept} of {wanted}" if kept < wanted else str(kept)
    where = f" on {listed(nodes)}" if nodes else ""
    used = f", {lent} of them used by gangs that leave at once" if lent else ""
    more = "; the others are taken as soon as they are free near the gang" if kept < wanted else ""
    return f"{words} {'spare slot is' if wanted == 1 else 'spare slots are'} kept for lost members{where}{used}{more}"


remade = Sentence(
    "placement-remade",
    "its nodes are kept for members that were evicted, as the Job controller may wait for {seconds:.0f} s before it"
    " makes them again",
)


@worded("placement-waits-for-victims")
def waits_for_victims(victims: int, until: str) -> str:
    """It waits for pods to go; `until` is when the last notice of theirs is over (RFC 3339), empty without any."""
    words = f"waits for {many(victims, 'pod')} to go"
    return f"{words}, which have until {until} at the latest" if until else words


@worded("eviction-saved")
def saved(text: str, at: str) -> str:
    """The run has reported a checkpoint, `step=1200` or without a step, of this time (RFC 3339)."""
    step = text.partition("=")[2]
    return f"its last checkpoint is {f'of step {step}, ' if step else ''}saved at {at}"


NOT_SAVED = "it has reported no checkpoint"
NOT_NEEDED = "its room is not needed any more: it stays"
STAYS = constant("placement-stays", "the gang that it was to move for needs no room there any more")


def told(pods: int, at: str, reason: Reason) -> str:
    """Number of the gang's pods with an eviction notice."""
    return f"{many(pods, 'pod')} {be(pods)} to be evicted at {at}, or as soon as the gang has answered: {reason}"


def to_be_evicted(at: str, reason: Reason = NOTHING) -> str:
    """The notice was withdrawn; `reason` is empty for those who may not know it."""
    return f"it is to be evicted at {at}, or as soon as it has answered{f': {reason}' if reason else ''}"


def evicted(pods: int, reason: Reason) -> str:
    """Number of the gang's pods that are evicted."""
    return f"{many(pods, 'pod')} {were(pods)} evicted: {reason}"


AWAITS_OWNER = "eviction-awaits-owner"


@worded(AWAITS_OWNER)
def awaits_owner(pods: int, reason: Reason, kind: str, until: str = "") -> str:
    """A whole gang was evicted, and cannot start before its owner of this kind (empty: none) has made new pods.

    The controller of batch Jobs delays that, longer after each eviction; `until` (RFC 3339) ends its longest delay.
    """
    text = f"its {evicted(pods, reason)}; it waits until {f'the {kind} makes' if kind else 'there are'} new ones"
    return f"{text}, which Kubernetes delays after evictions, until {until} at most" if until else text


def eviction(reason: Reason) -> str:
    """The first half of `awaits_owner`, for a gang whose owner makes no more pods."""
    params = reason.params
    return f"its {evicted(params['pods'], params['reason'])}" if reason.code == AWAITS_OWNER else str(reason)
