"""Sentences about reservations, for conditions, Placements and `muster explain`."""

from collections.abc import Sequence

from muster.api.kubernetes.meta import format_time

NAMED = 3
"""Nodes or gangs that are named in a sentence."""


def listed(names: Sequence[str]) -> str:
    """The first of many names, and how many there are more."""
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")


def cause(gang: str) -> str:
    """Why a node with room does not take a pod that would be in the way of this gang."""
    return f"kept for the reservation of {gang}"


def expected(at: float | None) -> str:
    """When a reservation is expected to begin."""
    return "at a time that is not known" if at is None else f"expected at {format_time(at)}"


def reserved(nodes: Sequence[str], at: float | None, ending: Sequence[str], patience_s: float) -> str:
    """What is kept for a gang, and why."""
    what = f"1 node, {nodes[0]}" if len(nodes) == 1 else f"{len(nodes)} nodes, {listed(nodes)}"
    if at is None:
        why = f"because it has waited for more than {patience_s:g} s and no pod there says how long it runs"
        return f"reserved: {what}, {expected(at)}; what becomes free there is kept for it, {why}"
    who = f"because {listed(ending)} {'is' if len(ending) == 1 else 'are'} expected to have ended there"
    return f"reserved: {what}, {expected(at)}" + (f", {who}" if ending else "")


def in_the_way(reservations: Sequence[tuple[str, Sequence[str], float | None]]) -> str:
    """Why a gang does not start on nodes that have room for it; of each reservation its gang, nodes and time."""
    parts = [f"the reservation of {gang} on {listed(nodes)}, {expected(at)}" for gang, nodes, at in reservations]
    return f"it would run into {' and '.join(parts)}"


def behind(queue: str, head: str) -> str:
    """Why a gang of a strictly ordered queue is not tried."""
    return f"queue {queue!r} starts its gangs strictly in order, and {head} before it waits for room"
