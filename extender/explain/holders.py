"""Gangs and owners of other pods that have the room which a gang lacks, as the ledger says."""

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from extender.explain.slots import gang_words
from extender.explain.whatif import WhatIf
from extender.planner import reasons
from extender.planner.framework.session import Session
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from muster.api.kubernetes.core import PODS, Pod
from muster.api.kubernetes.meta import ObjectMeta


@dataclass(slots=True)
class Holder:
    """One gang (`name` is its key) or one owner of other pods."""

    name: str
    gang: bool
    title: str
    """Its name for people."""
    use: dict[int, Amounts] = field(default_factory=dict)
    """Node's column → what it takes there."""
    pods: list[Pod] = field(default_factory=list)
    size: int = 0
    """Pods and placed slots."""
    room: int = 0
    """Pods of the waiting class that its end would make room for."""

    @property
    def words(self) -> str:
        """The holder with its size, e.g. `Job ns/first (8 pods on 8 nodes, since 10:00:00)`."""
        since = min(filter(None, (pod.status.start_time for pod in self.pods)), default="")
        return reasons.relief.holder(self.title, self.size, len(self.use), since)


def holders(
    what_if: WhatIf, session: Session, cls: PodClass, gang: GangView, inside: NDArray[np.bool_] | None = None
) -> list[Holder]:
    """Holders whose end would make room for a pod of this class on nodes that take it, of those `inside` if given."""
    found: dict[str, Holder] = {}
    snapshot = session.snapshot
    pods: dict[Hashable, Pod] = {pod.metadata.uid: pod for pod in what_if.dump.of(PODS)}
    for key, entry in what_if.state.ledger.entries.items():
        column, pod = snapshot.index.get(entry.node), pods.get(key)
        view = what_if.state.gang(entry.gang) if entry.gang else None
        if column is None or entry.gang == gang.key or not (view or pod):  # or devices that a claim has left
            continue
        name = view.key if view else _owner(pod.metadata) if pod else ""
        holder = found.setdefault(name, Holder(name, view is not None, gang_words(view) if view else name))
        row = snapshot.row_on(entry.cls, column)
        holder.use[column] = holder.use[column] + row if column in holder.use else row
        holder.size += 1
        holder.pods += [pod] if pod else []
    fits = session.codes(cls, gang) == 0
    if inside is not None:
        fits &= inside
    for holder in found.values():
        holder.room = _gain(session, cls, holder, fits)
    return [holder for holder in found.values() if holder.room > 0]


def _gain(session: Session, cls: PodClass, holder: Holder, fits: NDArray[np.bool_]) -> int:
    columns = np.array([column for column in holder.use if fits[column]], dtype=np.int64)
    if not len(columns):
        return 0
    free = session.snapshot.free[:, columns]
    given = np.stack([holder.use[int(column)] for column in columns], axis=1)
    return int((session.room(cls, free + given) - session.room(cls, free)).sum())


def _owner(meta: ObjectMeta) -> str:
    owner = meta.controller
    return f"{owner.kind} {meta.namespace}/{owner.name}" if owner else f"Pod {meta.namespace}/{meta.name}"
