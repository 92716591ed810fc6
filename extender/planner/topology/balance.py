"""Equal shares of the domains, or nodes, that pods are spread over. Arrays only.

After Kueue's balanced placement: as few domains as can hold the pods; of these numbers of pods the smallest is as large
as it can be, which is the *threshold*; domains with less room than that are left out, and of the others those are taken
that leave least room unused. What is above the threshold goes to the domains with most room.
"""

import numpy as np

from extender.planner.state.amounts import Amounts


def thresholds(rooms: Amounts, parents: Amounts, domains: int, pods: int) -> tuple[Amounts, Amounts]:
    """Return for each domain the threshold of its children, and how many of them are used; 0 where they hold too few.

    `rooms` and `parents` are of the children: the pods that each holds, and its domain, -1 for none.
    """
    order = np.lexsort([-rooms, parents])
    order = order[parents[order] >= 0]
    of, room = parents[order], rooms[order]
    first = np.searchsorted(of, np.arange(domains))
    total = np.cumsum(room)
    before = np.concatenate([[0], total])[first]
    enough = np.searchsorted(total, before + max(pods, 1))  # the child with which there is room for all
    end = np.searchsorted(of, np.arange(domains), side="right")
    fits = enough < end
    few: Amounts = np.where(fits, enough - first + 1, 0).astype(np.int64)
    last = room[np.minimum(enough, max(len(room) - 1, 0))] if len(room) else np.zeros(domains, dtype=np.int64)
    threshold: Amounts = np.where(fits, np.minimum(pods // np.maximum(few, 1), last), 0).astype(np.int64)
    return threshold, few


def equal_shares(rooms: Amounts, pods: int, first: Amounts) -> tuple[Amounts, Amounts]:
    """Return the positions of the domains that are used, and the pods of each; of equal ones the `first` are used."""
    order = np.lexsort([first, -rooms])
    order = order[rooms[order] > 0]
    room = rooms[order]
    pods = min(pods, int(room.sum()))
    if not pods:
        return order[:0], room[:0]
    few = int(np.searchsorted(np.cumsum(room), pods)) + 1
    threshold = min(pods // few, int(room[few - 1]))
    total = np.concatenate([[0], np.cumsum(room[room >= threshold])])
    windows = total[few:] - total[:-few]  # neighbours by room; falling
    tight = windows[np.flatnonzero(windows >= pods)[-1]]
    start = int(np.argmax(windows == tight))
    room = room[start : start + few]
    extra = pods - few * threshold
    before = np.cumsum(room - threshold) - (room - threshold)
    return order[start : start + few], threshold + np.clip(extra - before, 0, room - threshold)
