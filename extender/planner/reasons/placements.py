"""Messages about the progress and the end of placements, and about evictions, for statuses, Events and conditions."""

from collections.abc import Sequence

from muster.api.grammar import be, have, listed, many, were
from muster.api.muster.reason import NOTHING, Reason, Sentence, constant, worded
from muster.api.volcano import scheduling

PLACED = "the gang has a placement"
ADMITTED = "the gang has been admitted"
ENOUGH = "enough members have a node"


@worded("placement-bound")
def bound(members: int) -> str:
    """All members are bound to nodes."""
    return "its member is bound" if members == 1 else f"all {members} members are bound"


too_few_bound = Sentence("placement-too-few-bound", "only {taken} of the {wanted} pods that start together got a node")


@worded("placement-not-arrived")
def not_arrived(pods: int) -> str:
    """Some members have not been created in time."""
    return f"{many(pods, 'member')} did not arrive before the deadline"


NOT_BOUND = "placement-not-bound"


@worded(NOT_BOUND)
def not_bound(pods: int, pod: str, why: str) -> str:
    """Existing members were not bound in time; `pod` is the first such member, and `why` its problem if known."""
    hindrance = f": {why}" if why else ""
    return f"{pods} of the gang's pods {were(pods)} not bound in time, {pod} among them{hindrance}"


refused = Sentence("placement-refused", "kube-scheduler refused {pod} on node {node}")
node_gone = Sentence("placement-node-gone", "node {node} is gone")
node_refuses = Sentence("placement-node-refuses", "node {node}: {cause}")
gated = Sentence("placement-gated", "{pod} waits for the scheduling gate {gate}, which is not Muster's")


@worded("placement-not-evicted")
def not_evicted(pods: int) -> str:
    """Victims have not been evicted in time."""
    return f"{many(pods, 'pod')} that had to leave the gang's nodes {were(pods)} not evicted in time"


BUDGET = constant("placement-budget", "a PodDisruptionBudget forbids evicting pods that had to leave the gang's nodes")


@worded("placement-victims-stay")
def victims_stay(pod: str = "", node: str = "") -> str:
    """Victims are being deleted but do not terminate.

    `pod` is one of the victims (`ns/name`), or empty if the user who gets the message is not allowed to see its name.
    """
    one = f", {pod or 'one'} on node {node} among them" if node else ""
    return f"pods that had to leave the gang's nodes do not terminate{one}"


ROOM_TAKEN = constant("placement-room-taken", "other pods have taken the capacity that was freed for the gang")


EVICTED = scheduling.EVICTED
"""Reason for the condition of an evicted gang."""

STRAY = constant("eviction-stray", "the pod is pinned by a placement that has ended")
_FOR_ANOTHER = "eviction-preempted", "eviction-reclaimed", "eviction-recalled", "eviction-moved"
"""Codes of evictions in favour of another gang. Owners in other namespaces are not allowed to see that gang's name;
`named` adds the name for other owners."""


@worded(_FOR_ANOTHER[0])
def preempted(priority: int, queue: str, who: str = "a gang") -> str:
    """A gang with a higher priority gets the capacity."""
    return f"preempted by {who} of priority {priority} in queue {queue}"


@worded(_FOR_ANOTHER[1])
def reclaimed(queue: str, who: str = "a gang of that queue") -> str:
    """Another queue gets the resources that it deserves."""
    return f"reclaimed by queue {queue} for {who}"


@worded(_FOR_ANOTHER[2])
def recalled(queue: str, who: str = "a gang") -> str:
    """The gang that has lent spare slots needs these spare slots itself."""
    return f"the gang runs on spare slots that {who} of queue {queue} needs for members that it has lost"


@worded(_FOR_ANOTHER[3])
def moved(queue: str, who: str = "a gang") -> str:
    """Members of the gang are moved to other nodes in favour of another gang."""
    return f"moved to make room for {who} of queue {queue}"


def named(reason: Reason, who: str) -> Reason:
    """Return an eviction's reason with the name of the favoured gang added, unless it already contains a name."""
    inner = {name: named(each, who) for name, each in reason.params.items() if isinstance(each, Reason)}
    unnamed = reason.code in _FOR_ANOTHER and "who" not in reason.params
    return reason.given(**inner, **({"who": who} if unnamed else {}))


incomplete = Sentence(
    "eviction-incomplete", "the gang has {taken} of the {needed} members it needs and was not completed in time"
)


def failed_there(pod: str, times: int) -> str:
    """The gang avoids a node because one of its members failed on the node."""
    return f"{pod} failed there" if times == 1 else f"{pod} failed there (failure {times} of the gang on this node)"


def planned(pods: int, nodes: Sequence[str], victims: int) -> str:
    """The gang's pods are planned on these nodes; victims may first have to be evicted."""
    where = f"{many(pods, 'pod')} {be(pods)} planned on {many(len(nodes), 'node')}: {listed(nodes)}"
    return f"{where}; {many(victims, 'pod')} of others must leave these nodes first" if victims else where


def on_spares(nodes: Sequence[str]) -> str:
    """Members run on spare slots of other gangs."""
    where = f"{many(len(nodes), 'node')}: {listed(nodes)}"
    return (
        f"the gang runs on spare slots of other gangs on {where}; it is evicted as soon as one of them loses a member"
    )


def keeps(kept: int, wanted: int, lent: int, nodes: Sequence[str]) -> str:
    """The gang holds `kept` of its `wanted` spare slots on these nodes, for members that it may lose."""
    words = f"{kept} of {wanted}" if kept < wanted else str(kept)
    where = f" on {listed(nodes)}" if nodes else ""
    used = f", {lent} of them used by gangs that leave at once" if lent else ""
    more = "; more are held as soon as capacity near the gang is free" if kept < wanted else ""
    return f"{words} {'spare slot is' if wanted == 1 else 'spare slots are'} kept for lost members{where}{used}{more}"


remade = Sentence(
    "placement-remade",
    "the gang's nodes are held for the evicted members: the Job controller may wait for {seconds:.0f} s before it"
    " creates them again",
)


@worded("placement-waits-for-victims")
def waits_for_victims(victims: int, until: str) -> str:
    """The gang waits for victims to terminate; `until` is the end of their last notice (RFC 3339), or empty."""
    words = f"waits until {many(victims, 'pod')} {have(victims)} left its nodes"
    return f"{words}, which have until {until} at the latest" if until else words


@worded("eviction-saved")
def saved(text: str, at: str) -> str:
    """The gang has reported a checkpoint (such as `step=1200`) that was saved at this time (RFC 3339)."""
    step = text.partition("=")[2]
    return f"the gang's last checkpoint was saved at {at}{f' (step {step})' if step else ''}"


NOT_SAVED = "the gang has reported no checkpoint"
NOT_NEEDED = "the gang stays, because its nodes are no longer needed"
STAYS = constant("placement-stays", "the gang stays, because another gang no longer needs its nodes")


def notified(pods: int, at: str, reason: Reason) -> str:
    """Pods of the gang have an eviction notice."""
    return f"{many(pods, 'pod')} {be(pods)} to be evicted at {at}, or as soon as the gang answers the notice: {reason}"


def to_be_evicted(at: str, reason: Reason = NOTHING) -> str:
    """The gang has an eviction notice; `reason` is empty if the user is not allowed to see it."""
    return f"the gang will be evicted at {at}, or as soon as it has answered{f': {reason}' if reason else ''}"


def evicted(pods: int, reason: Reason) -> str:
    """Pods of the gang were evicted."""
    return f"{many(pods, 'pod')} {were(pods)} evicted: {reason}"


evicted_for = "the gang's pods were evicted for {displacer}".format
runs_again = (
    "{evicted}; its last start was at {at}; `muster history {name} -n {namespace}` shows all of its events".format
)

AWAITS_OWNER = "eviction-awaits-owner"


@worded(AWAITS_OWNER)
def awaits_owner(pods: int, reason: Reason, kind: str, until: str = "") -> str:
    """A whole gang was evicted, and its owner of this kind (empty: no owner) has not created new pods yet.

    The controller of batch Jobs waits longer after each failed pod. `until` (RFC 3339) is the end of the Job
    controller's longest possible wait; empty if no pod has failed.
    """
    makes = f"the {kind} creates" if kind else "there are"
    text = f"its {evicted(pods, reason)}; the gang waits until {makes} new pods"
    return f"{text}, by {until} at the latest (the usual back-off)" if until else text


def eviction(reason: Reason) -> str:
    """Return the part of `awaits_owner` that describes the eviction, for owners that do not re-create pods."""
    params = reason.params
    return f"its {evicted(params['pods'], params['reason'])}" if reason.code == AWAITS_OWNER else str(reason)
