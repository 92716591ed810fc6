"""Free capacity in one cycle: the number of pods that fit on each node, and the number of pods that may use a claim."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from extender.planner import reasons
from extender.planner.ask import amounts_of_claims
from extender.planner.dynamic.needs import SharedClaim
from extender.planner.framework.answers import Causes, Codes, LeftFree
from extender.planner.framework.operations import Eviction, Operation
from extender.planner.framework.snapshot import Snapshot
from extender.planner.state.amounts import Amounts, clipped
from extender.planner.state.podclass import PodClass
from extender.planner.state.pods import PodRecord
from muster.api.kubernetes.devices import MOST_PODS
from muster.resources.vector import GPU

LARGE = int(np.iinfo(np.int64).max)


class FreeCapacity:
    """The free capacity of a snapshot's nodes, minus the capacity reserved for gangs other than the current gang."""

    def __init__(self, snapshot: Snapshot, causes: Causes) -> None:
        self.snapshot, self.causes = snapshot, causes
        self.reserved: LeftFree | None = None
        """Capacity that is reserved for gangs other than the gang that is being placed."""

    def room(
        self, cls: PodClass, free: Amounts | None = None, *, columns: Amounts | None = None, ports: bool = True
    ) -> Amounts:
        """Return how many pods of this class each node's resources can hold, int64 of shape (nodes,).

        Unless `ports` is False, at most one pod of a class with host ports fits on a node. `free` is by default the
        capacity that the current gang may use. With `columns`, the result covers only the nodes in these columns, in
        this order, and `free` must have the same columns. The number of pods that share GPUs is exact for the current
        free capacity and for empty nodes, otherwise an upper bound.
        """
        shared = free is None or free is self.snapshot.free
        if free is None:
            free = self.usable() if columns is None else self.usable()[:, columns]
        row = self.snapshot.row_of(cls)
        if self.snapshot.unknown_resource(cls):
            return np.zeros(free.shape[1], dtype=np.int64)
        wanted = np.flatnonzero(row)
        if cls.gpu is not None and not cls.gpu.by_resource and cls.gpu.memory:  # the devices limit the number of pods
            wanted = wanted[wanted != self.snapshot.axis.get(GPU, -1)]
        if not len(wanted):
            return np.full(free.shape[1], LARGE)
        room: Amounts = np.maximum((free[wanted] // row[wanted, None]).min(axis=0), 0)
        if cls.gpu is not None or (shared and self.snapshot.devices.pods.any()):
            room = np.minimum(room, self._devices_room(cls, free, now=shared, columns=columns))
        return np.minimum(room, 1) if cls.host_ports and ports else room

    def _devices_room(self, cls: PodClass, free: Amounts, *, now: bool, columns: Amounts | None = None) -> Amounts:
        """Return the number of pods of this class that fit on each node's GPUs.

        The number of pods is exact for the current free capacity (`now`) and for empty nodes, otherwise an upper bound.
        """
        snapshot = self.snapshot
        devices = snapshot.devices if columns is None else snapshot.devices.at(columns)
        if cls.gpu is None:  # valid for the pods that run now
            whole = cls.whole_gpus
            return devices.unused(free, snapshot.axis) // whole if whole else np.full(free.shape[1], LARGE)
        if not now and free is not snapshot.allocatable:
            return devices.most(cls.gpu, free, snapshot.axis)
        devices = devices if now else devices.emptied()
        return devices.room(cls.gpu, devices.unused(free, snapshot.axis))

    def scarce(self, cls: PodClass, free: Amounts | None = None) -> Codes:
        """Return, for each node, the code of the first resource that a pod of this class lacks; 0 if the pod fits.

        Without `free`, capacity that is reserved for other gangs also counts as missing, with a separate cause.
        """
        reserved = self.reserved if free is None else None
        free = self.snapshot.free if free is None else free
        codes = np.zeros(free.shape[1], dtype=np.int16)
        unknown = self.snapshot.unknown_resource(cls)
        if unknown:
            codes[:] = self.causes.code(reasons.cause.scarce(unknown))
            return codes
        for resource, amount in cls.requests.items():
            position = self.snapshot.axis.get(resource)
            if amount > 0 and position is not None:
                code = self.causes.code(reasons.cause.scarce(resource))
                codes = np.where((codes == 0) & (free[position] < clipped(amount)), code, codes)
        now = free is self.snapshot.free
        if cls.gpu is not None or (now and self.snapshot.devices.pods.any()):
            none = self._devices_room(cls, free, now=now) <= 0
            codes = np.where((codes == 0) & none, self.causes.code(reasons.cause.GPU_PARTS), codes).astype(np.int16)
        if reserved is not None:
            columns = reserved.columns
            none = self.room(cls)[columns] <= 0
            codes[columns] = np.where((codes[columns] == 0) & none, reserved.codes, codes[columns])
        return codes

    def usable(self) -> Amounts:
        """Return the capacity not reserved for other gangs, int64 of shape (resources, nodes); read-only."""
        if self.reserved is None:
            return self.snapshot.free
        free = self.snapshot.free.copy()
        free[:, self.reserved.columns] -= self.reserved.amounts
        return free


@dataclass(frozen=True, slots=True, eq=False)
class FreedDevices:
    """Devices of a claim that become free once all users of the claim have left."""

    users: tuple[int, ...]
    """Positions of the groups of pods that contain users of the claim, in ascending order."""
    column: int
    row: Amounts
    """The claim's devices as resources, int64 of shape (resources,)."""


class ClaimUsers:
    """Users of each claim, in total and by queue: pods on nodes and placed slots, including tentative slots.

    The API allows `MOST_PODS` pods to use one claim, or any number of pods if their native PodGroup shares the claim.
    The devices of a claim count once in each queue with pods that use the claim, regardless of the number of these
    pods. On the node, the devices of a claim are free once a trial has evicted all users of the claim.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._users, queues = Counter(snapshot.claim_users), snapshot.claim_queues
        self._queues = Counter({(key, name): count for key, found in queues.items() for name, count in found.items()})
        columns = ((key, snapshot.index.get(node)) for key, node in snapshot.claim_nodes.items())
        self._column = {key: column for key, column in columns if column is not None}
        """Maps a claim that has devices to the column of the node on which the devices are."""
        self._held = {key: column for key, column in self._column.items() if self._users[key]}
        """Maps a claim with devices and users to its node's column; free when the users end."""

    def count(self, entry: Operation | Eviction, sign: int) -> None:
        """Update the numbers of users by one step of a trial."""
        self.use(entry.cls, sign * entry.size)
        for claim in entry.cls.needs.named:
            self._queues[claim.key, entry.gang.queue] += sign * entry.size

    def use(self, cls: PodClass, pods: int) -> None:
        """Add (or subtract) this many users of a pod class's claims on their node; counts by queue stay the same."""
        for claim in cls.needs.named:
            before = self._users[claim.key]
            after = self._users[claim.key] = before + pods
            if claim.key in self._held and (before > 0) != (after > 0):
                freed = amounts_of_claims(self._snapshot, [claim]) * (1 if before > 0 else -1)
                self._snapshot.free[:, self._held[claim.key]] += freed

    def given_away(self, claim: SharedClaim) -> bool:
        """Return True if another placement or trial will get the claim's devices when its users leave."""
        column = self._column.get(claim.key)
        if column is None:
            return False
        row = amounts_of_claims(self._snapshot, [claim])
        free = self._snapshot.free[:, column]
        lacks = free < (row if claim.key in self._held and self._users[claim.key] <= 0 else 0)
        return bool(lacks[row > 0].any())

    def freed_by(self, units: Sequence[Iterable[PodRecord]]) -> list[FreedDevices]:
        """Return the claims' devices that are free once all these pods have ended."""
        users: dict[SharedClaim, list[int]] = {}
        for number, pods in enumerate(units if self._held else ()):
            for claim in (claim for pod in pods for claim in pod.cls.needs.named if claim.key in self._held):
                users.setdefault(claim, []).append(number)
        return [
            FreedDevices(tuple(found), self._held[claim.key], amounts_of_claims(self._snapshot, [claim]))
            for claim, found in users.items()
            if len(found) >= self._users[claim.key]
        ]

    def lost_with(self, units: Sequence[tuple[str, Iterable[PodRecord]]]) -> list[Amounts]:
        """Return the devices that each evicted unit's queue loses; a unit is a pair of its queue and pods.

        The last user of a claim in a queue frees the claim's devices for the queue.
        """
        last: dict[tuple[SharedClaim, str], int] = {}
        for number, (queue, pods) in enumerate(units if self._queues else ()):
            for claim in (claim for pod in pods for claim in pod.cls.needs.named):
                if self._queues[claim.key, queue] <= 0:
                    last[claim, queue] = number
        lost = [amounts_of_claims(self._snapshot, ())] * len(units)
        for (claim, _), number in last.items():
            lost[number] = lost[number] + amounts_of_claims(self._snapshot, [claim])
        return lost

    def user_count(self, key: str, queue: str | None = None) -> int:
        """Return the number of users of a claim, in one queue or in total."""
        return self._users[key] if queue is None else self._queues[key, queue]

    def hold(self, cls: PodClass) -> int:
        """Return how many more pods of this class may use the claims that pods of the class name."""
        claims = (claim for claim in cls.needs.named if not claim.grouped)
        return min((max(0, MOST_PODS - self._users[claim.key]) for claim in claims), default=LARGE)

    def full(self, cls: PodClass, pods: int) -> str:
        """Return the key of a claim that cannot have this many more users; empty if there is no such claim."""
        named = (claim.key for claim in cls.needs.named if not claim.grouped)
        return next((key for key in named if self._users[key] + pods > MOST_PODS), "")

    def new(self, claims: Iterable[SharedClaim], queue: str) -> list[SharedClaim]:
        """Return the distinct claims that no pod of the queue uses yet."""
        return [claim for claim in dict.fromkeys(claims) if not self._queues[claim.key, queue]]
