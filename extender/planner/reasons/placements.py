"""Progress and end of placements, and evictions: in status, Events, and conditions of the PodGroup."""

from collections.abc import Sequence

from muster.api.grammar import be, listed, many
from muster.api.volcano import scheduling

PLACED = "the gang has a placement"
ADMITTED = "the gang has been admitted"
ENOUGH = "enough members have a node"

bound = "all {members} members are bound".format

too_few_bound = "only {taken} of the {wanted} pods that start together got a node".format
not_arrived = "{pods} members did not arrive before the deadline".format
refused = "kube-scheduler refused {pod} on node {node}".format
node_gone = "node {node} is gone".format
node_refuses = "node {node}: {cause}".format
gated = "{pod} waits for the scheduling gate {gate}, which is not Muster's".format

not_evicted = "{pods} pods that had to go for it were not evicted in time".format
BUDGET = "a PodDisruptionBudget does not let pods go that had to go for it"
VICTIMS_STAY = "pods that had to go for it do not end"
ROOM_TAKEN = "the room that was made for it is taken"


EVICTED = scheduling.EVICTED
"""Reason of a condition."""

STRAY = "it is pinned by a placement that is over"
# For owners of the victims. Who is of another namespace may not see the gang: `named` is for the others.
_ANY, _ANY_OF_QUEUE = "a gang", "a gang of its own"
preempted = f"preempted by {_ANY} of priority {{priority}} in queue {{queue}}".format
reclaimed = f"reclaimed by queue {{queue}} for {_ANY_OF_QUEUE}".format
recalled = f"it runs on spares that {_ANY} of queue {{queue}} needs for members that it has lost".format
moved = f"moved to make room for {_ANY} of queue {{queue}}".format
incomplete = "the gang has {taken} of the {needed} members it needs and was not completed in time".format


def failed_there(pod: str, times: int) -> str:
    """A member failed on a node that is left out for it."""
    return f"{pod} failed there" if times == 1 else f"{pod} failed there (failure {times} of the gang on this node)"


def planned(pods: int, nodes: Sequence[str], victims: int) -> str:
    """So many pods have been given these nodes, on which victims may have to go first."""
    where = f"{many(pods, 'pod')} {be(pods)} planned on {many(len(nodes), 'node')}: {listed(nodes)}"
    return f"{where}; {many(victims, 'pod')} of others must go from there first" if victims else where


def on_spares(nodes: Sequence[str]) -> str:
    """Members run on spares of other gangs."""
    where = f"{many(len(nodes), 'node')}: {listed(nodes)}"
    return f"it runs on spares of other gangs on {where}; it is evicted as soon as one of those has lost a member"


def keeps(kept: int, wanted: int, lent: int, nodes: Sequence[str]) -> str:
    """So many seats of those that it is to have are kept for members that the gang loses, on these nodes."""
    words = f"{kept} of {wanted}" if kept < wanted else str(kept)
    where = f" on {listed(nodes)}" if nodes else ""
    used = f", {lent} of them used by gangs that leave at once" if lent else ""
    more = "; the others are taken as soon as they are free near the gang" if kept < wanted else ""
    return f"{words} {'seat is' if wanted == 1 else 'seats are'} kept for members that it loses{where}{used}{more}"


remade = (
    "its nodes are kept for members that were evicted, as the Job controller may wait for {seconds:.0f} s before it"
    " makes them again"
).format


def waits_for_victims(victims: int, until: str) -> str:
    """It waits for pods to go; `until` is when the last notice of theirs is over (RFC 3339), empty without any."""
    words = f"waits for {victims} pods to go"
    return f"{words}, which were told that they have until {until} at the latest" if until else words


def saved(text: str, at: str) -> str:
    """The run has reported a checkpoint, `step=1200` or without a step, of this time (RFC 3339)."""
    step = text.partition("=")[2]
    return f"its last checkpoint is {f'of step {step}, ' if step else ''}saved at {at}"


NOT_SAVED = "it has reported no checkpoint"
NOT_NEEDED = "its room is not needed any more: it stays"
STAYS = "the gang that it was to move for needs no room there any more"


def told(pods: int, at: str, reason: str) -> str:
    """So many pods of a gang were told that they are to be evicted."""
    return f"{many(pods, 'pod')} {be(pods)} to be evicted at {at}, or as soon as the gang has answered: {reason}"


def to_be_evicted(at: str, reason: str = "") -> str:
    """The gang was told so; `reason` is empty for those who may not know it."""
    return f"it is to be evicted at {at}, or as soon as it has answered{f': {reason}' if reason else ''}"


def evicted(pods: int, reason: str) -> str:
    """So many pods of a gang were told to go."""
    return f"{many(pods, 'pod')} {'was' if pods == 1 else 'were'} evicted: {reason}"


_UNTIL = "; it waits until"


def named(reason: str, who: str) -> str:
    """The reason of an eviction with the name of the gang."""
    return reason.replace(_ANY_OF_QUEUE, who).replace(_ANY, who)


def awaits_owner(pods: int, reason: str, kind: str) -> str:
    """A whole gang was evicted, and cannot start before its owner of this kind (empty: none) has made new pods."""
    return f"its {evicted(pods, reason)}{_UNTIL} {f'the {kind} makes' if kind else 'there are'} new ones"


def eviction(message: str) -> str:
    """The first half of `awaits_owner`, for a gang whose owner makes no more pods."""
    return message.partition(_UNTIL)[0]
