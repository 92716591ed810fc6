"""Pools of devices, read from the slices that drivers publish."""

from collections.abc import Iterable
from dataclasses import dataclass

from extender.planner.dynamic.rows import Pattern
from muster.api.kubernetes.devices import Device, ResourceSlice

PoolId = tuple[str, str]
"""Driver and name."""


@dataclass(slots=True)
class Entry:
    """One device of a pool that can be used."""

    driver: str
    device: Device
    node: str
    """Empty if it is not of one node."""
    pattern: Pattern = 0

    @property
    def counted(self) -> bool:
        """True if it is a whole device of one node."""
        device = self.device
        return bool(self.node) and not device.consumes_counters and not device.allow_multiple_allocations


def pool_of(resource_slice: ResourceSlice) -> PoolId:
    """The pool that a slice is of."""
    return resource_slice.spec.driver, resource_slice.spec.pool.name


def entries_of(slices: Iterable[ResourceSlice]) -> dict[str, Entry]:
    """The devices of a pool; none if it is incomplete or wrong."""
    known = list(slices)
    newest = max((each.spec.pool.generation for each in known), default=0)
    current = [each.spec for each in known if each.spec.pool.generation == newest]
    if not current or any(len(current) != spec.pool.resource_slice_count for spec in current):
        return {}
    entries: dict[str, Entry] = {}
    for spec in current:
        for device in spec.devices:
            if device.name in entries:
                return {}
            node = device.node_name if spec.per_device_node_selection else spec.node_name
            entries[device.name] = Entry(spec.driver, device, node)
    return entries
