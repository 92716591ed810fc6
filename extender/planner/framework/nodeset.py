"""Nodes that a part of a gang may be given: what the hook `subset_nodes` refines."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from extender.planner.state.amounts import Amounts


@dataclass(frozen=True, slots=True, eq=False)
class NodeSet:
    """Some nodes, and in which order pods go there. It is not changed."""

    columns: Amounts | None = None
    """int64 of shape (nodes of the set,); None: all nodes."""
    ranked: bool = False
    """The columns are in the order in which nodes are filled; else scores decide."""
    along: Amounts | None = None
    """int64 of shape (all nodes,): neighbouring ranks get nodes with neighbouring numbers; None: by the names."""
    most: Amounts | None = None
    """int64 of shape (all nodes,): at most so many pods of the part per node; None: as many as fit."""
    sliced: bool = False
    """Pods that are placed in one go, in the order of their ranks, stand in whole slices then."""
    name: str = ""
    """The name for people: the domain."""

    def within(self, allowed: NDArray[np.bool_]) -> "NodeSet":
        """The nodes of the set that are allowed, bool of shape (all nodes,), in the same order."""
        columns = np.flatnonzero(allowed) if self.columns is None else self.columns[allowed[self.columns]]
        return replace(self, columns=columns, sliced=False)

    def order(self, by_name: Amounts) -> Amounts:
        """The nodes in their order if they are ranked, else beside each other; `by_name` has all nodes by name."""
        if self.columns is None:
            return by_name
        if self.ranked:
            return self.columns
        if self.along is not None:
            return self.columns[np.argsort(self.along[self.columns], kind="stable")]
        return by_name[np.isin(by_name, self.columns)]

    def limit(self, room: Amounts) -> Amounts:
        """Room per node, int64 of shape (all nodes,), as far as it is in the set."""
        if self.columns is None:
            return room
        limited = np.zeros_like(room)
        limited[self.columns] = room[self.columns]
        return limited if self.most is None else np.minimum(limited, self.most)


EVERYWHERE = NodeSet()
