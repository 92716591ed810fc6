"""Kinds of devices: the demands of one request of a claim on a device.

Requests with the same class, selectors and tolerations are of one kind: the same devices would do for both. A request
that names alternatives (`firstAvailable`) is of a kind that any of them fulfils.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from extender.planner.dynamic.cel import selector
from muster.api.kubernetes.constraints import Toleration
from muster.api.kubernetes.devices import DEVICE_CLASS_RESOURCE, NO_SCHEDULE, Device, DeviceClass, DeviceTaint

MOST_NAME_CHARS = 160


@dataclass(frozen=True, slots=True)
class Tolerated:
    """A toleration of device taints, comparable."""

    key: str
    operator: str
    value: str
    effect: str

    def covers(self, taint: DeviceTaint) -> bool:
        """Return True if it tolerates the taint: no key means every taint (with `Exists`), no effect every effect."""
        if (self.key and self.key != taint.key) or (self.effect and self.effect != taint.effect):
            return False
        return self.operator == "Exists" or (bool(self.key) and self.value == taint.value)


def tolerated(toleration: Toleration) -> Tolerated:
    """Return a toleration that can be compared."""
    return Tolerated(toleration.key, toleration.operator or "Equal", toleration.value, toleration.effect)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One alternative: a device of this class that meets all these demands."""

    device_class: str
    selectors: tuple[str, ...] = ()
    tolerations: tuple[Tolerated, ...] = ()
    attributes: tuple[str, ...] = ()
    """Attributes that it must have, as all devices of the claim must be alike in them."""

    def matched_by(self, driver: str, device: Device, classes: Mapping[str, DeviceClass]) -> bool:
        """Return True if the device meets all demands. Raises UnsupportedError if that is left to kube-scheduler."""
        device_class = classes.get(self.device_class)
        if device_class is None:
            return False
        selectors = (each.cel.expression for each in device_class.spec.selectors if each.cel is not None)
        return (
            all(selector(expression).matches(driver, device) for expression in (*selectors, *self.selectors))
            and all(self._tolerates(taint) for taint in device.taints)
            and all(attribute_of(driver, device, name) is not None for name in self.attributes)
        )

    def _tolerates(self, taint: DeviceTaint) -> bool:
        return taint.effect not in NO_SCHEDULE or any(each.covers(taint) for each in self.tolerations)

    def __str__(self) -> str:
        more = " && ".join((*self.selectors, *(f"has {name}" for name in self.attributes)))
        return f"{self.device_class}[{more}]" if more else self.device_class


@dataclass(frozen=True, slots=True)
class Kind:
    """Devices that meet any of these alternatives."""

    alternatives: tuple[Wanted, ...]

    def matched_by(self, driver: str, device: Device, classes: Mapping[str, DeviceClass]) -> bool:
        """Return True if the device meets an alternative. Raises UnsupportedError if that is left to kube-scheduler."""
        return any(wanted.matched_by(driver, device, classes) for wanted in self.alternatives)

    def begin(self, classes: Mapping[str, DeviceClass]) -> None:
        """Drop the answers of its expressions, before all devices are matched.

        Raises UnsupportedError if one is not understood, also where there is no device to try it on.
        """
        for wanted in self.alternatives:
            known = classes.get(wanted.device_class)
            given = (each.cel.expression for each in known.spec.selectors if each.cel is not None) if known else ()
            for expression in (*given, *wanted.selectors):
                selector(expression).forget()

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of its device classes."""
        return tuple(wanted.device_class for wanted in self.alternatives)

    @property
    def bare_class(self) -> str:
        """The name of the class, if any device of it will do; else empty."""
        first = self.alternatives[0]
        return first.device_class if self.alternatives == (Wanted(first.device_class),) else ""

    @property
    def name(self) -> str:
        """Name of its resource: that of the class as Kubernetes calls it, with further demands in brackets."""
        words = " or ".join(map(str, self.alternatives))
        first = self.alternatives[0]
        told = len(self.alternatives) == 1 and len(first.selectors) <= 1 and not (first.tolerations or first.attributes)
        if told and len(words) <= MOST_NAME_CHARS:
            return f"{DEVICE_CLASS_RESOURCE}{words}"
        mark = sha256(repr(self.alternatives).encode()).hexdigest()[:8]  # other kinds may have the same words
        return f"{DEVICE_CLASS_RESOURCE}{words[:MOST_NAME_CHARS]} ({mark})"


def kind_of_class(name: str) -> Kind:
    """Return the kind of any device of a class."""
    return Kind((Wanted(name),))


def attribute_of(driver: str, device: Device, name: str) -> str | None:
    """Return the value of an attribute, named with its domain, as comparable text; None if the device lacks it."""
    domain, _, short = name.rpartition("/")
    attribute = device.attributes.get(name) or (device.attributes.get(short) if domain == driver else None)
    return repr((attribute.text, attribute.number, attribute.flag, attribute.version)) if attribute else None
