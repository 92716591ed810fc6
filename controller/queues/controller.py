"""The controller of queues: it creates the queues `root` and `default`, and maintains parent, state and counters."""

import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from controller.caches import QUEUE_INDEX, SharedCaches, native_queue_names, queue_names
from controller.kit import KindController, Kit
from controller.live import delete, get_or_none
from controller.queues import rules
from controller.worker import Retry
from muster.api import names
from muster.api.kubernetes.core import Node, Pod
from muster.api.kubernetes.scheduling import NativePodGroup
from muster.api.merge_diff import difference
from muster.api.muster.native import status_of
from muster.api.volcano.batch import COMMANDS, Command
from muster.api.volcano.scheduling import QUEUES, PodGroup, PodGroupStatus, Queue, is_queue
from muster.kube.errors import AlreadyExists, NotFound
from muster.kube.offers import NodeOffers
from muster.kube.reflector import Reflector
from muster.kube.store import ObjectStore
from muster.resources.vector import Vector, add
from muster.volcano.access import lineage, parent_names

BUILT_IN_QUEUES: Mapping[str, Mapping[str, Any]] = {
    names.ROOT_QUEUE: {"weight": 1, "reclaimable": False},
    names.DEFAULT_QUEUE: {"weight": 1, "reclaimable": True, "parent": names.ROOT_QUEUE},
}
"""Specs of the built-in queues `root` and `default`, parents first."""

PARENT_INDEX = "parent"
"""Index of the queue store by the name of the parent queue."""

COUNT_EVERY_S = 0.5
_HIGHEST = 64  # levels; deeper only if parents form a cycle


def _only_counted(old: Queue | None, new: Queue | None) -> bool:
    """Return True if only counters in the queue's status have changed.

    This controller usually writes the counters itself, so their change needs no immediate pass.
    """
    if old is None or new is None:
        return False
    before, after = old.metadata, new.metadata
    same = before.uid == after.uid and before.annotations == after.annotations
    kept = same and before.deletion_timestamp == after.deletion_timestamp
    return kept and old.spec == new.spec and old.status.state == new.status.state


class QueueController(KindController[Queue]):
    """The controller of queues; its keys are the names of queues."""

    def __init__(self, kit: Kit, caches: SharedCaches) -> None:
        store = ObjectStore[Queue]({PARENT_INDEX: parent_names})
        super().__init__(kit, "queue", QUEUES, Reflector(kit.client, QUEUES, store=store))
        self._queues, self._pods = store, caches.pods.store
        self._groups, self._natives = caches.groups.store, caches.natives.store
        self.offers = NodeOffers(kit.client)
        self.offers.reflector.add_handler(self._node_seen)
        self._usage = rules.RequestsByQueue(self._groups.get, self.offers.of)
        self._lock = threading.Lock()
        self._commands: dict[str, Command] = {}
        """Commands that must still be carried out, by UID."""
        self.handlers += [
            (caches.groups, self._group_seen),
            (caches.natives, self._native_seen),
            (caches.pods, self._pod_seen),
            (caches.commands, self._command_seen),
        ]

    def limited(self, queue: str) -> bool:
        """Return True if the queue or one of its ancestors has a capability."""
        return any(each.spec.capability for each in lineage(queue, self._queues.get))

    def _seen(self, old: Queue | None, new: Queue | None) -> None:
        """Queue passes over a changed queue, its ancestors and its descendants."""
        self._written.seen(old, new)
        for queue in (old, new):
            if queue:
                self.worker.queue.add_after(queue.metadata.name, COUNT_EVERY_S if _only_counted(old, new) else 0.0)
        if (old and old.status.state) != (new and new.status.state):
            name = (new or old or Queue()).metadata.name
            for child in self._queues.by_index(PARENT_INDEX, name):
                self.worker.queue.add(child.metadata.name)
        if old and new and old.spec.parent != new.spec.parent:
            self._requeue_with_parents(old.spec.parent)
            self._requeue_with_parents(new.spec.parent)

    def _group_seen(self, old: PodGroup | None, new: PodGroup | None) -> None:
        """Recount the queues of a PodGroup if its queue or phase has changed."""
        if old and new and (old.status.phase, old.spec.queue) == (new.status.phase, new.spec.queue):
            return
        for group in (old, new):
            if group:
                self.worker.queue.add_after(queue_names(group)[0], COUNT_EVERY_S)
        if new and (old is None or old.spec.queue != new.spec.queue):
            for queue in self._usage.moved(new.metadata.key, queue_names(new)[0]):
                self._requeue_with_parents(queue)

    def _native_seen(self, old: NativePodGroup | None, new: NativePodGroup | None) -> None:
        """Recount the queues of a native PodGroup that is a Muster gang, if its queue or phase has changed."""
        before, after = (
            [(queue, status_of(each).phase) for queue in native_queue_names(each)] if each else []
            for each in (old, new)
        )
        for queue, _ in {*before} ^ {*after}:
            self.worker.queue.add_after(queue, COUNT_EVERY_S)

    def _pod_seen(self, old: Pod | None, new: Pod | None) -> None:
        """Recount the pod's queue if its requests have changed."""
        pod = new or old
        queue = self._usage.pod_seen(pod, gone=new is None) if pod else None
        if queue:
            self._requeue_with_parents(queue)

    def _node_seen(self, old: Node | None, new: Node | None) -> None:
        """Recount the queues of pods that had requested more than their node offered."""
        if new and (old is None or old.status.allocatable != new.status.allocatable):
            for queue in self._usage.node_seen(new.metadata.name):
                self._requeue_with_parents(queue)

    def _command_seen(self, old: Command | None, new: Command | None) -> None:
        """Keep a new Command until a pass over its queue has carried it out."""
        target = new.target if new and old is None else None
        if new and target and is_queue(target):
            with self._lock:
                self._commands[new.metadata.uid] = new
            self.worker.queue.add(target.name)

    def not_ready(self) -> str | None:
        """Return a message about built-in queues that cannot be used yet; None if all built-in queues can be used."""
        known = {name: self._queues.get(name) for name in BUILT_IN_QUEUES}
        missing = [name for name, queue in known.items() if queue is None or not queue.status.state]
        return f"not open yet: {', '.join(missing)}" if missing else None

    def replay(self) -> None:
        """Queue a pass over every queue, including missing built-in queues."""
        # A pod that was deleted while its event was being handled must not count forever.
        self._usage.forget_others(lambda: {pod.metadata.uid for pod in self._pods.list()})
        for name in (*BUILT_IN_QUEUES, *self._queues.keys()):
            self.worker.queue.add(name)

    def process(self, name: str) -> None:
        """Run one pass over one queue."""
        queue = self.newest(name)
        if queue is None:
            self._without_queue(name)
        elif not queue.metadata.deletion_timestamp:
            with suppress(NotFound):
                self._reconcile(queue)

    def _reconcile(self, queue: Queue) -> None:
        name = queue.metadata.name
        if not queue.spec.parent and name != names.ROOT_QUEUE:
            patch = {"metadata": {"resourceVersion": queue.metadata.resource_version}}
            queue = self._client.merge_patch(QUEUES, name, patch | {"spec": {"parent": names.ROOT_QUEUE}})
        parent = self._queues.get(queue.spec.parent) if name != names.ROOT_QUEUE else None
        load = rules.Load(rules.counted(self._gangs(name)), self._allocated(name))
        for command in self._waiting(name):
            queue = self._obey(command, queue, parent, load)
        self._write(queue, rules.at_rest(queue, parent, busy=load.busy), load)

    def _gangs(self, name: str) -> list[PodGroupStatus]:
        """Return the status of each gang in the queue, from Volcano's PodGroups and from native PodGroups."""
        natives = self._natives.by_index(QUEUE_INDEX, name)
        return [*(each.status for each in self._groups.by_index(QUEUE_INDEX, name)), *map(status_of, natives)]

    def _obey(self, command: Command, queue: Queue, parent: Queue | None, load: rules.Load) -> Queue:
        """Execute a Command and delete the Command; a repeated call has no further effect."""
        uid, meta = command.target.uid if command.target else "", queue.metadata
        wanted = rules.asked(command.action, queue, parent, busy=load.busy)
        if uid and uid != meta.uid:
            if self._client.get(QUEUES, meta.name).metadata.uid == uid:
                raise Retry(f"the target queue of Command {command.metadata.name} is not in the cache yet")
            wanted = f"it is for an earlier queue of this name (UID {uid})"
        if isinstance(wanted, rules.WantedState):
            queue = self._write(queue, wanted, load)
            self._recorder.event(queue, "Normal", command.action, f"Command {command.metadata.name}: {wanted.state}")
        else:
            self._recorder.event(queue, "Warning", "CommandIssued", f"Command {command.metadata.name}: {wanted}")
        self._done(command)
        return queue

    def _write(self, queue: Queue, wanted: rules.WantedState, load: rules.Load) -> Queue:
        """Write the annotation and the status of a queue if they differ.

        A queue that reopens keeps its annotation until its state is Open.
        """
        if wanted.by_parent:
            queue = self._mark(queue, mark=True)
        queue = self.patched(queue, difference(queue.status, rules.status_of(queue, wanted.state, load)))
        return queue if wanted.by_parent else self._mark(queue, mark=False)

    def _mark(self, queue: Queue, *, mark: bool) -> Queue:
        if rules.by_parent(queue) == mark:
            return queue
        annotations = {rules.CLOSED_BY_PARENT: "true" if mark else None}
        patch = {"metadata": {"resourceVersion": queue.metadata.resource_version, "annotations": annotations}}
        return self._client.merge_patch(QUEUES, queue.metadata.name, patch)

    def _allocated(self, name: str, depth: int = 0) -> Vector:
        """Return the requests of the pods in this queue and its descendants."""
        result = self._usage.requests_in(name)
        for child in self._queues.by_index(PARENT_INDEX, name) if depth < _HIGHEST else ():
            result = add(result, self._allocated(child.metadata.name, depth + 1))
        return result

    def _requeue_with_parents(self, name: str) -> None:
        """Recount this queue and its ancestors."""
        for _ in range(_HIGHEST):
            self.worker.queue.add_after(name or names.ROOT_QUEUE, COUNT_EVERY_S)
            queue = self._queues.get(name)
            if queue is None or name == names.ROOT_QUEUE:
                return
            name = queue.spec.parent or names.ROOT_QUEUE

    def _without_queue(self, name: str) -> None:
        if name in BUILT_IN_QUEUES:
            with suppress(AlreadyExists):
                self._client.create(QUEUES, {"metadata": {"name": name}, "spec": BUILT_IN_QUEUES[name]})
        commands = self._waiting(name)
        if commands and get_or_none(self._client, QUEUES, name, None) is not None:
            raise Retry(f"queue {name} is not in the cache yet")
        for command in commands:
            self._recorder.event(command, "Warning", "CommandIssued", f"there is no queue {name}")
            self._done(command)

    def _waiting(self, name: str) -> list[Command]:
        with self._lock:
            commands = [each for each in self._commands.values() if each.target and each.target.name == name]
        return sorted(commands, key=lambda command: command.metadata.creation_timestamp or "")

    def _done(self, command: Command) -> None:
        delete(self._client, COMMANDS, command.metadata)
        with self._lock:
            self._commands.pop(command.metadata.uid, None)
