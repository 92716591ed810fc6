"""The fair share of every queue of a tree: what a parent has is divided among its children, resource by resource."""

from collections.abc import Mapping

import numpy as np

from extender.planner.fairshare.allocations import Allocations
from extender.planner.fairshare.division import Claim, Rounding, divide
from extender.planner.fairshare.tree import Shares


def fair_shares(
    allocations: Allocations,
    rounding: Rounding = "exact",
    usage_weight: float = 1.0,
    usage: Mapping[str, Shares] | None = None,
) -> Shares:
    """float64 of shape (queues, resources).

    `usage` is by queue what it used over time on average, with those below it. KAI measures it against the cluster at
    every level, `exact` against what all queues of the same parent used, so that it counts in small branches too.
    """
    tree = allocations.tree
    fair = np.zeros(allocations.used.shape, dtype=np.float64)
    fair[0] = allocations.total
    requestable = allocations.request.astype(np.float64)
    if rounding == "exact":
        requestable = _within_limits(allocations)
    past = np.zeros_like(fair)
    for name, amounts in (usage or {}).items():
        if name in tree.index:
            past[tree.index[name]] = amounts
    for row, children in enumerate(tree.children):
        if not children:
            continue
        rows = list(children)
        asked = requestable[rows]
        whole = past[rows].sum(axis=0) if rounding == "exact" else allocations.total
        recent = np.divide(past[rows], whole, out=np.zeros_like(past[rows]), where=whole > 0)
        if rounding == "exact":
            plenty = asked.sum(axis=0) <= fair[row]
            fair[rows] = np.where(plenty, asked, 0.0)
            scarce = np.flatnonzero(~plenty)
        else:
            scarce = np.arange(len(allocations.total))
        for column in scarce:
            unit = tree.units[column]
            claims = [
                Claim(
                    deserved=float(tree.deserved[child, column]) / unit,
                    weight=tree.weight[child],
                    request=float(asked[position, column]) / unit,
                    limit=float(tree.limit[child, column]) / unit,
                    priority=tree.priority[child],
                    usage=float(recent[position, column]),
                    guarantee=float(tree.guarantee[child, column]) / unit,
                    born=tree.born[child],
                )
                for position, child in enumerate(rows)
            ]
            divided = divide(float(fair[row, column]) / unit, claims, rounding, usage_weight)
            fair[rows, column] = [share * unit for share in divided]
    return fair


def _within_limits(allocations: Allocations) -> Shares:
    """What every queue asks for, nobody below it asking for more than its limit."""
    tree = allocations.tree
    asked = allocations.request.astype(np.float64)
    for row in range(len(tree.names) - 1, 0, -1):
        own = allocations.request[row] - allocations.request[list(tree.children[row])].sum(axis=0)
        below = asked[list(tree.children[row])].sum(axis=0)
        asked[row] = np.minimum(tree.limit[row], own + below)
    return asked
