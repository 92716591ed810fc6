"""Gives pods of a running gang new slots, as they are and not as their template, near to those that stay."""

from collections.abc import Mapping, Sequence

from extender.planner.actions.fill import PartSearch, fill
from extender.planner.actions.search import there
from extender.planner.framework.answers import EVERYWHERE, NodeSet
from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement
from extender.planner.state.gangs import GangView
from extender.planner.state.pods import PodRecord
from extender.planner.state.podset import PodSetView


def moved(session: Session, statement: Statement, gang: GangView, pods: Sequence[PodRecord]) -> bool:
    """Give all these pods, which the statement has evicted or which have ended, new slots; False if one has no room."""
    alike: dict[str, PodSetView] = {}
    for pod in pods:
        if pod.slot is not None:
            name = pod.slot.pod_set
            alike.setdefault(name, PodSetView(name, pod.cls, 0, 0, mixed=True)).waiting[pod.slot.rank] = pod
    slots = {name: sorted(pod_set.waiting) for name, pod_set in alike.items()}

    def fill_slots(wanted: Mapping[str, Sequence[int]], nodes: NodeSet) -> bool:
        return all(
            fill(session, statement, gang, alike[name], ranks, nodes) == len(ranks) for name, ranks in wanted.items()
        )

    ask = session.ask(gang)
    standing = there(session, statement, ask)
    for name, found in (standing or {}).items():
        for rank in slots.get(name, ()):
            found.pop(rank, None)
    part = ask.part(slots, standing)
    return PartSearch(session, statement, gang, fill_slots).place(part, EVERYWHERE)
