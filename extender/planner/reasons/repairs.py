"""Messages about repairs of gangs whose nodes have failed, for Events, Placements and conditions of the PodGroup."""

from collections.abc import Mapping

from muster.api.grammar import be, have, listed, many
from muster.api.muster.reason import Sentence, constant, worded

NODE_FAULT = "NodeFault"
"""Reason for the condition of a gang whose members are on faulty nodes and stay there for now."""
REPAIRS = frozenset({"repair-evicts-whole", "repair-replaces", "repair-restarts"})
"""Codes of the reasons for evictions that belong to a repair."""
GONE = "gone"
BY_ANNOTATION = "its annotation muster.dev/on-node-fault says"
JOB_RESTARTS = "its Job restarts as a whole when a pod is evicted"
NO_OWNER = "no owner re-creates its pods"
ONE_NODE_EACH = "each of its pods belongs to its node, and follows its tolerations alone"
INDIVISIBLE = "its pods may only be disrupted together"
INDEPENDENT = "its pods run alone"
ENOUGH_WITHOUT = "the others are enough to continue"
CAN_TAKE_BACK = "no setting requires all its members to restart together"
static = "the ranks of {framework} start together or not at all".format
HEALTHY = constant("repair-healthy", "the gang stays, because its nodes are healthy again")
OUT_OF_SERVICE = (
    "pods there end when the node responds again, is deleted, or has the taint node.kubernetes.io/out-of-service"
)
"""Advice for a dead node whose kubelet cannot report that its pods have terminated."""

evicts_whole = Sentence(
    "repair-evicts-whole",
    "repairs: {nodes}, and no other node takes the {members} there: the gang is evicted, and waits as a whole",
)


def nodes_with(faults: Mapping[str, str]) -> str:
    """Return faulty nodes grouped by fault, such as `nodes n1, n2 are gone and node n3 is suspect (…)`."""
    together: dict[str, list[str]] = {}
    for node, fault in sorted(faults.items()):
        together.setdefault(fault, []).append(node)
    parts = (
        f"{'node' if len(nodes) == 1 else 'nodes'} {listed(nodes)} {be(len(nodes))} {fault}"
        for fault, nodes in together.items()
    )
    return " and ".join(parts)


_PLANS = {"wait": "stay", "replace": "will be replaced", "restart": "will have the gang restart in place"}


def policy(nodes: str, members: int, policy: str, why: str) -> str:
    """Return a sentence of `muster explain` about the effect of the repair policy on members on faulty nodes."""
    return f"{nodes}: by the policy {policy} its {many(members, 'member')} there {_PLANS[policy]}, as {why}"


@worded("repair-replaces")
def replaces(nodes: str, members: int, why: str, *, dead: bool) -> str:
    """Members on faulty nodes are evicted, and restart on other nodes."""
    text = f"repairs: {nodes}: {many(members, 'member')} {be(members)} replaced, as {why}"
    return f"{text}; {OUT_OF_SERVICE}" if dead else text


@worded("repair-restarts")
def restarts(nodes: str, members: int, of: int, why: str, *, dead: bool) -> str:
    """All members are evicted and restart: members on healthy nodes in place, the other members on other nodes."""
    where = f"{members} of its {many(of, 'member')} on other nodes"
    text = f"repairs: {nodes}: the gang restarts in place, {where}, as {why}"
    return f"{text}; {OUT_OF_SERVICE}" if dead else text


@worded("repair-stays")
def stays(nodes: str, members: int) -> str:
    """Members on suspect nodes keep running, because no other node can take them."""
    return f"{nodes}, and its {many(members, 'member')} there {have(members)} to stay, as no other node takes them"


@worded("repair-stopped")
def stopped(faulty: int, of: int) -> str:
    """Repairs have stopped, because so many nodes are faulty at once that the cause is probably outside the nodes."""
    return f"{faulty} of {many(of, 'node')} are suspect or not ready at once: nothing is repaired until fewer are"
