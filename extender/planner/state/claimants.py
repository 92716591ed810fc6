"""Updates of nodes and pods when the nodes' devices or the claims change (`planner.state.devicetable`).

A changed claim affects the pods that name the claim. Changed devices affect some nodes, or all nodes and pods if
resources for devices are added or removed.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from extender.planner.ledger import Ledger
from extender.planner.ledgerentry import EntryKind, LedgerEntry
from extender.planner.state.amounts import discard, put_entry, tally
from extender.planner.state.devicetable import ClaimRef, DeviceTable, PodClaims
from extender.planner.state.podclass import ClassTable
from extender.planner.state.pods import PodRecord
from extender.planner.state.templates import Templates
from muster.api.kubernetes.devices import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from muster.resources.pods import node_allocatable


@dataclass(slots=True, eq=False)
class Claimants:
    """The pods that use each device claim; these pods are updated when claims or devices change.

    The class calls `equip` with the UIDs of pods whose device needs may have changed. The class calls `job_changed`
    with the UID of a Job if the needs of the Job's templates may have changed.

    Each method `on_*` takes an object before and after its change (None if the object does not exist). The method
    returns True if the change may be relevant to scheduling.
    """

    devices: DeviceTable
    ledger: Ledger
    classes: ClassTable
    templates: Templates
    pods: Mapping[str, PodRecord]
    equip: Callable[[list[str]], None]
    job_changed: Callable[[str], None]
    users: dict[str, set[str]] = field(default_factory=dict)
    """Maps a claim or claim template to the UIDs of the pods that name it."""
    left: dict[str, str] = field(default_factory=dict)
    """Maps a claim to the node of its devices, for claims with devices that no pod on a node names."""

    def on_slice(self, old: ResourceSlice | None, new: ResourceSlice | None) -> bool:
        """Update a ResourceSlice."""
        name = (new or old or ResourceSlice()).metadata.name
        return self._changed(self.devices.inventory.put_slice(name, new))

    def on_rule(self, old: DeviceTaintRule | None, new: DeviceTaintRule | None) -> bool:
        """Update a DeviceTaintRule."""
        name = (new or old or DeviceTaintRule()).metadata.name
        return self._changed(self.devices.inventory.put_rule(name, new))

    def on_class(self, old: DeviceClass | None, new: DeviceClass | None) -> bool:
        """Update a DeviceClass."""
        name = (new or old or DeviceClass()).metadata.name
        return self._changed(self.devices.inventory.put_class(name, new))

    def on_claim(self, old: ResourceClaim | None, new: ResourceClaim | None) -> bool:
        """Update a ResourceClaim; its creation and deletion are relevant because pods may wait for them."""
        before = self.ledger.nodes.version
        self._changed(set(), {self.devices.on_claim(old, new)})
        return self.ledger.nodes.version != before or (old is None) != (new is None)

    def on_group(self, old: Collection[ClaimRef], new: Collection[ClaimRef]) -> None:
        """Replace the claims and claim templates `old`, which the pods of a native PodGroup share, by `new`."""
        before = {*self.devices.grouped}
        for refs, sign in ((old, -1), (new, 1)):
            for ref in refs:
                tally(self.devices.grouped, ref, sign)
        changed = before ^ {*self.devices.grouped}
        self._check([uid for ref in changed for uid in self.users.get(ref.key or ref.template, ())], ())

    def on_template(self, old: ResourceClaimTemplate | None, new: ResourceClaimTemplate | None) -> bool:
        """Update a ResourceClaimTemplate."""
        self._changed(set(), {self.devices.on_template(old, new)})
        return True

    def equip_nodes(self, names: Collection[str]) -> None:
        """Count the devices of these nodes again."""
        inventory, nodes = self.devices.inventory, self.ledger.nodes
        for name in names:
            column = nodes.index.get(name)
            node = nodes.nodes[column] if column is not None else None
            own = node_allocatable(node) if node is not None and inventory.extended else {}
            self.ledger.equip(name, inventory.offers(name, own))

    def equipped(self, record: PodRecord) -> PodRecord:
        """Return the pod's record with the pod class for its current claims; the same record if nothing changed."""
        pod = PodClaims(record.uid, record.claims, record.extended_claim, record.uses_node)
        cls = self.classes.equipped(record.cls, self.devices.needs(pod, record.cls.asked))
        return record if cls is record.cls else replace(record, cls=cls)

    def named(self, old: PodRecord | None, new: PodRecord | None) -> None:
        """Update the users of the claims that a pod names, and update the ledger entries of these claims.

        Call `named` also when the pod has been bound to a node or removed from its node.
        """
        record, before, after = new or old, _claims_of(old), _claims_of(new)
        if record is None or not (before or after):
            return
        for key in before - after:
            discard(self.users, key, record.uid)
        for key in after - before:
            self.users.setdefault(key, set()).add(record.uid)
        for key in before | after:
            self._settle(key)

    def users_of(self, key: str) -> int:
        """Return the number of users of a claim: pods on nodes, placed slots, and further users in the claim's status.

        The API allows at most `MOST_PODS` users of a claim. A pod that waits for its binding is counted by its placed
        slot.
        """
        counted, claim = sum(self.ledger.users_of_claim(key).values()), self.devices.claims.get(key)
        return counted + sum(map(self._counted_nowhere, claim.users if claim else ()))

    def claim_nodes(self) -> dict[str, str]:
        """Return a mapping from claim to node, for claims whose devices do not count as part of a pod."""
        named = ((key, self.ledger.entries.get(("allocated", key))) for key in self.ledger.device_users)
        return self.left | {key: entry.node for key, entry in named if entry is not None}

    def _counted_nowhere(self, uid: str) -> bool:
        """Return True for a pod in a claim's status that no ledger entry counts: it is unknown, has ended, or waits."""
        pod = self.pods.get(uid)
        return pod is None or not (pod.uses_node or uid in self.ledger.entries or (pod.waiting and pod.gang))

    def _changed(self, nodes: set[str], claims: Collection[str] = ()) -> bool:
        """Update the affected nodes and pods; return True if nodes are affected."""
        if self.devices.inventory.refresh():
            table = self.ledger.nodes
            self.equip_nodes({*table.index, *self.devices.inventory.nodes, *table.equipped, *nodes})
            self._check(list(self.pods), None)
            return True
        if nodes:
            self.equip_nodes(nodes)
            claims = {key for node in nodes for key in self.devices.on_nodes.get(node, ())} | self.devices.alike
        self._check([uid for key in claims for uid in self.users.get(key, ())], claims)
        return bool(nodes)

    def _check(self, uids: list[str], keys: Collection[str] | None) -> None:
        """Update these pods, and these claims or claim templates; `keys` of None means all claims and templates."""
        self.equip(uids)
        for uid in self.templates.equip_again(keys):
            self.job_changed(uid)
        for key in list(self.devices.claims) if keys is None else keys:
            self._settle(key)

    def _settle(self, key: str) -> None:
        """Open the ledger entry for a claim's devices; close the entry if the devices count as part of a pod."""
        claim = self.devices.claims.get(key)
        owner = self.pods.get(claim.owner) if claim else None
        own = [owner.extended_claim, *(ref.key for ref in owner.claims if ref.template)] if owner is not None else []
        counted = owner is not None and owner.uses_node and key in own
        allocated = None if counted else self.devices.allocated(key)
        if allocated is None:
            self.ledger.close(("allocated", key))
            self.left.pop(key, None)
        else:
            node, rows = allocated
            used = any(self.pods[uid].uses_node for uid in self.users.get(key, ()))
            put_entry(self.left, key, None if used else node)
            self.ledger.open(("allocated", key), LedgerEntry(EntryKind.ALLOCATED, node, self.classes.of_amounts(rows)))


def _claims_of(record: PodRecord | None) -> set[str]:
    """Return the keys of the claims and claim templates that a pod names."""
    if record is None:
        return set()
    return {record.extended_claim, *(key for ref in record.claims for key in (ref.key, ref.template))} - {""}
