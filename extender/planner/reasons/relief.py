"""Changes that would help a waiting gang: the suggestions of `muster explain`, each after the label `would help`."""

from collections.abc import Mapping, Sequence

from extender.planner.reasons.shortages import Shortage
from muster.api.grammar import be, listed, many, verb
from muster.resources.vector import amount_text

NAMED = 6
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"

NOTHING = "no change is needed: the gang is tried as soon as these gangs have started"
NOT_TRIED = "more may help: not all changes were tried, as each takes long in a cluster of this size"
wider = "the gang requests a wider level than {level}, or only prefers {level}".format
gone_node = "pods left on {node}, which is gone, are force-deleted: {force}".format
silent_node = (
    f"{{node}} responds again; or, if it is certainly off, kubectl taint node {{node}} {OUT_OF_SERVICE}, or {{force}}"
).format
force = "kubectl delete pod {pods} -n {namespace} --grace-period=0 --force".format


def unsuitable(lost: str) -> str:
    """No node is suitable for the gang's pods, not even an empty node."""
    return f"nothing here: no node is suitable for the gang's pods, even when empty: {lost}"


def nothing(lacks: Shortage) -> str:
    """The gang is larger than the cluster, and more nodes like the existing nodes would not help."""
    miss = lacks.miss
    if miss is None:
        return "nothing here: the needs of the gang's pods are unknown"
    size = miss.each(lacks.wanted)
    if miss.whole_nodes and size:
        needs = f"{many(lacks.wanted, 'node')} with {amount_text(miss.resource, miss.amount)} {miss.resource}"
        return f"nothing here: the gang needs {needs}, and there {be(lacks.placed)} {lacks.placed}"
    wanted = f"room for {many(lacks.wanted, 'pod')}{size}"
    return f"nothing here: the gang needs {wanted}, and there is room for {lacks.placed}"


def tolerated(taint: str, count: int) -> str:
    """Nodes have a taint that the gang's pods do not tolerate."""
    return f"the gang's pods tolerate the taint {taint} ({many(count, 'node')})"


def created(missing: int) -> str:
    """Pods of the gang do not exist yet."""
    return f"{many(missing, 'more pod')} of this gang {be(missing)} created"


def first(ahead: Sequence[str]) -> str:
    """The gang comes after other gangs in a queue with strict order."""
    return f"{', '.join(ahead) or 'the gangs before it'} start first, or are withdrawn"


def before(ahead: Sequence[str]) -> str:
    """Gangs of other queues come before this gang."""
    return f"the gangs before it start first, or are withdrawn: {', '.join(ahead)}"


def queue(name: str, open_queues: Sequence[str], *, missing: bool) -> str:
    """The queue accepts no gangs."""
    how = "is created" if missing else "is opened"
    return f"queue {name!r} {how} (open queues: {', '.join(open_queues) or 'none'})"


def other_queue(namespace: str, queues: Sequence[str]) -> str:
    """The queue does not accept gangs of the namespace."""
    return f"the gang names a queue that is for namespace {namespace!r} ({', '.join(queues) or 'there is none'})"


def uncordoned(nodes: Sequence[str]) -> str:
    """Nodes are cordoned."""
    return f"{listed(nodes, NAMED)} {be(len(nodes))} uncordoned"


def recovered(nodes: Sequence[str], what: str) -> str:
    """Nodes have a taint or a condition that shows a problem."""
    return f"{listed(nodes, NAMED)} {verb(len(nodes), 'recover')} and the {what} disappears"


def ends(holders: Sequence[str]) -> str:
    """Other pods use the capacity that the gang needs."""
    return f"{listed(holders, NAMED)} {verb(len(holders), 'end')}"


def added(count: int, like: str, labels: Mapping[str, str]) -> str:
    """There are too few nodes for the gang; `labels` contains labels that its pods select but that no node has."""
    having = f" with the label {', '.join(f'{key}={value}' for key, value in labels.items())}" if labels else ""
    return f"{many(count, 'more node')} like {like}{having} {verb(count, 'join')}"


def holder(name: str, pods: int, nodes: int, since: str, end: str = "", stuck: Sequence[str] = ()) -> str:
    """A holder of capacity: `Job ns/first (8 pods on 8 nodes, since 10:00:00)`.

    `end` is the holder's expected end time; `stuck` contains the holder's pods that are being deleted but do not
    terminate.
    """
    does = "does" if len(stuck) == 1 else "do"
    late = f"; {listed(stuck, NAMED)} {does} not terminate although being deleted" if stuck else ""
    times = (f", since {since}" if since else "") + (f", expected to end at {end}" if end else "")
    return f"{name} ({many(pods, 'pod')} on {many(nodes, 'node')}{times}{late})"
