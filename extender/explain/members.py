"""What is wrong with members that were given a node: containers that do not start, and nodes that do not answer.

The planner has done its part for them; what is left is between kubelet, the node and the user.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from extender.explain.report import Relief
from extender.explain.whatif import WhatIf
from extender.planner import reasons
from extender.planner.state.gangs import GangView
from muster.api.kubernetes.core import Node, Pod
from muster.api.kubernetes.pod_problems import deletion_began, problems, sentence

SHOWN = 8
"""Members that are told one by one; of more there is the number only."""


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
    words = reasons.members
    lines = [
        words.told(pod=pod.metadata.name, what=text)
        for pod in pods
        if (text := deletion(what_if, pod) or silence(what_if, pod))
    ]
    lines += [words.hindered_member(pod.metadata.name, pod.spec.node_name, each.words) for pod, each in problems(pods)]
    more = len(lines) - SHOWN
    result.details = lines[:SHOWN] + ([words.more_of_this_kind(count=more)] if more > 0 else [])
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
    node = pod.spec.node_name
    return reasons.members.deleted(began, node, _silent(what_if, pod) if node else "", pod.metadata.finalizers)


def silence(what_if: WhatIf, pod: Pod) -> str:
    """Why nothing is known of a pod that is not being deleted; empty if its node answers."""
    if not pod.spec.node_name or not is_lost(what_if, pod):
        return ""
    return reasons.members.silent(node=pod.spec.node_name, silence=_silent(what_if, pod))


def frees(what_if: WhatIf, lost: list[Pod]) -> Iterator[Relief]:
    """What lets go of pods that are being deleted on nodes that do not answer; by node."""
    by_node: dict[str, list[Pod]] = {}
    for pod in lost:
        if pod.metadata.deletion_timestamp:
            by_node.setdefault(pod.spec.node_name, []).append(pod)
    for name, pods in by_node.items():
        names = " ".join(pod.metadata.name for pod in pods)
        force = reasons.relief.force(pods=names, namespace=pods[0].metadata.namespace)
        gone = reasons.relief.gone_node(node=name, force=force)
        text = reasons.relief.silent_node(node=name, force=force) if _node(what_if, name) else gone
        yield Relief("frees", text, (name,), tried=False)


def _silent(what_if: WhatIf, pod: Pod) -> str:
    node = _node(what_if, pod.spec.node_name)
    if node is None:
        return reasons.members.NODE_GONE
    ready = next((each for each in node.status.conditions if each.type == "Ready"), None)
    if ready is None or ready.status == "True":  # or nobody has said yet
        return ""
    return reasons.members.not_ready(ready.last_transition_time or "")


def _node(what_if: WhatIf, name: str) -> Node | None:
    column = what_if.state.nodes.index.get(name)
    return None if column is None else what_if.state.nodes.nodes[column]
