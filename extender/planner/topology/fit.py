"""Number of pods that fit into each domain, the best domain, and the order in which a domain's nodes are filled.

The module computes with arrays only. The rules follow Kueue's topology-aware scheduling (BestFit). The number of pods
that fit on a node results from an integer division, and the number for a domain is a sum over its nodes. Only whole
slices are counted. Among the domains of a level, the smallest sufficient domain is chosen. Inside the chosen domain, as
few domains as possible are used at each level. The last pods are placed in the smallest domain that can hold all of
them. Among equally full domains, higher node scores decide, then the smaller amount of capacity that stays free.
Finally, domains whose outer domains are fullest are preferred, so that large domains stay empty.

The balanced profile spreads pods in equal shares over as few domains as possible, like Kueue's balanced placement. The
smallest share, which is called the *threshold*, is maximized. Domains that can hold fewer pods than the threshold are
left out. Of the remaining domains, the planner uses the domains that leave the least capacity unused. Pods above the
threshold are placed in the domains with the most capacity.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from extender.planner.state.amounts import Amounts, Mask
from extender.planner.topology.tree import Geometry

Profile = Literal["best-fit", "least-free", "balanced"]
Counts = NDArray[np.int64]
_Filled = tuple[Amounts, Counts]
"""Columns of nodes, and the number of pods to place on each node."""
Tie = Callable[[], Amounts | None]
"""Type of a function that returns amounts per node. The sums of the amounts decide between domains that can hold
equally many pods; None means no decision."""


@dataclass(frozen=True, slots=True, eq=False)
class WantedPods:
    """Pods of one kind that are to be placed in a domain."""

    geometry: Geometry
    room: Amounts
    """Number of pods that fit on each candidate node, at most `most`, and 0 on other nodes; int64 of shape (nodes,)."""
    least: int
    """Number of pods that the chosen domain must be able to hold."""
    most: int
    """Number of pods that the chosen domain should be able to hold, if possible."""
    slices: tuple[tuple[int, int], ...] = ()
    """Level and size of slices, outermost first."""


def held(wanted: WantedPods, level: int, room: Amounts | None = None) -> Counts:
    """Return how many pods fit into each domain of a level, in whole slices; int64 of shape (domains,)."""
    sizes = dict(wanted.slices)
    innermost = max((level, *sizes))
    counts = wanted.geometry.sums(innermost, wanted.room if room is None else room)
    for at in range(innermost, level - 1, -1):
        if at < innermost:
            counts = wanted.geometry.lifted(at + 1, counts)
        if at in sizes:
            counts -= counts % sizes[at]
    return counts


def whole(wanted: WantedPods) -> int:
    """Return how many pods fit on all nodes together, in whole slices."""
    return int((held(wanted, wanted.slices[0][0]) if wanted.slices else wanted.room).sum())


def best_first(
    wanted: WantedPods, level: int, fits: Mask, *, profile: Profile, order: Sequence[Tie | None] = (None,)
) -> Iterator[int]:
    """Yield domains of a level that can hold the pods, sorted by `order`; `fits` excludes some domains.

    In `order`, None sorts domains by the number of pods that they can hold, the smallest number first. A function in
    `order` sorts domains by the sum of the amounts that it returns, the smallest sum first. With the profile
    least-free, domains that can hold all pods are not preferred. With the profile balanced, domains with larger equal
    shares come first.
    """
    counts = held(wanted, level)
    found = np.flatnonzero(fits & (counts >= wanted.least))
    if not len(found):
        return
    left = np.arange(len(found))
    for key in _keys(wanted, level, counts, found, profile=profile, order=order):
        values = key[left]
        left = left[values == values.min()]
        if len(left) == 1:
            break
    yield int(found[left[0]])
    ordered = np.lexsort(list(_keys(wanted, level, counts, found, profile=profile, order=order))[::-1])
    yield from (int(found[place]) for place in ordered if place != left[0])


def _keys(
    wanted: WantedPods, level: int, counts: Counts, found: Amounts, *, profile: Profile, order: Sequence[Tie | None]
) -> Iterator[Counts]:
    """Yield domains' sort keys, most important first: all pods fit, `order`, full outer domains, tree position."""
    if profile != "least-free":
        yield (counts[found] < wanted.most).astype(np.int64)
    if profile == "balanced":
        threshold, few = _balance(wanted, level)
        yield -threshold[found]
        yield few[found]
    for tie in order:
        if tie is None:
            yield counts[found]
        elif (amounts := tie()) is not None:
            yield wanted.geometry.sums(level, amounts)[found]
    around, at = found, level
    while at > 0:
        around = wanted.geometry.tree.parents[at][around].astype(np.int64)
        at -= 1
        yield wanted.geometry.sums(at, wanted.room)[around]
    yield wanted.geometry.first(level)[found]


def unit_of(wanted: WantedPods, level: int) -> int:
    """Return how many pods are placed together in a domain of this level: the size of its outermost slices, or 1."""
    return next((size for at, size in wanted.slices if at >= level), 1)


def _balance(wanted: WantedPods, level: int) -> tuple[Counts, Counts]:
    """Return, for each domain of a level, the equal share of each used child domain, and how many are used."""
    tree, inner = wanted.geometry.tree, level + 1
    domains = len(tree.domains[level])
    if inner == len(tree.levels):
        return thresholds(wanted.room, tree.domain_of[level].astype(np.int64), domains, wanted.least)
    unit = unit_of(wanted, inner)
    parents = tree.parents[inner].astype(np.int64)
    return thresholds(held(wanted, inner) // unit, parents, domains, wanted.least // unit)


@dataclass(slots=True)
class Filling:
    """The order in which the nodes of a domain are filled, and the number of pods that each node gets."""

    wanted: WantedPods
    profile: Profile
    scores: NDArray[np.float64] | None
    """Scores of nodes; in an innermost domain, nodes with higher scores are filled first. Without scores, the smallest
    node that can hold the remaining pods is filled last."""
    ties: Sequence[Tie] = ()
    """Tie-breakers among domains that can hold equally many pods; the domain with the smallest sum comes first."""

    def order(self, level: int, columns: Amounts, pods: int) -> tuple[Amounts, Counts]:
        """Return a domain's nodes, `columns`, in filling order, and the number of pods for each node."""
        nothing = np.zeros(0, dtype=np.int64)
        filled = [(nothing, nothing), *self._fill(level, columns, pods)]
        return np.concatenate([each for each, _ in filled]), np.concatenate([counts for _, counts in filled])

    def _fill(self, level: int, columns: Amounts, pods: int, *, joined: bool = False) -> Iterator[_Filled]:
        """Distribute pods to the nodes of a domain, child by child or over the nodes of all used children together.

        A distribution over the nodes of all children may use fewer domains at lower levels. Pods are always distributed
        over all nodes if the nodes are `joined` from several domains.
        """
        inner = level + 1
        if inner >= len(self.wanted.geometry.tree.levels):
            yield self._nodes(columns, pods, fewest=joined)
            return
        of = self.wanted.geometry.tree.domain_of[inner][columns]
        counts, loose = self._held(inner, columns, of)
        some = np.flatnonzero(counts > 0)
        places = self._places(inner, some, of, columns)
        chosen, shares = _shares(counts[some], pods, places, self.profile, unit_of(self.wanted, inner))
        used = some[chosen]
        filled = [] if joined else list(self._one_by_one(inner, columns, of, used, shares))
        if joined or (self.profile == "best-fit" and len(used) > 1 and not self.wanted.slices):
            at_once = list(self._fill(inner, columns[np.isin(of, used)], int(shares.sum()), joined=True))
            if joined or self._domains(at_once, inner) < self._domains(filled, inner):
                filled = at_once
        yield from filled
        left = pods - int(shares.sum())
        if left and len(loose):
            yield self._nodes(loose, left)

    def _one_by_one(
        self, level: int, columns: Amounts, of: Amounts, used: Amounts, shares: Counts
    ) -> Iterator[_Filled]:
        """Distribute `shares` pods inside the domains `used`; domains that become full come first."""
        inside, domains = of >= 0, len(self.wanted.geometry.tree.domains[level])
        room = np.bincount(of[inside], weights=self.wanted.room[columns[inside]], minlength=domains)
        full = np.zeros(len(room), dtype=np.bool_)
        full[used] = shares == room[used]
        whole_ones = columns[inside][full[of[inside]]]
        yield whole_ones, self.wanted.room[whole_ones]
        for child, share in zip(used.tolist(), shares.tolist(), strict=True):
            if not full[child]:
                yield from self._fill(level, columns[of == child], share)

    def _domains(self, filled: Sequence[_Filled], level: int) -> list[int]:
        """Return the number of used domains on each level below this level, and the number of used nodes."""
        columns = np.concatenate([each for each, _ in filled])
        below = self.wanted.geometry.tree.domain_of[level + 1 :]
        return [*(len(np.unique(row[columns])) for row in below), len(columns)]

    def _held(self, level: int, columns: Amounts, of: Amounts) -> tuple[Counts, Amounts]:
        """Return how many pods each child domain can hold on these nodes, and the nodes outside all child domains."""
        room = np.zeros_like(self.wanted.room)
        room[columns] = self.wanted.room[columns]
        sliced = any(at >= level for at, _ in self.wanted.slices)
        return held(self.wanted, level, room), columns[of < 0] if not sliced else columns[:0]

    def _places(self, level: int, some: Amounts, of: Amounts, columns: Amounts) -> Amounts:
        """Return each domain's rank, which breaks ties between domains that can hold equally many pods.

        `some` contains the domains. `columns` contains the nodes with free capacity, and `of` the domain of each of
        these nodes.
        """
        first = self.wanted.geometry.first(level)[some]
        domains = len(self.wanted.geometry.tree.domains[level])
        amounts = [each for each in (tie() for tie in self.ties if len(some) > 1) if each is not None]
        sums = [np.bincount(of + 1, weights=each[columns], minlength=domains + 1)[1:][some] for each in amounts]
        keys = [np.rint(each) for each in sums if (each != each[0]).any()]
        if not keys:
            return first
        places = np.empty(len(some), dtype=np.int64)
        places[np.lexsort([first, *keys[::-1]])] = np.arange(len(some))
        return places

    def _nodes(self, columns: Amounts, pods: int, *, fewest: bool = False) -> _Filled:
        room = self.wanted.room[columns]
        places = self.wanted.geometry.places[columns]
        if self.profile == "balanced":
            used, shares = equal_shares(room, pods, places)
            return columns[used], shares
        if self.scores is None or fewest:
            ordered = _ordered(room, pods, places, self.profile)
        else:
            ordered = np.lexsort([places, -self.scores[columns]])
        columns, room = columns[ordered], room[ordered]
        before = np.cumsum(room) - room
        given = np.clip(pods - before, 0, room)
        kept = given > 0
        return columns[kept], given[kept]


def _ordered(counts: Counts, pods: int, first: Amounts, profile: Profile) -> Amounts:
    """Return as few children as possible, in filling order; the last child is the smallest that can hold the rest."""
    if profile == "least-free":
        return np.lexsort([first, counts])
    order = np.lexsort([first, -counts])
    filled = np.cumsum(counts[order])
    full = int(np.searchsorted(filled, pods))
    if full >= len(order):
        return order
    left = pods - (int(filled[full - 1]) if full else 0)
    falling = -counts[order]
    tight = int(np.searchsorted(falling, -left, side="right")) - 1
    tight = int(np.searchsorted(falling, falling[tight], side="left"))
    if tight <= full:
        return order
    last = order[tight]
    return np.concatenate([order[:full], [last], np.delete(order[full:], tight - full)])


def _shares(counts: Counts, pods: int, first: Amounts, profile: Profile, unit: int = 1) -> tuple[Amounts, Counts]:
    """Return the children that are used, and the number of pods for each child, in whole slices of `unit` pods."""
    if profile == "balanced":
        used, shares = equal_shares(counts // unit, pods // unit, first)
        return used, shares * unit
    order = _ordered(counts, pods, first, profile)
    before = np.cumsum(counts[order]) - counts[order]
    used = order[before < pods]
    given = np.minimum(counts[used], pods - before[: len(used)])
    return used, given


def thresholds(capacities: Amounts, parents: Amounts, domains: int, pods: int) -> tuple[Amounts, Amounts]:
    """Return each domain's threshold for its children, and its number of used children; 0 if it is too small.

    `capacities` and `parents` contain, for each child, the number of pods that fit and the child's domain (-1 for
    none).
    """
    order = np.lexsort([-capacities, parents])
    order = order[parents[order] >= 0]
    of, ordered = parents[order], capacities[order]
    first = np.searchsorted(of, np.arange(domains))
    total = np.cumsum(ordered)
    before = np.concatenate([[0], total])[first]
    enough = np.searchsorted(total, before + max(pods, 1))  # the child from which all pods fit
    end = np.searchsorted(of, np.arange(domains), side="right")
    fits = enough < end
    few: Amounts = np.where(fits, enough - first + 1, 0).astype(np.int64)
    last = ordered[np.minimum(enough, max(len(ordered) - 1, 0))] if len(ordered) else np.zeros(domains, dtype=np.int64)
    threshold: Amounts = np.where(fits, np.minimum(pods // np.maximum(few, 1), last), 0).astype(np.int64)
    return threshold, few


def equal_shares(capacities: Amounts, pods: int, first: Amounts) -> tuple[Amounts, Amounts]:
    """Return the positions of used domains, and the number of pods for each; `first` decides among equal domains."""
    order = np.lexsort([first, -capacities])
    order = order[capacities[order] > 0]
    ordered = capacities[order]
    pods = min(pods, int(ordered.sum()))
    if not pods:
        return order[:0], ordered[:0]
    few = int(np.searchsorted(np.cumsum(ordered), pods)) + 1
    threshold = min(pods // few, int(ordered[few - 1]))
    total = np.concatenate([[0], np.cumsum(ordered[ordered >= threshold])])
    windows = total[few:] - total[:-few]  # adjacent in descending order of capacity
    tight = windows[np.flatnonzero(windows >= pods)[-1]]
    start = int(np.argmax(windows == tight))
    ordered = ordered[start : start + few]
    extra = pods - few * threshold
    before = np.cumsum(ordered - threshold) - (ordered - threshold)
    return order[start : start + few], threshold + np.clip(extra - before, 0, ordered - threshold)
