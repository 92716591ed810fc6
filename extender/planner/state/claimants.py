"""Nodes and pods kept up to date with the devices that nodes offer and pods claim (`planner.state.devicetable`).

A change of a claim concerns the pods that name it. A change of devices concerns some nodes, or all nodes and pods if it
adds or removes resources.
"""

from collections.abc import Callable, Collection, Mapping

from msgspec.structs import replace

from extender.planner.ledger import Entry, Kind, Ledger
from extender.planner.state.devicetable import DeviceTable, PodClaims
from extender.planner.state.podclass import ClassTable
from extender.planner.state.pods import PodRecord
from extender.planner.state.templates import Templates
from muster.api.kubernetes.devices import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from muster.resources.pods import node_allocatable


class Claimants:
    """`keep` takes a pod with another class, `job_changed` the UID of a Job whose pods will have another class.

    Every `on_*` takes one object that changed (None: gone), and returns True if that can matter to scheduling.
    """

    def __init__(
        self,
        devices: DeviceTable,
        ledger: Ledger,
        classes: ClassTable,
        templates: Templates,
        pods: Mapping[str, PodRecord],
        *,
        keep: Callable[[PodRecord], None],
        job_changed: Callable[[str], None],
    ) -> None:
        self._devices = devices
        self._ledger = ledger
        self._nodes = ledger.nodes
        self._classes = classes
        self._templates = templates
        self._pods = pods
        self._keep = keep
        self._job_changed = job_changed
        self._users: dict[str, set[str]] = {}
        """Key of a claim or claim template → UIDs of pods that name it."""

    def on_slice(self, old: ResourceSlice | None, new: ResourceSlice | None) -> bool:
        """Take a slice of devices."""
        return self._changed(self._devices.on_slice(old, new))

    def on_class(self, old: DeviceClass | None, new: DeviceClass | None) -> bool:
        """Take a class of devices."""
        return self._changed(self._devices.on_class(old, new))

    def on_claim(self, old: ResourceClaim | None, new: ResourceClaim | None) -> bool:
        """Take a claim; a pod may wait for one to be created or deleted."""
        before = self._nodes.version
        self._changed(set(), {self._devices.on_claim(old, new)})
        return self._nodes.version != before or (old is None) != (new is None)

    def on_template(self, old: ResourceClaimTemplate | None, new: ResourceClaimTemplate | None) -> bool:
        """Take a template of claims."""
        self._changed(set(), {self._devices.on_template(old, new)})
        return True

    def equip_nodes(self, names: Collection[str]) -> None:
        """Count the devices of these nodes again."""
        inventory, nodes = self._devices.inventory, self._nodes
        for name in names:
            column = nodes.index.get(name)
            node = nodes.nodes[column] if column is not None else None
            own = node_allocatable(node) if node is not None and inventory.extended else {}
            nodes.equip(name, inventory.offers(name, own))

    def equipped(self, record: PodRecord) -> PodRecord:
        """Return the pod with the class that its claims give it now; the same record if it has that."""
        if not (record.cls.needs or self._devices.concerns(record.claims, record.cls.asked)):
            return record
        pod = PodClaims(record.uid, record.claims, record.extended_claim, record.uses_node)
        cls = self._classes.equipped(record.cls, self._devices.needs(pod, record.cls.asked))
        return record if cls is record.cls else replace(record, cls=cls)

    def named(self, old: PodRecord | None, new: PodRecord | None) -> None:
        """Keep the users of the claims that a pod names, and settle them: it may have gone to a node, or from it."""
        record, before, after = new or old, _claims_of(old), _claims_of(new)
        if record is None or not (before or after):
            return
        for key in before - after:
            self._users[key].discard(record.uid)
            if not self._users[key]:
                del self._users[key]
        for key in after - before:
            self._users.setdefault(key, set()).add(record.uid)
        for key in before | after:
            self._settle(key)

    def _changed(self, nodes: set[str], claims: Collection[str] = ()) -> bool:
        """Update what a change concerns; return True if that is more than claims."""
        if self._devices.refresh():
            self.equip_nodes({*self._nodes.index, *self._devices.inventory.nodes, *self._nodes.equipped, *nodes})
            self._look(list(self._pods), None)
            return True
        if nodes:
            self.equip_nodes(nodes)
            claims = {key for node in nodes for key in self._devices.on_nodes.get(node, ())} | self._devices.alike
        self._look([uid for key in claims for uid in self._users.get(key, ())], claims)
        return bool(nodes)

    def _look(self, uids: list[str], keys: Collection[str] | None) -> None:
        """Update these pods, and these claims or claim templates (None: all of them)."""
        for uid in uids:
            record = self._pods[uid]
            equipped = self.equipped(record)
            if equipped is not record:
                self._keep(equipped)
        for uid in self._templates.equip_again(keys):
            self._job_changed(uid)
        for key in list(self._devices.claims) if keys is None else keys:
            self._settle(key)

    def _settle(self, key: str) -> None:
        """Have an entry for the devices of a claim, unless they are counted with the pod that it was made for."""
        owner = self._pods.get(self._devices.owner(key))
        own = [owner.extended_claim, *(ref.key for ref in owner.claims if ref.template)] if owner is not None else []
        counted = owner is not None and owner.uses_node and key in own
        allocated = None if counted else self._devices.allocated(key)
        if allocated is None:
            self._ledger.close(("allocated", key))
        else:
            node, rows = allocated
            self._ledger.open(("allocated", key), Entry(Kind.ALLOCATED, node, self._classes.of_amounts(rows)))


_NONE: frozenset[str] = frozenset()


def _claims_of(record: PodRecord | None) -> frozenset[str]:
    if record is None or not (record.claims or record.extended_claim):
        return _NONE
    keys = {key for ref in record.claims for key in (ref.key, ref.template) if key}
    return frozenset(keys | {record.extended_claim} if record.extended_claim else keys)
