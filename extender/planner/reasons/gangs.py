"""The progress of a gang in one sentence, which is the first line of `muster explain`."""

from collections.abc import Sequence

from muster.api.grammar import also, be, have, listed, many
from muster.api.muster.reason import Reason, Sentence

IS_EXTENDER_WELL = "if this persists, check that Muster's extender runs and is the leader"
STARTS = "the gang starts: its members have nodes or get them now"
RUNS = "it runs"
NOT_REPORTED = "the planner has not reported the gang's state yet"
NOT_PLANNED = "no action of the planner's configuration has considered the gang"

of_queue = Sentence("gang-of-queue", "a gang of queue {queue}")
"""Description of a gang for users who are not allowed to see the gang's namespace."""
waits = "it waits: {message}".format
half_placed = (
    "only {taken} of the {wanted} pods that start together have a node; if the others get no node within "
    "{within_s:.0f} s, the planner evicts the {taken} and the gang waits as a whole"
).format
starts = "the gang starts: placement {epoch} is being carried out, {members}".format
given_up_at = "placement {epoch} is abandoned at {deadline}".format
not_counted = "{pod_set}: not counted, kube-scheduler decides: {words}".format


def slot_limit(slots: int) -> str:
    """The gang waits because too many slots of other gangs are starting."""
    return f"the gang waits until fewer slots are placed: {many(slots, 'slot')} of other gangs {be(slots)} starting now"


def members(taken: int) -> str:
    """Some members of the gang are bound to nodes."""
    return "1 member has its node" if taken == 1 else f"{taken} members have their node"


def runs(taken: int, running: int) -> str:
    """The gang has its nodes, and `running` of its members are running."""
    also = f", {running} of them run" if taken > 1 else ""
    return f"{'it runs' if running else 'no member runs'}: {members(taken)}{also}"


def not_carried_out(message: str, *, again: bool) -> str:
    """The gang's placement has been abandoned; with `again`, the whole gang is planned again."""
    follows = "the gang is planned again" if again else "the members that have a node keep running"
    return f"the gang's placement cannot be carried out: {message}; {follows}"


def finished(succeeded: int, failed: int) -> str:
    """The gang has finished."""
    parts = [f"{count} {how}" for count, how in ((succeeded, "succeeded"), (failed, "failed")) if count]
    return "it has finished" + (f": {', '.join(parts)}" if parts else "")


def failed(count: int, evicted: str, ending: str) -> str:
    """The gang has failed: `count` pods failed or were evicted; `ending` is the owner's message."""
    pods = f"{count} of its pods failed" if count and not ending else ""
    return f"it failed: {'; '.join(filter(None, (evicted, ending, pods)))}"


def failed_pods(count: int, wanted: int) -> str:
    """Some pods of a Job have failed."""
    return f"{count} of its {many(wanted, 'pod')} failed"


def restarts(count: int, most: int) -> str:
    """A Job that may restart only a limited number of times has failed."""
    return f"the Job was restarted {count} of at most {many(most, 'time')}"


def lost(pods: int, nodes: str) -> str:
    """Some of the gang's pods are on nodes that do not respond."""
    return f"{pods} of its pods {be(pods)} on nodes that do not respond: {nodes}"


def awaits_room(epoch: int, there: int, victims: int, until: str, whose: Sequence[str] = ()) -> str:
    """Victims still use the gang's planned nodes; `until` is the end of the victims' last notice, or empty.

    The argument `whose` contains the names of the victims' gangs.
    """
    pods = many(there, "pod") if there == victims else f"{there} of {victims} pods"
    pods += f" of {listed(whose, 2)}" if whose else ""
    words = f"nodes are assigned by placement {epoch}; it waits until {pods} {have(there)} left them"
    return f"{words}, which have until {until} to save their work" if until else words


def can_start(where: Sequence[str], victims: int, reason: Reason) -> str:
    """The gang can start: the planner's next cycle will place it."""
    once = f", once {many(victims, 'pod')} of others {have(victims)} gone: {reason}" if victims else ""
    return f"the gang can start: the planner's next cycle gives it {'; '.join(where)}{once}"


def without_group(phase: str, why: str, *, comes: bool) -> str:
    """The reason for a Job without a PodGroup; `comes` means that the controller is expected to create the PodGroup."""
    because = f" ({why})" if why else ""
    hint = "the controller creates its PodGroup: if this persists, check that Muster's controller runs"
    return also(f"it has no gang: the Job is {phase or 'new'}{because}", hint if comes else "")
