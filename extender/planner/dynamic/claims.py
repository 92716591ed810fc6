"""Demand of a ResourceClaim: the number of devices of each kind, and descriptions of demands that cannot be counted.

Requests with the same class, selectors and tolerations request devices of the same kind. A request is for a number of
devices of a kind (`ExactCount`), for all devices of a node (`All`), or for administrative access. With administrative
access (`adminAccess`), the device remains available to other users. A request with `firstAvailable` can be counted if
each of its alternatives is a single device. The kind of a `firstAvailable` request contains all devices that satisfy
any of its alternatives. A constraint that devices have equal values of an attribute can be counted if all devices of
these kinds on one node have equal values.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256

from extender.planner import reasons
from extender.planner.dynamic.cel import MOST_CHARS, selector, value_of
from muster.api.kubernetes.constraints import Toleration
from muster.api.kubernetes.devices import (
    ALL,
    DEVICE_CLASS_RESOURCE,
    NO_SCHEDULE,
    Device,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceTaint,
    ExactDeviceRequest,
    ResourceClaimSpec,
)

MOST_NAME_CHARS = 160


@dataclass(frozen=True, slots=True)
class Tolerated:
    """A toleration of device taints in hashable form."""

    key: str
    operator: str
    value: str
    effect: str

    def covers(self, taint: DeviceTaint) -> bool:
        """Return True if the toleration covers the taint.

        A toleration without a key (with the operator `Exists`) covers every taint. A toleration without an effect
        covers every effect.
        """
        if (self.key and self.key != taint.key) or (self.effect and self.effect != taint.effect):
            return False
        return self.operator == "Exists" or (bool(self.key) and self.value == taint.value)


def tolerated(toleration: Toleration) -> Tolerated:
    """Return the hashable form of a toleration."""
    return Tolerated(toleration.key, toleration.operator or "Equal", toleration.value, toleration.effect)


@dataclass(frozen=True, slots=True)
class DeviceAlternative:
    """One alternative in a request: a device of one class that satisfies all selectors and other demands."""

    device_class: str
    selectors: tuple[str, ...] = ()
    tolerations: tuple[Tolerated, ...] = ()
    attributes: tuple[str, ...] = ()
    """Attributes that the device must have, because all devices of the claim must have the same values."""

    def matched_by(self, driver: str, device: Device, classes: Mapping[str, DeviceClass]) -> bool:
        """Return True if the device meets all demands of this alternative.

        Raises UnsupportedError if only kube-scheduler can evaluate an expression.
        """
        device_class = classes.get(self.device_class)
        if device_class is None:
            return False
        selectors = (each.cel.expression for each in device_class.spec.selectors if each.cel is not None)
        return (
            all(selector(expression).matches(driver, device) for expression in (*selectors, *self.selectors))
            and all(
                taint.effect not in NO_SCHEDULE or any(each.covers(taint) for each in self.tolerations)
                for taint in device.taints
            )
            and all(value_of(driver, device.attributes, name) for name in self.attributes)
        )

    def __str__(self) -> str:
        more = " && ".join((*self.selectors, *(f"has {name}" for name in self.attributes)))
        return f"{self.device_class}[{more}]" if more else self.device_class


@dataclass(frozen=True, slots=True)
class DeviceKind:
    """A kind of device: all devices that match at least one alternative."""

    alternatives: tuple[DeviceAlternative, ...]

    def matched_by(self, driver: str, device: Device, classes: Mapping[str, DeviceClass]) -> bool:
        """Return True if the device matches one of the kind's alternatives.

        Raises UnsupportedError if only kube-scheduler can evaluate an expression.
        """
        return any(wanted.matched_by(driver, device, classes) for wanted in self.alternatives)

    def begin(self, classes: Mapping[str, DeviceClass]) -> None:
        """Drop the cached results of the kind's expressions, because all devices are matched again.

        Raises UnsupportedError if only kube-scheduler can evaluate one of the expressions.
        """
        for wanted in self.alternatives:
            known = classes.get(wanted.device_class)
            given = (each.cel.expression for each in known.spec.selectors if each.cel is not None) if known else ()
            for expression in (*given, *wanted.selectors):
                selector(expression).drop_answers()

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the device classes in the kind's alternatives."""
        return tuple(wanted.device_class for wanted in self.alternatives)

    @property
    def name(self) -> str:
        """Name of the kind's resource: Kubernetes' name for the device class, and any further demands in brackets."""
        words = " or ".join(map(str, self.alternatives))
        first = self.alternatives[0]
        is_plain = (
            len(self.alternatives) == 1 and len(first.selectors) <= 1 and not (first.tolerations or first.attributes)
        )
        if is_plain and len(words) <= MOST_NAME_CHARS:
            return f"{DEVICE_CLASS_RESOURCE}{words}"
        mark = sha256(repr(self.alternatives).encode()).hexdigest()[:8]  # other kinds may have the same text
        return f"{DEVICE_CLASS_RESOURCE}{words[:MOST_NAME_CHARS]} ({mark})"


def kind_of_class(name: str) -> DeviceKind:
    """Return the kind that consists of all devices of a class."""
    return DeviceKind((DeviceAlternative(name),))


@dataclass(frozen=True, slots=True)
class Alike:
    """A constraint of a claim: all of the claim's devices of these kinds must have the same value of an attribute."""

    attribute: str
    kinds: tuple[DeviceKind, ...]


@dataclass(frozen=True, slots=True)
class DeviceDemand:
    """The demand of one ResourceClaim."""

    counts: tuple[tuple[DeviceKind, int], ...] = ()
    all_of: tuple[DeviceKind, ...] = ()
    """Kinds of which the claim takes all devices on the node, and at least one."""
    beside: tuple[tuple[DeviceKind, int], ...] = ()
    """Kinds and numbers of devices that must exist on the node, whether they are in use or not."""
    alike: tuple[Alike, ...] = ()
    unseen: tuple[str, ...] = ()
    """Descriptions of demands that only kube-scheduler checks."""

    @property
    def kinds(self) -> set[DeviceKind]:
        """All kinds that the claim names."""
        return {kind for kind, _ in (*self.counts, *self.beside)} | set(self.all_of)


def demand_of(spec: ResourceClaimSpec) -> DeviceDemand:
    """Return the demand of a claim or of a template's spec."""
    counts: list[tuple[DeviceKind, int]] = []
    all_of: list[DeviceKind] = []
    beside: list[tuple[DeviceKind, int]] = []
    unseen: list[str] = []
    kinds: dict[str, tuple[DeviceKind, int]] = {}
    chars = 0
    for request in spec.devices.requests:
        needed = _attributes(spec.devices.constraints, request.name)
        chars += _selector_chars(request)
        read = _read_device_request(request, needed) if chars <= MOST_CHARS else reasons.devices.TOO_LONG
        if isinstance(read, str):
            unseen.append(reasons.devices.request(request=request.name, why=read))
            continue
        kind, count, exact = read
        kinds[request.name] = kind, count
        if exact is not None and exact.admin_access:
            beside.append((kind, count or 1))
        elif not count:
            all_of.append(kind)
        else:
            counts.append((kind, count))
    alike, more = _alike(spec.devices.constraints, kinds)
    return DeviceDemand(tuple(counts), tuple(all_of), tuple(beside), alike, (*unseen, *more))


def _selector_chars(request: DeviceRequest) -> int:
    """Return the total length of a request's expressions; the expressions of one claim may take up a megabyte."""
    ways = [*request.first_available, *([request.exactly] if request.exactly else ())]
    return sum(len(each.cel.expression) for way in ways for each in way.selectors if each.cel is not None)


def _read_device_request(
    request: DeviceRequest, attributes: tuple[str, ...]
) -> tuple[DeviceKind, int, ExactDeviceRequest | None] | str:
    """Return a request's kind, number of devices (0: all) and exact request, or the reason why it is not counted."""
    exact = request.exactly
    if exact is not None:
        why = _countable(exact)
        return why or (DeviceKind((_wanted(exact, attributes),)), _device_count(exact), exact)
    ways = request.first_available
    if not ways:
        return reasons.devices.UNKNOWN_KIND
    for way in ways:
        if why := _countable(way):
            return why
    if len(ways) > 1 and any(_device_count(way) != 1 for way in ways):
        return reasons.devices.ALTERNATIVES
    return DeviceKind(tuple(_wanted(way, attributes) for way in ways)), _device_count(ways[0]), None


def _countable(exact: ExactDeviceRequest) -> str:
    if exact.capacity:
        return reasons.devices.PART
    if exact.allocation_mode not in {"", "ExactCount", ALL}:
        return reasons.devices.unknown_mode(mode=exact.allocation_mode)
    return ""


def _device_count(exact: ExactDeviceRequest) -> int:
    return 0 if exact.allocation_mode == ALL else max(1, exact.count)


def _wanted(exact: ExactDeviceRequest, attributes: tuple[str, ...]) -> DeviceAlternative:
    selectors = tuple(each.cel.expression for each in exact.selectors if each.cel is not None)
    return DeviceAlternative(exact.device_class_name, selectors, tuple(map(tolerated, exact.tolerations)), attributes)


def _attributes(constraints: Iterable[DeviceConstraint], request: str) -> tuple[str, ...]:
    return tuple(
        sorted({each.match_attribute for each in constraints if each.match_attribute and _concerns(each, request)})
    )


def _alike(
    constraints: Iterable[DeviceConstraint], kinds: dict[str, tuple[DeviceKind, int]]
) -> tuple[tuple[Alike, ...], list[str]]:
    found, unseen = [], []
    for constraint in constraints:
        if not constraint.match_attribute:
            unseen.append(reasons.devices.UNKNOWN_CONSTRAINT)
            continue
        concerned = [(kind, count) for name, (kind, count) in kinds.items() if _concerns(constraint, name)]
        if len(concerned) > 1 or any(count != 1 for _, count in concerned):
            found.append(Alike(constraint.match_attribute, tuple(dict.fromkeys(kind for kind, _ in concerned))))
    return tuple(found), unseen


def _concerns(constraint: DeviceConstraint, request: str) -> bool:
    """Return True if the constraint applies to the request.

    A constraint names requests or alternatives; a constraint without names applies to all requests.
    """
    return not constraint.requests or any(each.partition("/")[0] == request for each in constraint.requests)
