"""Conversion of a cycle's decisions to short strings for recordings; equal decisions have equal strings."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from extender.planner.framework import decisions
from extender.planner.framework.decisions import Decision
from extender.planner.framework.session import Session
from muster.api.muster.placement import PodSetPlacement

DecisionText = tuple[str, ...]
"""A decision as strings: verb, key of the gang, and further details."""


def decision_lines(session: Session) -> list[DecisionText]:
    """Return the texts of a cycle's decisions that change the cluster, in order; reasons for waiting are omitted."""
    found: list[DecisionText] = []
    for decision in session.decisions:
        words = _DECISION_TEXTS.get(type(decision))
        if words is not None:
            verb, more = words
            found += [(verb, decision.gang.key, *rest) for rest in more(decision)]
    return found


def nodes_text(pod_sets: list[PodSetPlacement]) -> str:
    """Return the nodes of pod sets in rank order, such as `worker node-1*8,node-2*8; launcher node-1*1`."""
    return "; ".join(
        f"{pod_set.name} {','.join(f'{run.node or None}*{run.count}' for run in pod_set.runs)}" for pod_set in pod_sets
    )


def _victims(decision: Any) -> Iterator[DecisionText]:
    return ((victim.key, pod.key) for victim, pod in decision.victims)


def _placement_text(place: decisions.Place) -> Iterator[DecisionText]:
    yield str(place.epoch), nodes_text(place.pod_sets), *(" ".join(each) for each in _victims(place))


_DECISION_TEXTS: dict[type[Decision], tuple[str, Callable[[Any], Iterable[DecisionText]]]] = {
    decisions.AdmitGang: ("enqueue", lambda _: [()]),
    decisions.Place: ("place", _placement_text),
    decisions.ClosePlacement: ("close", lambda close: [(close.phase,)]),
    decisions.Reserve: ("reserve", lambda reserve: [(nodes_text(reserve.pod_sets),)]),
    decisions.Unreserve: ("unreserve", lambda _: [()]),
    decisions.Evict: ("evict", lambda evict: [(evict.pod.key,)]),
    decisions.EvictForFaults: ("repair", lambda repair: [(pod.key,) for pod in repair.pods]),
    decisions.MakeRoom: ("make-room", _victims),
    decisions.RoomIsThere: ("room-is-there", lambda _: [()]),
    decisions.Release: ("release", lambda release: [(release.pod.key, release.node)]),
    decisions.RequestNodes: ("request-nodes", lambda request: [(request.name,)]),
}
"""Maps a type of decision to its verb, and to a function that yields the details of each decision."""
