"""The oracle of the planner's state: compares what events have kept with what the objects alone give.

A state that is kept by differences can go wrong by one difference and stay so. `digest` is what there is to compare and
`objects_of` what to make another state from; `rebuilt` makes that other state; `differences` names what is not alike,
in words. Numbers of queries differ from state to state, so marks are compared by what their queries ask.
`RememberingState` is a state that can be compared so at any time.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from msgspec import structs

from extender.planner.ledger import Ledger
from extender.planner.ledgerentry import EntryKind, LedgerEntry
from extender.planner.state.amounts import Amounts
from extender.planner.state.devices import Devices
from extender.planner.state.placedslots import PlacedSlot
from extender.planner.state.podcounts import Counts
from extender.planner.state.pods import PodRecord
from extender.planner.state.queries import Labels, Mark
from extender.planner.state.state import PlannerState
from muster.api import names
from muster.api.kubernetes.core import Node, Pod
from muster.api.kubernetes.devices import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from muster.api.muster.gang import Slot
from muster.api.muster.placement import Placement
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import PodGroup, Queue
from muster.resources.vector import Vector

K = TypeVar("K", bound=Hashable)
MAX_DIFFERENCES = 20
"""Differences that are told; the first one is what matters."""


@dataclass(frozen=True, slots=True)
class StateDigest:
    """The part of a state that decides, at one moment."""

    columns: Mapping[str, int]
    axis: Mapping[str, int]
    allocatable: Amounts
    most: Mapping[str, Vector]
    """Node that offers less than before → the largest amounts, which no object contains any more."""
    used: Amounts
    entries: Mapping[Hashable, LedgerEntry]
    """What stands in the ledger, by holder."""
    devices: Mapping[str, tuple[list[int], int, int]]
    """Node → what shares use of each GPU of it, of unknown ones, and of all; nodes without shares are left out."""
    pod_counts: Mapping[Mark, Counts]
    claim_users: Mapping[str, int]
    device_users: Mapping[str, int]
    """Claim to devices that pods name → its users."""
    queries: Mapping[Mark, bytes]
    slots: Mapping[str, Slot | None]
    """UID of a pod → its slot, which the planner gives to pods that do not say."""
    taken: Mapping[str, int]
    """Gang → pods of it that are bound or have succeeded."""
    alive: Mapping[str, int]
    """Gang → pods of it that hold a node."""
    queue_use: Mapping[str, tuple[Vector, Vector]]
    """Queue → what its pods use, and what those of them use that are being deleted."""
    user_use: Mapping[tuple[str, str], tuple[Vector, Vector]]
    gpu_use: Mapping[tuple[str, str], int]
    limited_use: Mapping[tuple[str, str | None], Vector]
    """Queue with a limit, and its user where that is per user → what counts against it."""
    placed: Mapping[str, int]
    """Gang → its placed slots."""
    left_behind: Mapping[str, tuple[str, str]]
    """Gang whose PodGroup is gone, and that still holds something → its last queue and creator."""


@dataclass(frozen=True, slots=True)
class Objects:
    """The objects that a state holds as they came, which are all but pods."""

    nodes: list[Node]
    namespaces: dict[str, Labels]
    jobs: list[Job]
    groups: list[PodGroup]
    placements: list[Placement]
    queues: list[Queue]
    devices: Mapping[tuple[type, str], Any]
    """Slices, rules, device classes, claim templates and claims."""


def objects_of(state: PlannerState, devices: Mapping[tuple[type, str], Any]) -> Objects:
    """What everything else in the state is made from, pods aside; it does not hold `devices`, by kind and name."""
    return Objects(
        [node for node in state.nodes.nodes if node is not None],
        dict(state.classes.queries.namespaces),
        list(state.jobs.values()),
        list(state.groups.values()),
        list(state.placements.values()),
        list(state.queues.values()),
        devices,
    )


def digest(state: PlannerState) -> StateDigest:
    """The state as it is now, every gang refreshed."""
    state.refresh()
    table, ledger = state.nodes, state.ledger
    return StateDigest(
        dict(table.index),
        dict(table.axis),
        table.allocatable.copy(),
        dict(table._most),
        table.used.copy(),
        dict(ledger.entries),
        {name: _gpu_use(table.devices, column) for name, column in table.index.items() if table.devices.pods[column]},
        table.pod_counts.share(),
        dict(ledger.claim_users),
        {key: state.claimants.users_of(key) for key in ledger.device_users.keys() | state.devices.reserved},
        {query.mark: query.key for query in state.classes.queries.alive()},
        {uid: record.slot for uid, record in state.pods.items()},
        dict(state.pod_table.taken),
        dict(state.pod_table.alive),
        {name: (dict(use.staying), dict(use.leaving)) for name, use in ledger.queues.queues.items()},
        {key: (dict(use.staying), dict(use.leaving)) for key, use in ledger.queues.users.items()},
        dict(ledger.queues.gpus),
        ledger.queues.limited.copy().used,
        dict(ledger.placed),
        {key: (ledger.queues.queue_of[key], ledger.queues.user_of[key]) for key in ledger.left_behind},
    )


def _gpu_use(devices: Devices, column: int) -> tuple[list[int], int, int]:
    """What shares use of each GPU of a node up to the last one, how many unknown ones, and what of all GPUs."""
    used = devices.shared[column, : devices.wide(column)].tolist()
    return used, int(devices.unknown[column]), int(devices.counted[column])


def recomputed_use(ledger: Ledger) -> Amounts:
    """`used` of the table of nodes made anew from the entries."""
    table = ledger.nodes
    used = np.zeros_like(table.used)
    for entry in ledger.entries.values():
        if entry.node in table.index:
            column = table.index[entry.node]
            used[:, column] += table.row_of(table.taken(entry.cls, column))
    return used


def rebuilt(objects: Objects, pods: Iterable[Pod], seen: StateDigest) -> PlannerState:
    """A state from the objects that another one holds and from these pods, which it does not hold as they came."""
    fresh = PlannerState()
    for queue in objects.queues:
        fresh.on_queue(None, queue)
    for node in objects.nodes:
        fresh.on_node(None, node)
    fresh.classes.queries.namespaces.update(objects.namespaces)
    _equip(fresh, objects.devices)
    fresh.nodes._most.update(seen.most)
    for job in objects.jobs:
        fresh.on_job(None, job)
    for group in objects.groups:
        fresh.on_pod_group(None, group)
    for gang, (queue, user) in seen.left_behind.items():
        fresh.ledger.moved(gang, queue, user)
        fresh.ledger.left_behind.add(gang)
    for pod in pods:
        fresh.on_pod(None, pod)
        record = fresh.pods.get(pod.metadata.uid)
        if record is not None:  # it is not set aside
            record.slot = record.slot or seen.slots.get(record.uid)
    _write_again(fresh, seen)
    for placement in objects.placements:
        fresh.on_placement(None, placement)
    _expect_back(fresh, seen)
    return fresh


def _equip(fresh: PlannerState, devices: Mapping[tuple[type, str], Any]) -> None:
    on = {
        DeviceClass: fresh.claimants.on_class, DeviceTaintRule: fresh.claimants.on_rule,
        ResourceSlice: fresh.claimants.on_slice, ResourceClaimTemplate: fresh.claimants.on_template,
        ResourceClaim: fresh.claimants.on_claim,
    }  # fmt: skip
    for (kind, _), item in devices.items():
        on[kind](None, item)


def _expect_back(fresh: PlannerState, seen: StateDigest) -> None:
    """No object says what pods without a template asked for that are gone: their placed slots are remembered."""
    fresh.refresh()
    for holder, entry in seen.entries.items():
        view = fresh.gang(entry.gang) if entry.gang and entry.kind is EntryKind.PLACED else None
        if view is None or holder in fresh.ledger.entries:
            continue
        for slot, node, pod_set in view.placed_slots():
            gone = pod_set is None or not (pod_set.template or slot.rank < pod_set.replicas)
            if gone and (holder, entry.node) == (PlacedSlot(view.uid, slot), node):
                fresh.ledger.open(holder, entry)


def _write_again(fresh: PlannerState, seen: StateDigest) -> None:
    """What the process has written, and no watch has shown yet, is in no object."""
    for holder, entry in seen.entries.items():
        if entry.kind is EntryKind.ASSUMED:
            fresh.ledger.open(holder, entry)
        elif entry.kind is EntryKind.BOUND:
            fresh.assume(str(holder), entry.node, entry.devices)


def differences(kept: StateDigest, fresh: StateDigest) -> list[str]:
    """What the state has other than the objects say, at most `MAX_DIFFERENCES` of them; empty if all is well."""
    asked = frozenset(fresh.queries.values())  # a query that nobody asks any more may live a little longer
    found = [
        *_unlike("node", dict.fromkeys(kept.columns, ""), dict.fromkeys(fresh.columns, "")),
        *_unlike("entry", _entries(kept), _entries(fresh)),
        *_unlike("GPUs of", kept.devices, fresh.devices),
        *_unlike("claim in use", dict(kept.claim_users), dict(fresh.claim_users)),
        *_unlike("pods that are taken of gang", kept.taken, fresh.taken),
        *_unlike("pods alive of gang", kept.alive, fresh.alive),
        *_unlike("use of queue", kept.queue_use, fresh.queue_use),
        *_unlike("use of limit", kept.limited_use, fresh.limited_use),
        *_unlike("placed slots of gang", kept.placed, fresh.placed),
        *_unlike("allocatable", _amounts(kept, kept.allocatable), _amounts(fresh, fresh.allocatable)),
        *_unlike("used", _amounts(kept, kept.used), _amounts(fresh, fresh.used)),
        *_unlike("pods counted", _counts(kept, asked), _counts(fresh, asked)),
    ]
    return found[:MAX_DIFFERENCES]


def _unlike(what: str, kept: Mapping[K, object], fresh: Mapping[K, object]) -> list[str]:
    keys = [key for key in {**kept, **fresh} if kept.get(key) != fresh.get(key) or (key in kept) != (key in fresh)]
    return [
        f"{what} {key}: {kept.get(key, 'nothing')} is kept, {fresh.get(key, 'nothing')} is right"
        for key in keys[:MAX_DIFFERENCES]
    ]


def _entries(seen: StateDigest) -> dict[Hashable, object]:
    return {
        holder: (each.kind, each.node, each.gang, each.queue, each.devices, sorted(each.cls.requests.items()))
        for holder, each in seen.entries.items()
    }


def _amounts(seen: StateDigest, amounts: Amounts) -> dict[Hashable, object]:
    names = {column: name for name, column in seen.columns.items()}
    resources = {row: resource for resource, row in seen.axis.items()}
    rows, columns = np.nonzero(amounts)
    return {
        (names.get(int(column), f"column {column}"), resources[int(row)]): int(amounts[row, column])
        for row, column in zip(rows, columns, strict=True)
    }


def _counts(seen: StateDigest, asked: frozenset[bytes]) -> dict[Hashable, object]:
    names = {column: name for name, column in seen.columns.items()}
    return {
        (said, names.get(int(column), f"column {column}")): int(counts[column])
        for mark, counts in seen.pod_counts.items()
        if (said := _said(mark, seen.queries, asked)) is not None
        for column in np.flatnonzero(counts)
    }


def _said(mark: Mark, queries: Mapping[Mark, bytes], asked: frozenset[bytes]) -> Hashable:
    """The mark without numbers; None if nobody asks its query any more."""
    kind = mark[0]
    if kind == "port":
        return mark
    query = mark[1] if kind == "apart" else mark
    key = queries.get(query, b"") if isinstance(query, tuple) else b""
    return None if key not in asked else (kind, key.hex(), mark[2] if kind == "apart" else "")


class RememberingState(PlannerState):
    """A state that also remembers pods and devices as they came, so that it can be compared with one made of them."""

    def __init__(self, looks: int | None = None) -> None:
        super().__init__(looks)
        self.pod_objects: dict[str, Pod] = {}
        self.device_objects: dict[tuple[type, str], Any] = {}

    def on_pod(self, old: Pod | None, new: Pod | None) -> bool:
        """As the state, and remembered."""
        known = self.pods.get(new.metadata.uid) if new else None
        news = super().on_pod(old, new)
        if new is not None:
            uid = new.metadata.uid
            record = self.pods.get(uid)  # none of a pod that is set aside, unless it is bound
            if record is None or record.resource_version == new.metadata.resource_version:
                before = self.pod_objects.get(uid) if known and record and known.node == record.node != "" else None
                if before is not None and known is not None:
                    new = as_it_was(before, new, known, read=uid not in self.exclusions.pods)
                self.pod_objects[uid] = new
        elif old is not None:
            self.pod_objects.pop(old.metadata.uid, None)
        return news

    def settle(self) -> None:
        """Compare all new queries with pods, a few looks at a time."""
        self.refresh()
        while self.comparisons.pending:
            self.compare(1)
            self.refresh()

    def differences(self) -> list[str]:
        """What is not as the objects say."""
        kept = digest(self)
        objects = objects_of(self, self.device_objects)
        return differences(kept, digest(rebuilt(objects, self.pod_objects.values(), kept)))


_SLOT_KEYS = (names.TASK_SPEC, names.TASK_INDEX, names.MEMBER_INDEX, names.COMPLETION_INDEX, names.POD_INDEX)
_GANG_KEYS = (names.GROUP_NAME, names.GANG, names.COSCHEDULING_GROUP)
_QUEUE_KEYS = (names.QUEUE, names.QUEUE_NAME, names.VOLCANO_QUEUE)
_DEVICE_KEYS = (names.GPU_DEVICES_CHOSEN, names.VOLCANO_GPU_INDEX)


def as_it_was(before: Pod, new: Pod, known: PodRecord, *, read: bool) -> Pod:
    """A bound pod as it is charged: what says that is as before, the rest new; all as before if it cannot be read."""
    meta = new.metadata
    if not read:
        now = {"resource_version": meta.resource_version, "deletion_timestamp": meta.deletion_timestamp}
        status = structs.replace(before.status, phase=new.status.phase)
        return structs.replace(before, metadata=structs.replace(before.metadata, **now), status=status)
    kept = {*_QUEUE_KEYS, *names.GPU_SHARE_KEYS}
    kept |= {*_GANG_KEYS} if known.gang else set()
    kept |= {*_SLOT_KEYS} if known.gang and known.slot else set()
    told = known.devices and not set(_DEVICE_KEYS).isdisjoint(before.metadata.annotations)
    kept |= {*_DEVICE_KEYS} if told else set()

    def mixed(old: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
        fresh = {key: text for key, text in now.items() if key not in kept}
        return fresh | {key: text for key, text in old.items() if key in kept}

    annotations = mixed(before.metadata.annotations, meta.annotations)
    metadata = structs.replace(meta, labels=mixed(before.metadata.labels, meta.labels), annotations=annotations)
    group = before.spec.scheduling_group if known.gang else new.spec.scheduling_group
    return structs.replace(new, metadata=metadata, spec=structs.replace(new.spec, scheduling_group=group))
