"""Who holds the room that a gang lacks: running and starting gangs, and pods without a gang by their owner."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from extender.explain.seats import gang_words
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
    use: dict[int, Amounts] = field(default_factory=dict)
    """Node's column → what it takes there."""
    pods: list[Pod] = field(default_factory=list)
    size: int = 0
    """Pods and placed seats."""
    room: int = 0
    """Pods of the waiting class that its end would make room for."""
    since: str = ""
    title: str = ""
    """What people call a gang."""

    @property
    def words(self) -> str:
        """The holder with its size, e.g. `Job ns/first (8 pods on 8 nodes, since 10:00:00)`."""
        return reasons.relief.holder(self.title or self.name, self.size, len(self.use), self.since)

    def take(self, column: int, row: Amounts) -> None:
        """Counts one more pod or placed seat on the node in `column`."""
        self.use[column] = self.use[column] + row if column in self.use else row
        self.size += 1


def holders(
    what_if: WhatIf, session: Session, cls: PodClass, gang: GangView, inside: NDArray[np.bool_] | None = None
) -> list[Holder]:
    """Holders whose end would make room for a pod of this class on nodes that take it, of those `inside` if given."""
    found: dict[str, Holder] = {}
    for pod in what_if.dump.of(PODS):
        record = what_if.state.pods.get(pod.metadata.uid)
        column = session.snapshot.index.get(record.node) if record else None
        if record is None or column is None or record.gang == gang.key or pod.finished:
            continue
        known_gang = record.gang in what_if.state.groups
        name = record.gang if record.gang and known_gang else _owner(pod.metadata)
        holder = found.setdefault(name, Holder(name, known_gang))
        holder.take(column, session.snapshot.row_of(record.cls))
        holder.pods.append(pod)
        holder.since = min(filter(None, (holder.since, pod.status.start_time)), default="")
    for other in (each for each in session.snapshot.gangs if each.key != gang.key):
        for _, node, pod_set in other.placed_seats():
            column = session.snapshot.index.get(node)
            if pod_set and pod_set.cls and column is not None:
                found.setdefault(other.key, Holder(other.key, gang=True)).take(
                    column, session.snapshot.row_of(pod_set.cls)
                )
        if other.key in found:
            found[other.key].title = gang_words(other)
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
