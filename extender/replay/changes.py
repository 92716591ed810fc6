"""Changes for a what-if replay: other queues, more nodes, and excluded gangs."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from extender.explain.changes import changed_queue, copies, queue_of_change
from extender.explain.report import UnknownNameError, near_names
from extender.replay.replayedworld import rules_from
from extender.replay.workloads import History, ReplayedChange
from muster.api import names
from muster.api.kubernetes.core import NODES
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES, Queue, QueueStatus

_QUEUES, _NODES = QUEUES.full_name, NODES.full_name
_GROUPS = frozenset({POD_GROUPS.full_name, NATIVE_POD_GROUPS.full_name})


class WhatIfChanges:
    """Changes for a what-if replay: a function that maps a recorded object to the object that replaces it."""

    def __init__(
        self,
        *,
        queues: Mapping[str, Queue] | None = None,
        edits: Sequence[str] = (),
        without: Sequence[str] = (),
        nodes: Mapping[str, int] | None = None,
    ) -> None:
        """Create changes from replacement queues, edits such as `team.weight=3`, and queues whose gangs are excluded.

        `nodes` maps the name of a node to the number of copies to add.
        """
        self._queues = dict(queues or {})
        self._edits = tuple(edits)
        self._without = frozenset(without)
        self._nodes = dict(nodes or {})

    def __call__(self, kind: str, item: Any) -> Any:
        """Return the changed object; None if the object is excluded."""
        if kind in _GROUPS:
            return None if _queue(item) in self._without else item
        return self._queue(item) if kind == _QUEUES else item

    def _queue(self, queue: Queue) -> Queue:
        name = queue.metadata.name
        given = self._queues.get(name)
        if given is not None:
            meta = replace(queue.metadata, annotations=given.metadata.annotations, labels=given.metadata.labels)
            queue = replace(queue, metadata=meta, spec=given.spec)
        for edit in self._edits:
            if edit.startswith(f"{name}.") and queue_of_change(edit, self._names) == name:
                queue = changed_queue(queue, edit)
        return queue

    def added(self, history: History) -> list[ReplayedChange]:
        """Return additional objects that exist from the beginning of the replay.

        Raises UnknownNameError for unknown names, and ValueError for invalid values.
        """
        there = {change.key: change.item for change in history.before if change.kind == _QUEUES}
        later = {change.key for change in history.changes if change.kind == _QUEUES}
        self._names = frozenset({*there, *later, *self._queues})
        for edit in self._edits:
            changed_queue(there.get(queue_of_change(edit, self._names)) or _new(edit.partition(".")[0]), edit)
        for name in self._without:
            if name not in self._names:
                raise _unknown("queue", name, self._names)
        new = [
            ReplayedChange(history.since_s, _QUEUES, name, replace(given, status=QueueStatus(state="Open")))
            for name, given in self._queues.items()
            if name not in there
        ]
        return [*new, *self._more_nodes(history)]

    def _more_nodes(self, history: History) -> list[ReplayedChange]:
        known = {change.key: change.item for change in history.before if change.kind == _NODES}
        made = []
        for name, number in self._nodes.items():
            if name not in known:
                raise _unknown("node", name, known)
            made += copies(known[name], number, rules_from(history.head.settings))
        return [ReplayedChange(history.since_s, _NODES, node.metadata.name, node) for node in made]

    _names: frozenset[str] = frozenset()
    """Names of the queues in the recording, and of the new queues."""


def _new(name: str) -> Queue:
    return Queue(metadata=ObjectMeta(name=name))


def _queue(group: Any) -> str:
    spec = getattr(group, "spec", None)
    named = getattr(spec, "queue", "") or group.metadata.labels.get(names.QUEUE)
    return named or names.DEFAULT_QUEUE


def _unknown(what: str, name: str, known: Collection[str]) -> UnknownNameError:
    return UnknownNameError(f"the recording has no {what} {name!r}; it has {near_names(name, known) or 'none'}")
