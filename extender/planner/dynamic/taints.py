"""Taints that administrators give devices by rules (DeviceTaintRule), whatever the driver of the devices publishes.

kube-scheduler allocates no device to a request that does not tolerate its taints, those of rules as well as those of
the slice; the control plane evicts the users of devices with NoExecute. On by default since Kubernetes 1.37.
"""

from collections.abc import Callable

from msgspec.structs import replace

from muster.api.kubernetes.devices import Device, DeviceTaintRule

PoolId = tuple[str, str]
"""Driver and name."""


class TaintRules:
    """The rules by name, and the devices that have their taints."""

    def __init__(self) -> None:
        self._rules: dict[str, DeviceTaintRule] = {}

    def put(self, name: str, new: DeviceTaintRule | None) -> Callable[[PoolId], bool]:
        """Put, update or (None) remove a rule; return a test for pools whose devices it may have changed."""
        old = self._rules.pop(name, None)
        if new is not None:
            self._rules[name] = new
        changed = (old.spec if old else None) != (new.spec if new else None)
        rules = [each for each in (old, new) if each is not None and changed]
        return lambda pool: any(_may_taint(each, pool) for each in rules)

    def tainted(self, pool: PoolId, device: Device) -> Device:
        """Return the device with the taints of rules: a copy, as slices keep what drivers published."""
        if not self._rules:
            return device
        taints = [rule.spec.taint for rule in self._rules.values() if _taints(rule, pool, device.name)]
        return replace(device, taints=[*device.taints, *taints]) if taints else device


def _may_taint(rule: DeviceTaintRule, pool: PoolId) -> bool:
    """True if the rule selects devices of the pool. A rule without a selector selects none, an empty selector all."""
    chosen = rule.spec.device_selector
    return chosen is not None and chosen.driver in {None, pool[0]} and chosen.pool in {None, pool[1]}


def _taints(rule: DeviceTaintRule, pool: PoolId, name: str) -> bool:
    chosen = rule.spec.device_selector
    return _may_taint(rule, pool) and chosen is not None and chosen.device in {None, name}
