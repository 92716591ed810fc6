"""The needs of gangs that were let in: for plugins that count these besides what is used."""

from contextlib import suppress

import numpy as np

from extender.planner.framework.snapshot import Snapshot
from extender.planner.state.amounts import Amounts, row_along
from extender.planner.state.gangs import GangView
from muster.resources.vector import Vector, vector


class Needs:
    """The rest of a gang's minResources that its pods do not use; remembered while its PodGroup stays the same."""

    def __init__(self) -> None:
        self._axis: dict[str, int] | None = None
        self._known: dict[str, tuple[str, Amounts]] = {}
        """UID of a PodGroup → its version, and its minResources."""

    def forget(self, snapshot: Snapshot) -> None:
        """Forgets gangs that are gone."""
        if len(self._known) > 2 * len(snapshot.gangs):
            there = {gang.uid for gang in snapshot.gangs}
            self._known = {uid: known for uid, known in self._known.items() if uid in there}

    def of(self, snapshot: Snapshot, gang: GangView) -> Amounts:
        """int64 of shape (resources,), may not be changed; nothing where its slots are placed, which count as used.

        Nor does a gang need anything whose pods wait for a scheduling gate of others.
        """
        whole = self._whole(snapshot, gang)
        if gang.active or gang.gated_by_others:
            return np.zeros_like(whole)
        if not any(pod_set.taken for pod_set in gang.pod_sets):
            return whole
        rest: Amounts = np.maximum(whole - snapshot.used_by(gang), 0)
        return rest

    def _whole(self, snapshot: Snapshot, gang: GangView) -> Amounts:
        if snapshot.axis is not self._axis:  # rows are along the resources that nodes have
            self._axis = snapshot.axis
            self._known.clear()
        group = gang.group
        known = self._known.get(gang.uid)
        if known is None or known[0] != group.metadata.resource_version:
            amounts: Vector = {}
            with suppress(ValueError):  # what cannot be read is set aside elsewhere, and must not end others' votes
                amounts = vector(group.spec.min_resources or {})
            known = group.metadata.resource_version, row_along(snapshot.axis, snapshot.free.shape[0], amounts)
            self._known[gang.uid] = known
        return known[1]
