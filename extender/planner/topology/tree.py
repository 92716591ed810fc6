"""One topology as arrays: which domain of each level every node is in.

Domains nest: nodes that share a domain of one level share one of each level above it. A node that has no place in a
level has -1 there and in every level below, and is still a node for gangs that ask for no topology.

HyperNode trees need not be balanced. Their levels are the tiers in use, the highest first, and in the level of tier t
a node's domain is its topmost HyperNode ancestor whose tier is at most t (Volcano's reading of highestTierAllowed:
any HyperNode of a tier up to it may hold the gang). So one HyperNode may be a domain of several levels, and the levels
nest all the same.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Domains = NDArray[np.int32]
"""Numbers of domains; -1 means none."""

HYPER_NODES = "hypernodes"
"""Name of the tree that HyperNodes describe."""
DEFAULT = "default"
"""Name of the tree of the configured levels."""


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """One topology over the columns of a node table; trees are compared by identity."""

    name: str
    """`default`, the name of a configured topology or of a Kueue Topology, or `hypernodes`."""
    levels: tuple[str, ...]
    """Outermost first: label keys; of HyperNodes one text per tier, for people (`tier 2`)."""
    domains: tuple[tuple[str, ...], ...]
    """Per level the names of its domains; a domain's number is its place here. Of labels the path, `block-a/rack-3`.

    No number need have nodes: those of domains that are gone may stay for a while.
    """
    domain_of: Domains
    """int32 of shape (levels, columns of the node table): the number of the domain, -1 in none."""
    tiers: tuple[int, ...] = ()
    """Of HyperNodes: the tier of each level, falling; empty for other trees."""
    tier_names: tuple[str, ...] = ()
    """Of HyperNodes: the tierName of each level, empty where it has none; empty for other trees."""
    parents: tuple[Domains, ...] = field(init=False)
    """Per level, int32 of shape (domains of that level,): the domain of the level above that each lies in.

    -1 in the outermost level, and for domains without nodes.
    """

    def __post_init__(self) -> None:
        self.domain_of.flags.writeable = False
        object.__setattr__(self, "parents", tuple(self._parents(level) for level in range(len(self.levels))))

    def _parents(self, level: int) -> Domains:
        parents = np.full(len(self.domains[level]), -1, dtype=np.int32)
        if level:
            inner, outer = self.domain_of[level], self.domain_of[level - 1]
            inside = inner >= 0
            parents[inner[inside]] = outer[inside]
        return parents

    def parent(self, level: int, domain: int, above: int) -> int:
        """The domain of the level `above`, further out or the same one, that a domain of `level` lies in; -1: none."""
        while level > above and domain >= 0:
            domain = int(self.parents[level][domain])
            level -= 1
        return domain

    def level(self, key: str) -> int | None:
        """The number of the level with this label key or tier name; None if there is none."""
        if key in self.levels:
            return self.levels.index(key)
        return self.tier_names.index(key) if key and key in self.tier_names else None

    def path(self, column: int) -> tuple[str, ...]:
        """The names of the domains that a node is in, outermost first; it ends at the first level it is not in."""
        numbers = self.domain_of[:, column]
        return tuple(self.domains[level][number] for level, number in enumerate(numbers) if number >= 0)
