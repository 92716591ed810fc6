"""What is wrong with members that were given a node: containers that do not start, and nodes that do not answer.

The planner has done its part for them; what is left is between kubelet, the node and the user.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from extender.explain.report import Relief
from extender.explain.whatif import WhatIf
from extender.planner.state.gangs import GangView
from muster.api.kubernetes.core import Node, Pod
from muster.api.kubernetes.pod_problems import deletion_began, problems, sentence

SHOWN = 8
"""Members that are told one by one; of more there is the number only."""
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"


@dataclass(slots=True)
class Members:
    """The members that do not do what they should."""

    details: list[str] = field(default_factory=list)
    """One line each."""
    lost: list[Pod] = field(default_factory=list)
    """On a node that is gone or not Ready, in order of their nodes."""
    hindered: str = ""
    """The first one that kubelet says something of, as a sentence."""


def members(what_if: WhatIf, gang: GangView) -> Members:
    """What is wrong with the members of a gang."""
    pods = sorted(what_if.pods_of(gang.key), key=lambda pod: (pod.spec.node_name, pod.metadata.name))
    result = Members(lost=[pod for pod in pods if pod.spec.node_name and is_lost(what_if, pod)])
    told = sentence(pods)
    result.hindered = told[1] if told else ""
    lines = [f"{pod.metadata.name} {text}" for pod in pods if (text := deletion(what_if, pod) or silence(what_if, pod))]
    for pod, problem in problems(pods):
        where = f" on {pod.spec.node_name}" if pod.spec.node_name else ""
        lines.append(f"{pod.metadata.name}{where}: {problem.words}")
    more = len(lines) - SHOWN
    result.details = lines[:SHOWN] + ([f"and {more} more of this kind"] if more > 0 else [])
    return result


def is_lost(what_if: WhatIf, pod: Pod) -> bool:
    """Whether nobody can say how the pod is: its node is gone, or not Ready. A pod that has ended is not lost."""
    if pod.finished and not pod.metadata.deletion_timestamp:
        return False
    return _silent(what_if, pod) != ""


def deletion(what_if: WhatIf, pod: Pod) -> str:
    """How far its deletion is, e.g. `is being deleted since … from node-3, which …`; empty if it is not deleted."""
    began = deletion_began(pod.metadata)
    if began is None:
        return ""
    where = f" from {pod.spec.node_name}" if pod.spec.node_name else ""
    silent = _silent(what_if, pod) if pod.spec.node_name else ""
    why = f", which {silent}, so that nobody there confirms its end" if silent else ""
    kept = ", ".join(pod.metadata.finalizers)
    return f"is being deleted since {began}{where}{why}" + (f"; it is kept by the finalizers {kept}" if kept else "")


def silence(what_if: WhatIf, pod: Pod) -> str:
    """Why nothing is known of a pod that is not being deleted; empty if its node answers."""
    if not pod.spec.node_name or not is_lost(what_if, pod):
        return ""
    return f"is on {pod.spec.node_name}, which {_silent(what_if, pod)}: whether it still runs is not known"


def frees(what_if: WhatIf, lost: list[Pod]) -> Iterator[Relief]:
    """What lets go of pods that are being deleted on nodes that do not answer; by node."""
    by_node: dict[str, list[Pod]] = {}
    for pod in lost:
        if pod.metadata.deletion_timestamp:
            by_node.setdefault(pod.spec.node_name, []).append(pod)
    for name, pods in by_node.items():
        names = " ".join(pod.metadata.name for pod in pods)
        force = f"kubectl delete pod {names} -n {pods[0].metadata.namespace} --grace-period=0 --force"
        if _node(what_if, name):
            text = f"{name} comes back; or, if it is surely off, kubectl taint node {name} {OUT_OF_SERVICE}, or {force}"
        else:
            text = f"what is left on {name}, which is gone, is deleted by force: {force}"
        yield Relief("frees", text, (name,), tried=False)


def _silent(what_if: WhatIf, pod: Pod) -> str:
    node = _node(what_if, pod.spec.node_name)
    if node is None:
        return "is gone"
    found = _unready(node)
    return "" if found is None else f"is not Ready since {found}" if found else "is not Ready"


def _node(what_if: WhatIf, name: str) -> Node | None:
    column = what_if.state.nodes.index.get(name)
    return None if column is None else what_if.state.nodes.nodes[column]


def _unready(node: Node) -> str | None:
    """Since when the node is not Ready, empty if it does not say; None if it is, or nobody has said yet."""
    ready = next((each for each in node.status.conditions if each.type == "Ready"), None)
    return None if ready is None or ready.status == "True" else ready.last_transition_time or ""
