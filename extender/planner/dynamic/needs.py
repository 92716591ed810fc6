"""Device needs of a pod: the sum of its claims, which is part of its pod class."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from extender.planner import reasons
from extender.planner.dynamic.claims import DeviceDemand, DeviceKind
from extender.planner.dynamic.inventory import Inventory
from extender.planner.dynamic.pools import DeviceId
from muster.api.kubernetes.constraints import NodeSelector
from muster.api.muster.reason import Reason
from muster.resources.vector import unit


@dataclass(frozen=True, slots=True)
class SharedClaim:
    """A claim that several pods may use; before its devices are allocated, its first pod determines its node."""

    key: str
    """Namespace and name of the claim, as `namespace/name`."""
    rows: tuple[tuple[str, int], ...]
    """Resources that the claim takes on its node, regardless of how many pods use the claim."""
    grouped: bool = False
    """True if native PodGroups share the claim, so that each group counts as one user."""


@dataclass(frozen=True, slots=True)
class ClaimNeeds:
    """The sum of the needs of all claims of a pod.

    Equal needs have equal keys; a pod without claims has an empty key.
    """

    rows: tuple[tuple[str, int], ...] = ()
    """Resources that the pod's claims take from its node, in addition to its containers' requests."""
    replaced: tuple[str, ...] = ()
    """Extended resources of the containers' requests that count as the devices in `rows` instead."""
    beside: tuple[tuple[str, int], ...] = ()
    """Devices that must exist on the node, whether they are in use or not, as resources."""
    shared: tuple[SharedClaim, ...] = ()
    named: tuple[SharedClaim, ...] = ()
    """All claims that the pod names and that other pods may use, too, with or without allocated devices. The devices of
    named claims are charged to queues."""
    nodes: tuple[NodeSelector, ...] = ()
    """Node selectors of the devices that are already allocated to the pod's claims."""
    problems: tuple[Reason, ...] = ()
    """Problems with the claims that keep the pod off every node."""
    of_group: tuple[str, ...] = ()
    """Claims of the pod's native PodGroup, if Muster's kube-scheduler schedules the pod.

    Muster's kube-scheduler allocates claims of PodGroups only if its feature gates for PodGroups are enabled."""
    unseen: tuple[str, ...] = ()
    """Descriptions of demands that Muster does not count and only kube-scheduler checks."""
    shown: tuple[tuple[str, int], ...] = field(default=(), compare=False)
    """The pod's demands as shown to users: each kind of device once, without Muster's auxiliary resources."""
    key: bytes = field(default=b"", compare=False)

    def __post_init__(self) -> None:
        """Compute the key of these needs."""
        parts = (
            self.rows, self.replaced, self.beside, self.shared, self.named, self.nodes, self.problems, self.of_group,
            self.unseen,
        )  # fmt: skip
        if any(parts):
            object.__setattr__(self, "key", msgspec.msgpack.encode(parts))

    def __bool__(self) -> bool:
        """True if the pod has any device needs."""
        return bool(self.key)


NO_NEEDS = ClaimNeeds()


class Sums:
    """Builder for the sum of the needs of one pod's claims."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._rows: Counter[str] = Counter()
        self._beside: Counter[str] = Counter()
        self._shared: list[SharedClaim] = []
        self._named: list[SharedClaim] = []
        self.replaced: list[str] = []
        self.nodes: list[NodeSelector] = []
        self.problems: list[Reason] = []
        self.of_group: list[str] = []
        self._unseen: list[str] = []
        self._shown: Counter[str] = Counter()

    def needs(self) -> ClaimNeeds:
        """Return the sum of all added claims."""
        return ClaimNeeds(
            tuple(sorted((name, amount) for name, amount in self._rows.items() if amount)),
            tuple(self.replaced),
            tuple(sorted(self._beside.items())),
            tuple(self._shared),
            tuple(dict.fromkeys(self._named)),
            tuple(self.nodes),
            tuple(self.problems),
            tuple(self.of_group),
            tuple(dict.fromkeys(self._unseen)),
            tuple(sorted(self._shown.items())),
        )

    def add(self, demand: DeviceDemand, what: str) -> None:
        """Add the demand of a claim to which no devices are allocated yet."""
        self._rows.update(self._asked(demand, what))

    def add_own(
        self, demand: DeviceDemand, devices: Iterable[DeviceId], nodes: NodeSelector | None, *, on_node: bool
    ) -> None:
        """Add the allocated devices of a claim that was created for this pod.

        As long as the pod has no node, the claim is counted separately from the pod.
        """
        self._show(demand)
        if on_node:
            self._rows.update(self._inventory.used(devices))
        elif nodes is not None:
            self.nodes.append(nodes)

    def share(self, key: str, demand: DeviceDemand, *, grouped: bool = False) -> None:
        """Add a claim without allocated devices; other pods may use the claim, too."""
        rows = tuple(sorted(self._asked(demand, f"claim {key}").items()))
        self._shared.append(SharedClaim(key, rows, grouped))
        self._named.append(self._shared[-1])

    def share_devices(
        self, key: str, devices: Iterable[DeviceId], nodes: NodeSelector | None, *, grouped: bool = False
    ) -> None:
        """Add a claim and its allocated devices; other pods may use the claim, too."""
        self._named.append(SharedClaim(key, tuple(sorted(self._inventory.used(devices).items())), grouped))
        if nodes is not None:
            self.nodes.append(nodes)

    def extend(self, resource: str, kind: DeviceKind, amount: int) -> None:
        """Add an extended resource that represents devices of a class.

        The pod's requests already contain the quantity of the extended resource.
        """
        if why := self._inventory.unseen(kind):
            self.replaced.append(resource)
            self._unseen.append(f"{resource}: {why}")
            return
        rows, devices = self._inventory.rows, amount // unit(resource)
        if rows.name_of.get(kind) != resource:
            self.replaced.append(resource)
            self._rows.update(rows.asked(kind, devices))
            self._shown[resource] += devices
        else:
            self._rows.update({name: devices * unit(name) for name in rows.taken[kind][1:]})

    def _asked(self, demand: DeviceDemand, what: str) -> Counter[str]:
        rows, asked = self._inventory.rows, Counter[str]()
        self._unseen += [f"{what}: {why}" for why in demand.unseen]
        self._show(demand)
        for kind, count in demand.counts:
            if self._countable(kind, what):
                asked.update(rows.asked(kind, count))
        for kind in demand.all_of:
            if self._countable(kind, what):
                asked.update(rows.asked_all(kind))
        for kind, count in demand.beside:
            if self._countable(kind, what):
                name = rows.name_of[kind]
                self._beside[name] = max(self._beside[name], count * unit(name))
        for alike in demand.alike:
            if not self._inventory.uniform(alike.kinds, alike.attribute):
                self._unseen.append(reasons.devices.alike(what=what, attribute=alike.attribute))
        return asked

    def _show(self, demand: DeviceDemand) -> None:
        names = self._inventory.rows.name_of
        for kind, count in demand.counts:
            self._shown[names.get(kind, kind.name)] += count
        for kind in demand.all_of:
            self._shown[f"{names.get(kind, kind.name)} (all of a node)"] += 1

    def _countable(self, kind: DeviceKind, what: str) -> bool:
        missing = [name for name in kind.classes if name not in self._inventory.classes]
        if len(missing) == len(kind.classes):
            self.problems.append(reasons.devices.class_missing(name=missing[0]))
            return False
        if why := self._inventory.unseen(kind):
            self._unseen.append(f"{what}: {why}")
            return False
        return True
