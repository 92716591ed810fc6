"""What gangs ask for, along the resource axis of a snapshot."""

from collections.abc import Mapping

import numpy as np

from extender.framework.snapshot import Snapshot
from extender.state.amounts import Amounts, row_along
from extender.state.gangs import GangView
from muster.resources.vector import vector


def amounts_of(snapshot: Snapshot, gang: GangView, seats: Mapping[str, int]) -> Amounts:
    """What so many more members of each pod set take together, int64 of shape (resources,).

    Of a gang of whose pods nothing is known yet, it is what its PodGroup says that it needs.
    """
    total = np.zeros(snapshot.free.shape[0], dtype=np.int64)
    known = False
    for pod_set in gang.pod_sets:
        if pod_set.cls is not None:
            known = True
            total += snapshot.row_of(pod_set.cls) * seats.get(pod_set.name, 0)
    if not known and gang.group.spec.min_resources:
        return row_along(snapshot.axis, len(total), vector(gang.group.spec.min_resources))
    return total
