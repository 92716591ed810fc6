"""The progress and problems of pods: sentences of `muster explain` about members of gangs and about other pods."""

from collections.abc import Sequence

from muster.api.grammar import have, many

other_gates = "the pod is held by scheduling gates that are not Muster's: {gates}".format
other_scheduler = "the pod belongs to the scheduler {name!r}; Muster does not place it".format
no_gang = "the pod belongs to no gang and is placed by itself; {why}".format
no_group = "the pod's PodGroup {gang} does not exist (yet)".format
no_native_group = (
    "the pod's PodGroup {group} of scheduling.k8s.io does not exist (yet), or the API server does not serve the kind, "
    "as its feature gate GenericWorkload is off"
).format
runs = "the pod runs on {node}".format
hindered = "the pod is on {node} and does not run: {why}".format
bound = "the pod is bound to {node}, but its containers are not running yet".format
UNPINNED = "the pod has neither gate nor pin: the planner assigns a node when the gang has a placement"
refused = "kube-scheduler refused the pod on {node} of placement {epoch}: {says}; the gang is planned again".format

_OVER = "the planner deletes the pod, which has never been running, and its owner creates it again"
_PINNED = "the pod is pinned to {pin} by placement {epoch}, "
pin_too_new = (_PINNED + f"which does not exist (yet); if it does not appear, {_OVER}").format
pin_too_old = (_PINNED + f"but the placement is now {{now}} ({{phase}}); {_OVER}").format
pin_wrong = (_PINNED + f"which gives its slot {{node}}; {_OVER}").format

NOT_CREATED = "not created yet by the owner"
BEHIND_THE_GATE = "behind Muster's scheduling gate, which a later cycle removes"
stale_pin = "pinned by placement {epoch}, which has ended; deleted and created again".format
REFUSED = "refused by kube-scheduler"
NOT_ANSWERED = "waiting for kube-scheduler"
slot = "{pod_set} {rank} on {node}".format
stage = "{count} {stage}: {slots}".format

NODE_GONE = "is gone"
pod_state = "{pod} {what}".format
more_of_this_kind = "and {count} more of this kind".format
silent = "is on {node}, which {silence}, so its state is unknown".format


def gated(own: Sequence[str], others: Sequence[str]) -> str:
    """The pod waits until Muster's gate and perhaps other gates are removed."""
    more = f"; after that, the pod is still held by {', '.join(others)}" if others else ""
    return f"the pod waits behind the gate {' and '.join(own)} until its gang has a placement{more}"


def pinned(node: str, epoch: int | None, taken: int, deadline: str) -> str:
    """kube-scheduler is trying to bind the pod to its planned node; `taken` members of the gang are bound to nodes."""
    waits = "kube-scheduler has not bound the pod yet, or the bind call waits for other members"
    over = f"; the placement is abandoned at {deadline}" if deadline else ""
    return f"the pod is pinned to {node} by placement {epoch}; {waits} ({taken} have their node){over}"


def alone(roomy: int, nodes: int, lost: str, nearest: str, says: str) -> str:
    """The pod has no gang, and `roomy` of `nodes` nodes have capacity. If `nodes` is 0, kube-scheduler decides."""
    found = f"of {many(nodes, 'node')}: {lost}; {nearest}" if nodes else "kube-scheduler decides"
    found = f"{roomy} of {many(nodes, 'node')} {have(roomy)} room for it" if roomy else found
    return found + (f"; kube-scheduler says: {says}" if says else "")


def ended(phase: str, node: str, why: str) -> str:
    """The pod has succeeded or failed."""
    return f"the pod has ended: {phase}" + (f" on {node}" if node else "") + (f": {why}" if why else "")


def deleted(since: str, node: str, silence: str, finalizers: Sequence[str]) -> str:
    """The pod is being deleted; `silence` describes a node that does not respond."""
    where = f" from {node}" if node else ""
    why = f", which {silence}, so no kubelet confirms the pod's end" if silence else ""
    kept = f"; it is kept by the finalizers {', '.join(finalizers)}" if finalizers else ""
    return f"has been terminating since {since}{where}{why}{kept}"


def not_ready(since: str) -> str:
    """The node of the pod does not respond."""
    return f"has not been Ready since {since}" if since else "is not Ready"


def hindered_member(pod: str, node: str, why: str) -> str:
    """The kubelet or the API server reports a problem with a member."""
    return f"{pod}{f' on {node}' if node else ''}: {why}"
