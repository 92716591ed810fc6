"""The filter verb: a look-up for members of gangs, and no room that gangs hold for anybody else."""

from collections.abc import Callable
from enum import Enum

import msgspec
import numpy as np
from prometheus_client import Counter

from extender import messages
from extender.cluster import Cluster
from extender.state.gangs import ACTIVE
from muster.api.extender import ExtenderArgs, ExtenderFilterResult
from muster.api.gang import epoch_of, gang_of, seat_of
from muster.api.names import NODE
from muster.api.placement import node_of
from muster.resources.pods import pod_requests

DECODE_ARGS = msgspec.json.Decoder(ExtenderArgs)
FILTERS = Counter("muster_filter_total", "Filter calls", ["pod", "verdict"])
FILTER_NAMES = Counter("muster_filter_names_total", "Node names in filter calls", ["pod"])


class Verdict(Enum):
    """Outcomes of a call: metric tags and reasons at once."""

    PASSED = "passed"
    REJECTED = "rejected"
    ERROR = "error"


def unavailable(cluster: Cluster, active: Callable[[], bool]) -> str:
    """Why this replica cannot answer now; empty if it can."""
    if not active():
        return messages.NOT_LEADING
    return "" if cluster.synced else messages.NOT_SYNCED


class Filter:
    """Answers which of the named nodes a pod may go to. `active` says whether this replica leads."""

    def __init__(self, cluster: Cluster, *, active: Callable[[], bool]) -> None:
        self._cluster = cluster
        self._active = active

    def __call__(self, args: ExtenderArgs) -> ExtenderFilterResult:
        """Never a name that was not sent."""
        nodes = args.node_names or []
        pinned = NODE in args.pod.metadata.annotations
        gang = gang_of(args.pod.metadata)
        kind = "pinned" if pinned else "gang" if gang else "plain"
        FILTER_NAMES.labels(kind).inc(len(nodes))
        reason = unavailable(self._cluster, self._active)
        if reason:
            result = ExtenderFilterResult(error=reason)
        else:
            result = self._member(args, gang, nodes) if gang else self._plain(args, nodes)
        verdict = Verdict.ERROR if result.error else Verdict.PASSED if result.node_names else Verdict.REJECTED
        FILTERS.labels(kind, verdict.value).inc()
        return result

    def _member(self, args: ExtenderArgs, gang: str, nodes: list[str]) -> ExtenderFilterResult:
        """A look-up: the one node that the placement gives this member."""
        meta = args.pod.metadata
        key = f"{meta.namespace}/{gang}"
        with self._cluster.lock:
            placement = self._cluster.state.placements.get(key)
            record = self._cluster.state.pods.get(meta.uid)
            known = key in self._cluster.state.groups
        if not known:
            return ExtenderFilterResult(error=messages.NOT_SEEN)
        epoch = epoch_of(meta)
        if epoch is not None and (placement is None or placement.spec.epoch < epoch):
            return ExtenderFilterResult(error=messages.NOT_SEEN)
        if placement is None or placement.status.phase not in ACTIVE or placement.spec.epoch != epoch:
            return ExtenderFilterResult(failed_and_unresolvable_nodes=_first(nodes, messages.WAITS_FOR_GANG))
        seat = seat_of(meta) or (record.seat if record else None)
        node = node_of(placement, seat.pod_set, seat.rank) if seat else None
        if node in nodes:
            return ExtenderFilterResult(node_names=[node])
        return ExtenderFilterResult(failed_and_unresolvable_nodes=_first(nodes, messages.NOT_PLANNED_HERE))

    def _plain(self, args: ExtenderArgs, nodes: list[str]) -> ExtenderFilterResult:
        """Nodes whose room is not held by gangs that are starting."""
        with self._cluster.lock:
            state = self._cluster.state
            table = state.nodes
            row = table.row_of(pod_requests(args.pod.spec))
            index = table.index
            columns = np.fromiter((index.get(name, -1) for name in nodes), dtype=np.int64, count=len(nodes))
            wanted = np.flatnonzero(row)
            free = table.allocatable[wanted][:, columns] - table.used[wanted][:, columns]
        fits = (free >= row[wanted, None]).all(axis=0) & (columns >= 0)
        passed = [name for name, fit in zip(nodes, fits, strict=True) if fit]
        if passed:
            return ExtenderFilterResult(node_names=passed)
        return ExtenderFilterResult(failed_and_unresolvable_nodes=_first(nodes, messages.HELD_BY_GANG))


def _first(nodes: list[str], message: str) -> dict[str, str]:
    """One entry carries the message; nodes that are left out count as unresolvable anyway."""
    return {nodes[0]: message} if nodes else {}
