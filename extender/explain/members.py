"""The slots of a gang, grouped by their progress, and problems of members that are bound to nodes.

Members have two kinds of problems: a failed start, or a node that does not respond.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from extender.explain.report import PodSetReport, Relief
from extender.explain.whatif import WhatIf
from extender.planner import reasons
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.state.pods import PodRecord
from extender.planner.state.podset import PodSetView
from muster.api.grammar import listed
from muster.api.kubernetes.core import NODES, Node, Pod
from muster.api.kubernetes.pod_problems import deletion_began, problems, sentence
from muster.api.muster.noderuns import runs_of
from muster.api.muster.placement import NodeRun, Placement, PodSetPlacement
from muster.resources.vector import PODS, Vector, add, to_quantities, vector_text
from muster.workloads.owners import workload_of

NODES_SHOWN = 12
"""Maximum number of nodes that a report names per pod set."""
SLOTS_SHOWN = 4
"""Maximum number of slots that a report names for each step of progress."""
MEMBERS_SHOWN = 8
"""Maximum number of members' problems that a report lists, one per line."""


def pod_set_report(gang: GangView, pod_set: PodSetView) -> PodSetReport:
    """Return the report of one pod set, with the number of slots in each state."""
    requests = readable_requests(pod_set.cls)
    done = pod_set.gone + sum(pod.phase == "Succeeded" and _in(pod, pod_set) for pod in gang.pods)
    pods = pod_set.waiting.values()
    failed, leaving = _gone_soon(gang, pod_set)
    slots = len(pod_set.taken) + len(pod_set.waiting) + failed + leaving
    minimum = gang.min_member if len(gang.pod_sets) == 1 else gang.minimums[pod_set.name]
    return PodSetReport(
        name=pod_set.name,
        replicas=pod_set.replicas,
        minimum=minimum,
        requests=to_quantities(requests),
        each=vector_text(requests) if pod_set.cls else "",
        bound=max(0, len(pod_set.taken) - done),
        done=done,
        held=sum(each is pod_set for _, _, each in gang.placed_slots()),
        gated=sum(pod.gated for pod in pods),
        pinned=sum(bool(pod.pin) and not pod.gated for pod in pods),
        ungated=sum(not (pod.gated or pod.pin) for pod in pods),
        failed=failed,
        leaving=leaving,
        missing=max(0, (pod_set.replicas if pod_set.template else minimum) - slots),
    )


def readable_requests(cls: PodClass | None) -> Vector:
    """Return the requests of a pod of class `cls`, including claimed devices; empty if the class is unknown."""
    if cls is None:
        return {}
    hidden = {PODS, *cls.needs.replaced}
    return add({name: amount for name, amount in cls.asked.items() if name not in hidden}, dict(cls.needs.shown))


def where(gang: GangView, placed: Iterable[PodSetPlacement] | None = None) -> list[str]:
    """Return the nodes of a gang's members or `placed` slots in rank order, as one line for each pod set."""
    if placed is not None:
        return [f"{pod_set.name}: {runs_text(pod_set.runs)}" for pod_set in placed]
    lines = []
    for pod_set in gang.pod_sets:
        nodes = [node for _, node in sorted(pod_set.taken.items()) if node]
        if nodes:
            lines.append(f"{pod_set.name}: {runs_text(runs_of(dict(enumerate(nodes))))}")
    return lines


def gang_text(gang: GangView) -> str:
    """Return the workload of the gang as `Job ns/name`; the gang's key if there is no owner."""
    meta, above = gang.group.metadata, workload_of(gang.group)
    return f"{above.kind} {meta.namespace}/{above.name}" if meta.controller else gang.key


def runs_text(runs: list[NodeRun]) -> str:
    """Return the first nodes and their numbers of pods as text, such as `node-0 (2), node-1`."""
    named = [f"{run.node} ({run.count})" if run.count > 1 else run.node for run in runs if run.node]
    return listed(named, NODES_SHOWN, "more nodes")


def progress(what_if: WhatIf, gang: GangView) -> Iterator[str]:
    """Yield one sentence about a gang's placed slots for each step that slots are waiting for."""
    if gang.placement is None:
        return
    names: dict[str, list[str]] = {}
    for slot, node, pod_set in gang.placed_slots():
        if pod_set is not None:
            stage = _stage(gang.placement, pod_set.waiting.get(slot.rank))
            names.setdefault(stage, []).append(reasons.members.slot(pod_set=slot.pod_set, rank=slot.rank, node=node))
    for stage, slots in names.items():
        yield reasons.members.stage(count=len(slots), stage=stage, slots=listed(slots, SLOTS_SHOWN))
    if what_if.now and names:
        spec = gang.placement.spec
        yield reasons.gangs.given_up_at(epoch=spec.epoch, deadline=spec.deadline)


def _stage(placement: Placement, pod: PodRecord | None) -> str:
    if pod is None:
        return reasons.members.NOT_CREATED
    if pod.gated:
        return reasons.members.BEHIND_THE_GATE
    if pod.epoch is not None and pod.epoch != placement.spec.epoch:
        return reasons.members.stale_pin(epoch=pod.epoch)
    return reasons.members.REFUSED if pod.refused else reasons.members.NOT_ANSWERED


def _gone_soon(gang: GangView, pod_set: PodSetView) -> tuple[int, int]:
    """Return the number of slots with only failed pods, and the number of slots with a terminating pod."""
    slots: dict[int, bool] = {}
    for pod in gang.pods:
        over = pod.terminating or pod.phase == "Failed"
        if over and pod.slot and _in(pod, pod_set) and pod.slot.rank not in {*pod_set.taken, *pod_set.waiting}:
            slots[pod.slot.rank] = slots.get(pod.slot.rank, False) or pod.terminating
    leaving = sum(slots.values())
    return len(slots) - leaving, leaving


def _in(pod: PodRecord, pod_set: PodSetView) -> bool:
    return pod.slot is not None and pod.slot.pod_set == pod_set.name


@dataclass(slots=True)
class MemberProblems:
    """The problems of members that are bound to nodes."""

    details: list[str] = field(default_factory=list)
    """One line for each problem."""
    lost: list[Pod] = field(default_factory=list)
    """Members on nodes that are gone or not Ready, in the order of the nodes."""
    hindered: str = ""
    """The first problem that kubelet reports about a member, as a sentence."""


def members(what_if: WhatIf, gang: GangView) -> MemberProblems:
    """Return the problems of a gang's members."""
    pods = sorted(what_if.pods_of(gang.key), key=lambda pod: (pod.spec.node_name, pod.metadata.name))
    result = MemberProblems(lost=[pod for pod in pods if pod.spec.node_name and is_lost(what_if, pod)])
    ended = sentence(pods)
    result.hindered = ended[1] if ended else ""
    words = reasons.members
    lines = [
        words.pod_state(pod=pod.metadata.name, what=text)
        for pod in pods
        if (text := deletion(what_if, pod) or silence(what_if, pod))
    ]
    lines += [words.hindered_member(pod.metadata.name, pod.spec.node_name, each.words) for pod, each in problems(pods)]
    more = len(lines) - MEMBERS_SHOWN
    result.details = lines[:MEMBERS_SHOWN] + ([words.more_of_this_kind(count=more)] if more > 0 else [])
    return result


def is_lost(what_if: WhatIf, pod: Pod) -> bool:
    """Return True for a pod whose node is gone or not Ready, unless the pod has finished."""
    if pod.finished and not pod.metadata.deletion_timestamp:
        return False
    return _silent(what_if, pod) != ""


def deletion(what_if: WhatIf, pod: Pod) -> str:
    """Return `has been terminating since … from node-3, which …` for a terminating pod; empty for other pods."""
    began = deletion_began(pod.metadata)
    if began is None:
        return ""
    node = pod.spec.node_name
    return reasons.members.deleted(began, node, _silent(what_if, pod) if node else "", pod.metadata.finalizers)


def silence(what_if: WhatIf, pod: Pod) -> str:
    """Return the reason why the state of a pod is unknown; empty if the pod's node responds."""
    if not pod.spec.node_name or not is_lost(what_if, pod):
        return ""
    return reasons.members.silent(node=pod.spec.node_name, silence=_silent(what_if, pod))


def frees(what_if: WhatIf, lost: list[Pod]) -> Iterator[Relief]:
    """Yield ways to finish the deletion of pods, for each node that does not respond."""
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
        return reasons.members.NODE_GONE if what_if.knows(NODES) else ""
    ready = next((each for each in node.status.conditions if each.type == "Ready"), None)
    if ready is None or ready.status == "True":  # a new node has no condition yet
        return ""
    return reasons.members.not_ready(ready.last_transition_time or "")


def _node(what_if: WhatIf, name: str) -> Node | None:
    column = what_if.state.nodes.index.get(name)
    return None if column is None else what_if.state.nodes.nodes[column]
