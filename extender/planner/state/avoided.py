"""Nodes that a gang avoids according to its Placement, and failed members that the Placement does not count yet."""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from cachetools import FIFOCache

from extender.planner.state.gangs import GangView
from extender.planner.state.pods import PodRecord
from muster.api.kubernetes.meta import readable_time
from muster.api.muster.placement import AvoidedNode

MOST_FAILED = 10_000
"""Maximum number of gangs whose failures are remembered; gangs with the latest failures are kept."""


class FailedMembers:
    """The newest failed member per gang and node, remembered even if the failed pod is gone in the next cycle."""

    def __init__(self, most: int = MOST_FAILED) -> None:
        self._of: FIFOCache[str, dict[str, PodRecord]] = FIFOCache(most)
        """Maps a gang's key and a node to the failed member."""
        self.remembered: FIFOCache[str, tuple[AvoidedNode, ...]] = FIFOCache(most)
        """Maps a gang's key to the nodes on which members failed, read from the gang's last Placement. A restarted Job
        has a new PodGroup of the same name, and therefore a new Placement."""

    def note(self, before: PodRecord | None, record: PodRecord) -> None:
        """Compare a pod's previous and current records, and remember a new failure."""
        if not record.failed or (before is not None and before.failed) or not record.gang or not record.node:
            return
        known = self._of.setdefault(record.gang, {})
        if record.node not in known or known[record.node].created <= record.created:
            known[record.node] = record

    def forget(self, key: str, uids: Collection[str]) -> None:
        """Forget these failed members of a gang, because the Placement has counted their failures."""
        left = {node: pod for node, pod in self._of.pop(key, {}).items() if pod.uid not in uids}
        if left:
            self._of[key] = left

    def remember(self, key: str, avoided: Iterable[AvoidedNode]) -> None:
        """Remember the nodes on which members of a gang failed; do nothing if there are no such nodes."""
        entries = tuple(each for each in avoided if each.failures)
        if entries:
            self.remembered[key] = entries

    def copy(self) -> dict[str, dict[str, PodRecord]]:
        """Return the failed members, keyed by gang and node."""
        return {key: dict(nodes) for key, nodes in self._of.items()}


def entries_of(gang: GangView, remembered: Mapping[str, tuple[AvoidedNode, ...]]) -> dict[str, AvoidedNode]:
    """Return the avoided nodes, keyed by name, from the Placements of the gang's current and previous PodGroups."""
    own = gang.placement.status.avoided if gang.placement else ()
    return {each.node: each for each in (*remembered.get(gang.key, ()), *own)}


def avoided_nodes(
    gangs: Iterable[GangView],
    now: float,
    remembered: Mapping[str, tuple[AvoidedNode, ...]] = MappingProxyType({}),
    *,
    failures: int = 0,
) -> dict[str, set[str]]:
    """Return the nodes that each gang avoids, because a member was refused or failed there; `now` is in epoch seconds.

    With `failures`, only nodes on which at least this many members have failed are returned.
    """
    result: dict[str, set[str]] = {}
    for gang in gangs:
        if gang.key not in remembered and not (gang.placement and gang.placement.status.avoided):
            continue
        for node, each in entries_of(gang, remembered).items():
            if each.failures >= failures and (readable_time(each.until) or 0.0) > now:
                result.setdefault(gang.key, set()).add(node)
    return result
