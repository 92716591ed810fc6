"""What is reserved for a gang at the head of its queue, and who would be in the way of it."""

from collections.abc import Sequence

from extender.planner.reasons.grammar import be, listed
from muster.api.kubernetes.meta import format_time

OVER = "nothing is reserved any more: it is not the head of its queue, or its nodes do not take it"


def expected(at: float | None) -> str:
    """When a reservation is expected to begin."""
    return "at a time that is not known" if at is None else f"expected at {format_time(at)}"


def reserved(nodes: Sequence[str], at: float | None, ending: Sequence[str], patience_s: float) -> str:
    """Nodes that are reserved for a gang, and why."""
    what = f"1 node, {nodes[0]}" if len(nodes) == 1 else f"{len(nodes)} nodes, {listed(nodes)}"
    if at is None:
        why = f"because it has waited for more than {patience_s:g} s and no pod there says how long it runs"
        return f"reserved: {what}, {expected(at)}; what becomes free there is reserved for it, {why}"
    who = f", because {listed(ending)} {be(len(ending))} expected to have ended there" if ending else ""
    return f"reserved: {what}, {expected(at)}{who}"


def in_the_way(reservations: Sequence[tuple[str, Sequence[str], float | None]]) -> str:
    """Why a gang does not start on nodes that have room for it; of each reservation its gang, nodes and time."""
    parts = [f"the reservation of {gang} on {listed(nodes)}, {expected(at)}" for gang, nodes, at in reservations]
    return f"it would run into {' and '.join(parts)}" if parts else ""
