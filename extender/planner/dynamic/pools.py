"""Pools of devices by kube-scheduler's rules: only complete pools count, and administrators' rules add taints.

A pool consists of the slices of its newest generation. The pool counts as empty if a slice is missing or two devices
have the same name, because kube-scheduler then allocates no device.

kube-scheduler allocates no device to a request that does not tolerate the device's taints. Taints of devices come from
ResourceSlices and from DeviceTaintRules. The control plane evicts the users of devices with a NoExecute taint.
DeviceTaintRules are enabled by default since Kubernetes 1.37.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from extender.planner.dynamic.rows import Pattern
from muster.api.kubernetes.devices import Device, DeviceTaintRule, ResourceSlice

PoolId = tuple[str, str]
"""Driver and name of a pool."""
DeviceId = tuple[str, str, str]
"""Driver, pool and name of a device."""


class TaintRules:
    """The DeviceTaintRules by name, which add taints to devices."""

    def __init__(self) -> None:
        self._rules: dict[str, DeviceTaintRule] = {}

    def update_rule(self, name: str, new: DeviceTaintRule | None) -> Callable[[PoolId], bool]:
        """Add, replace or (with None) remove a rule; return a predicate for the pools that may have changed."""
        old = self._rules.pop(name, None)
        if new is not None:
            self._rules[name] = new
        changed = (old.spec if old else None) != (new.spec if new else None)
        rules = [each for each in (old, new) if each is not None and changed]
        return lambda pool: any(_may_taint(each, pool) for each in rules)

    def tainted(self, pool: PoolId, device: Device) -> Device:
        """Return a copy of the device with the taints of rules; ResourceSlices contain only the drivers' taints."""
        if not self._rules:
            return device
        taints = [rule.spec.taint for rule in self._rules.values() if _taints(rule, pool, device.name)]
        return replace(device, taints=[*device.taints, *taints]) if taints else device


def _may_taint(rule: DeviceTaintRule, pool: PoolId) -> bool:
    """Return True if the rule may select devices of the pool.

    A rule without a selector selects no device; an empty selector selects all devices.
    """
    chosen = rule.spec.device_selector
    return chosen is not None and chosen.driver in {None, pool[0]} and chosen.pool in {None, pool[1]}


def _taints(rule: DeviceTaintRule, pool: PoolId, name: str) -> bool:
    chosen = rule.spec.device_selector
    return _may_taint(rule, pool) and chosen is not None and chosen.device in {None, name}


@dataclass(slots=True)
class Entry:
    """A device of a complete pool, with its node."""

    driver: str
    device: Device
    node: str
    """Name of the device's node; empty if the device does not belong to exactly one node."""
    pattern: Pattern = 0

    @property
    def counted(self) -> bool:
        """True for a whole device that belongs to exactly one node; only such devices are counted."""
        device = self.device
        return bool(self.node) and not device.consumes_counters and not device.allow_multiple_allocations


def pool_of(resource_slice: ResourceSlice) -> PoolId:
    """Return the pool of a slice."""
    return resource_slice.spec.driver, resource_slice.spec.pool.name


def entries_of(slices: Iterable[ResourceSlice], rules: TaintRules) -> dict[str, Entry]:
    """Return a pool's devices by name, with the taints of rules; empty if the pool is incomplete or inconsistent."""
    specs = [each.spec for each in slices]
    newest = max((spec.pool.generation for spec in specs), default=None)
    current = [spec for spec in specs if spec.pool.generation == newest]
    if any(len(current) != spec.pool.resource_slice_count for spec in current):
        return {}
    entries: dict[str, Entry] = {}
    for spec in current:
        for device in spec.devices:
            if device.name in entries:
                return {}
            node = device.node_name if spec.per_device_node_selection else spec.node_name
            entries[device.name] = Entry(spec.driver, rules.tainted((spec.driver, spec.pool.name), device), node)
    return entries
