"""Evictions that are announced or in progress, shown as reasons in the rows of the affected gangs.

The row of a gang that will be evicted shows the time of the eviction, and the gang that gets the nodes. The row of the
gang that gets the nodes lists the evictions for which it waits. All functions are pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from muster.api import names
from muster.api.grammar import listed, verb
from muster.api.kubernetes.core import Pod
from muster.api.muster.placement import Placement
from muster.api.volcano.scheduling import PodGroup
from muster.workloads.owners import workload_of

_ACTIONS = {"preempted": "preempt", "reclaimed": "reclaim", "recalled": "recall", "moved": "move"}
"""Maps the last part of an eviction reason's code to the planner action that decided on the eviction."""
_TIME = slice(len("2026-11-30T"), None)
"""Slice that selects the time of day in an RFC 3339 time."""


class EvictionText(NamedTuple):
    """The reason for an eviction: a few words for lists, and a full sentence."""

    reason: str
    message: str


def evictions(
    groups: Sequence[PodGroup],
    placements: Sequence[Placement],
    pods: Mapping[tuple[str, str], Sequence[Pod]],
) -> dict[str, EvictionText]:
    """Return a mapping from the key of each gang that will be evicted, or that waits for evictions, to its text.

    The victims are named in the placement of the gang that gets their nodes. If `placements` lacks this placement, the
    annotations of a victim's pods name at least the queue of the gang that gets the nodes.
    """
    titles = {}
    for group in groups:
        owner = workload_of(group)
        titles[group.metadata.key] = f"{owner.kind} {owner.name}"
    found = dict(_of_members(pods))
    for placement in placements:
        key = placement.metadata.key
        victims = dict.fromkeys(map(placement.gang_key, placement.spec.victims))
        if not victims or key in victims or key not in titles:
            continue  # moved or repaired gangs do not wait for other gangs
        why = placement.spec.victims_why
        action = _ACTIONS.get(why.code.partition("-")[2], "") if why else ""
        ends = {placement.gang_key(notice): notice.evict_at for notice in placement.spec.notices}
        for victim in victims:
            if victim in ends:
                found[victim] = _leaves(ends[victim], titles[key] + (f" ({action})" if action else ""))
        found[key] = _waits([titles.get(each, "others") for each in victims], max(ends.values(), default=""))
    return found


def displacers(groups: Sequence[PodGroup], placements: Sequence[Placement]) -> dict[str, str]:
    """Return a mapping from the key of each evicted gang to the workload that got its nodes, as `Job team/train`.

    Workloads that no longer exist are left out.
    """
    owners = {group.metadata.key: workload_of(group) for group in groups}
    return {
        victim: f"{owners[key].kind} {placement.metadata.namespace}/{owners[key].name}"
        for placement in placements
        for victim in placement.status.made_room
        if (key := placement.metadata.key) in owners and victim != key
    }


def _of_members(pods: Mapping[tuple[str, str], Sequence[Pod]]) -> Iterator[tuple[str, EvictionText]]:
    """Yield key and text of each gang whose pods have an eviction notice in their annotations."""
    for (namespace, name), members in pods.items():
        annotations = [each.metadata.annotations for each in members if not each.metadata.deletion_timestamp]
        notices = sorted(
            (each[names.EVICT_AT], each.get(names.EVICT_FOR, "")) for each in annotations if names.EVICT_AT in each
        )
        if notices:
            at, queue = notices[0]
            yield f"{namespace}/{name}", _leaves(at, f"queue {queue}" if queue else "another gang")


def _leaves(at: str, whom: str) -> EvictionText:
    return EvictionText(
        f"leaves at {at[_TIME]} for {whom}",
        f"the gang will be evicted at {at}, or as soon as it has answered, for {whom}",
    )


def _waits(whom: Sequence[str], until: str) -> EvictionText:
    who = listed(list(dict.fromkeys(whom)), 2)
    leave = verb(len(set(whom)), "leave")
    return EvictionText(
        f"waits until {who} {leave}" + (f", at {until[_TIME]} at the latest" if until else ""),
        f"the gang has its nodes, and waits until {who} {leave} them"
        + (f", at {until} at the latest" if until else ""),
    )
