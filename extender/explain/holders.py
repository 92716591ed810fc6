"""Holders of the capacity that a waiting gang lacks: other gangs, and owners of pods without a gang."""

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from extender.explain.reader import Viewer
from extender.explain.whatif import WhatIf
from extender.planner import reasons
from extender.planner.actions.reserve.ends import releases
from extender.planner.framework.session import Session
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.victims.notices import expected_to_go
from muster.api.kubernetes.apps import DEPLOYMENTS, REPLICA_SETS
from muster.api.kubernetes.core import PODS, Pod
from muster.api.kubernetes.meta import ObjectMeta, format_time


@dataclass(slots=True)
class Holder:
    """A holder of capacity: a gang (`name` is the gang's key), or the owner of pods without a gang."""

    name: str
    gang: bool
    title: str
    """The holder's kind and name, as text for messages."""
    shown: str
    """The holder's name, or a general description if the holder is not visible to the user."""
    seen: bool
    """True if the name and the size of the holder are visible to the user."""
    use: dict[int, Amounts] = field(default_factory=dict)
    """Maps a node, given as its column in the snapshot, to the resources that the holder uses on this node."""
    pods: list[Pod] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    """Names of the holder's pods that do not terminate; names hidden from the user are replaced."""
    size: int = 0
    """Number of the holder's pods and placed slots."""
    room: int = 0
    """Number of additional pods of the waiting gang that fit on the nodes once the holder has ended."""
    end: float | None = None
    """Expected end time of the holder's last pod, in seconds since the epoch; None if unknown."""

    @property
    def words(self) -> str:
        """The holder as text, such as `Job ns/first (8 pods on 8 nodes, since 10:00:00)`, without size if hidden."""
        if not self.seen:
            return self.title
        since = min(filter(None, (pod.status.start_time for pod in self.pods)), default="")
        end = "" if self.end is None else format_time(self.end)
        return reasons.relief.holder(self.title, self.size, len(self.use), since, end, self.stuck)


def holders(
    what_if: WhatIf, session: Session, cls: PodClass, gang: GangView, reader: Viewer,
    inside: NDArray[np.bool_] | None = None,
) -> list[Holder]:  # fmt: skip
    """Return the holders whose end would free capacity for pods of class `cls` on nodes that accept such pods."""
    found: dict[str, Holder] = {}
    snapshot = session.snapshot
    pods: dict[Hashable, Pod] = {pod.metadata.uid: pod for pod in what_if.dump.objects_of(PODS)}
    for key, entry in what_if.state.ledger.entries.items():
        column, pod = snapshot.index.get(entry.node), pods.get(key)
        view = what_if.state.gang(entry.gang) if entry.gang else None
        if column is None or entry.gang == gang.key or not (view or pod):  # or devices of an unused claim
            continue
        name = view.key if view else _owner(pod.metadata) if pod else ""
        if name not in found:
            found[name] = _holder(reader, name, view, pod)
        holder = found[name]
        row = snapshot.row_on(entry.cls, column)
        holder.use[column] = holder.use[column] + row if column in holder.use else row
        holder.size += 1
        holder.pods += [pod] if pod else []
        leaving = session.snapshot.leaving.get(pod.metadata.uid) if pod else None
        if pod and leaving and not expected_to_go(session, leaving):
            holder.stuck.append(reader.other(pod.metadata, pod.metadata.name, f"Pod {pod.metadata.key}"))
    fits = session.codes(cls, gang) == 0
    if inside is not None:
        fits &= inside
    ends: dict[str, list[float]] = defaultdict(list)
    released = releases(session, [])
    for time, owner in zip(released.times.tolist(), released.owners, strict=True):
        ends[owner].append(time)
    for holder in found.values():
        holder.room = _gain(session, cls, holder, fits)
        holder.end = ends[holder.name][-1] if len(ends[holder.name]) >= holder.size else None
    return [holder for holder in found.values() if holder.room > 0]


def _holder(reader: Viewer, name: str, view: GangView | None, pod: Pod | None) -> Holder:
    if view is not None:
        meta = view.group.metadata
        title, shown = reader.gang(view), reader.other(meta, meta.name, name)
        return Holder(name, gang=True, title=title, shown=shown, seen=reader.may_see(meta))
    meta = pod.metadata if pod else ObjectMeta()
    title = reader.other(meta, meta.controller.name if meta.controller else meta.name, name)
    return Holder(name, gang=False, title=title, shown=title, seen=reader.may_see(meta))


def _gain(session: Session, cls: PodClass, holder: Holder, fits: NDArray[np.bool_]) -> int:
    columns = np.array([column for column in holder.use if fits[column]], dtype=np.int64)
    if not len(columns):
        return 0
    free = session.snapshot.free[:, columns]
    given = np.stack([holder.use[int(column)] for column in columns], axis=1)
    return int((session.room(cls, free + given) - session.room(cls, free)).sum())


def _owner(meta: ObjectMeta) -> str:
    """Return kind, namespace and name of a pod's owner, or of the pod if it has no owner.

    For a pod of a Deployment's ReplicaSet, the Deployment is returned. The Deployment has the ReplicaSet's name without
    the hash at its end.
    """
    owner, suffix = meta.controller, f"-{meta.labels.get('pod-template-hash', '')}"
    if owner and owner.kind == REPLICA_SETS.kind and suffix != "-" and owner.name.endswith(suffix):
        return f"{DEPLOYMENTS.kind} {meta.namespace}/{owner.name.removesuffix(suffix)}"
    return f"{owner.kind} {meta.namespace}/{owner.name}" if owner else f"Pod {meta.namespace}/{meta.name}"
