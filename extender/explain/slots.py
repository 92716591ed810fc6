"""How far the slots of a gang are, and where they are."""

from collections.abc import Iterable, Iterator

from extender.explain.report import PodSetReport
from extender.explain.whatif import WhatIf
from extender.planner import reasons
from extender.planner.reasons.grammar import listed
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.state.pods import PodRecord
from extender.planner.state.podset import PodSetView
from muster.api.muster.placement import NodeRun, Placement, PodSetPlacement, runs_of
from muster.resources.vector import PODS, Vector, add, to_quantities
from muster.resources.words import vector_words

SHOWN = 12
"""Nodes that are named of a pod set."""
NAMED = 4
"""Slots that are named of those that wait for the same."""


def pod_set_report(gang: GangView, pod_set: PodSetView) -> PodSetReport:
    """Slots of one pod set, counted."""
    requests = {name: amount for name, amount in told_requests(pod_set.cls).items() if name != PODS}
    done = sum(pod.phase == "Succeeded" and _in(pod, pod_set) for pod in gang.pods)
    pods = pod_set.waiting.values()
    failed, leaving = _gone_soon(gang, pod_set)
    slots = len(pod_set.taken) + len(pod_set.waiting) + failed + leaving
    return PodSetReport(
        name=pod_set.name,
        replicas=pod_set.replicas,
        minimum=_minimum(gang, pod_set),
        requests=to_quantities(requests),
        each=vector_words(requests) if pod_set.cls else "",
        bound=max(0, len(pod_set.taken) - done),
        done=done,
        held=sum(each is pod_set for _, _, each in gang.placed_slots()),
        gated=sum(pod.gated for pod in pods),
        pinned=sum(bool(pod.pin) and not pod.gated for pod in pods),
        failed=failed,
        leaving=leaving,
        missing=max(0, _wanted(gang, pod_set) - slots),
    )


def told_requests(cls: PodClass | None) -> Vector:
    """What a pod asks for, devices that it claims included; nothing if that is not known yet."""
    if cls is None:
        return {}
    replaced = cls.needs.replaced
    return add({name: amount for name, amount in cls.asked.items() if name not in replaced}, dict(cls.needs.told))


def where(gang: GangView, placed: Iterable[PodSetPlacement] | None = None) -> list[str]:
    """Nodes in rank order, one line for each pod set; of a placement if it is given, else where the members are."""
    if placed is not None:
        return [f"{pod_set.name}: {runs_words(pod_set.runs)}" for pod_set in placed]
    lines = []
    for pod_set in gang.pod_sets:
        nodes = [node for _, node in sorted(pod_set.taken.items()) if node]
        if nodes:
            lines.append(f"{pod_set.name}: {runs_words(runs_of(dict(enumerate(nodes))))}")
    return lines


def gang_words(gang: GangView) -> str:
    """The gang as its owner calls it, `Job ns/name`; its key if it has no owner."""
    owner = gang.group.metadata.controller
    return f"{owner.kind} {gang.group.metadata.namespace}/{owner.name}" if owner else gang.key


def runs_words(runs: list[NodeRun]) -> str:
    """`node-0 (2), node-1`; of very many nodes only the first are named."""
    named = [f"{run.node} ({run.count})" if run.count > 1 else run.node for run in runs if run.node]
    return listed(named, SHOWN, "more nodes")


def progress(what_if: WhatIf, gang: GangView) -> Iterator[str]:
    """Members of an active placement that are not bound yet, by what they wait for."""
    if gang.placement is None:
        return
    names: dict[str, list[str]] = {}
    for slot, node, pod_set in gang.placed_slots():
        if pod_set is not None:
            stage = _stage(gang.placement, pod_set.waiting.get(slot.rank))
            names.setdefault(stage, []).append(reasons.members.slot(pod_set=slot.pod_set, rank=slot.rank, node=node))
    for stage, slots in names.items():
        yield reasons.members.stage(count=len(slots), stage=stage, slots=listed(slots, NAMED))
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
    """Slots of pods that have failed, and of pods that are being deleted, as far as nobody else has them by now."""
    slots: dict[int, bool] = {}
    for pod in gang.pods:
        over = pod.terminating or pod.phase == "Failed"
        if over and pod.slot and _in(pod, pod_set) and pod.slot.rank not in {*pod_set.taken, *pod_set.waiting}:
            slots[pod.slot.rank] = slots.get(pod.slot.rank, False) or pod.terminating
    leaving = sum(slots.values())
    return len(slots) - leaving, leaving


def _minimum(gang: GangView, pod_set: PodSetView) -> int:
    return pod_set.minimum or (gang.min_member if len(gang.pod_sets) == 1 else 0)


def _wanted(gang: GangView, pod_set: PodSetView) -> int:
    """Slots that the owner fills as far as we know: all of a template's, else what the gang starts with."""
    return pod_set.replicas if pod_set.template else _minimum(gang, pod_set)


def _in(pod: PodRecord, pod_set: PodSetView) -> bool:
    return pod.slot is not None and pod.slot.pod_set == pod_set.name
