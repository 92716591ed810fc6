"""The demand of a claim, as so many devices of each kind; demands that cannot be counted are told in words.

One request is for so many devices of a kind (`ExactCount`), for all of a node (`All`), or for access beside their users
(`adminAccess`), which takes nothing. `firstAvailable` can be counted where each alternative is one device: then any
device that fulfils one of them will do. Devices that must share an attribute can be counted where all devices of the
kinds on every node do so.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from extender.planner import reasons
from extender.planner.dynamic.kinds import Kind, Wanted, tolerated
from muster.api.kubernetes.devices import ALL, DeviceConstraint, DeviceRequest, ExactDeviceRequest, ResourceClaimSpec


@dataclass(frozen=True, slots=True)
class Alike:
    """Devices of these kinds that a claim gets must have one value of an attribute."""

    attribute: str
    kinds: tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class Demand:
    """The demand of one claim."""

    counts: tuple[tuple[Kind, int], ...] = ()
    all_of: tuple[Kind, ...] = ()
    """Kinds of which it takes every device of the node, at least one."""
    beside: tuple[tuple[Kind, int], ...] = ()
    """Devices that must be on the node, in use or not."""
    alike: tuple[Alike, ...] = ()
    unseen: tuple[str, ...] = ()
    """Demands that are left to kube-scheduler, in words."""

    @property
    def kinds(self) -> set[Kind]:
        """All kinds that the claim names."""
        return {kind for kind, _ in (*self.counts, *self.beside)} | set(self.all_of)


def demand_of(spec: ResourceClaimSpec) -> Demand:
    """Read a claim or the spec of a template."""
    counts: list[tuple[Kind, int]] = []
    all_of: list[Kind] = []
    beside: list[tuple[Kind, int]] = []
    unseen: list[str] = []
    kinds: dict[str, tuple[Kind, int]] = {}
    for request in spec.devices.requests:
        needed = _attributes(spec.devices.constraints, request.name)
        read = _read(request, needed)
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
    return Demand(tuple(counts), tuple(all_of), tuple(beside), alike, (*unseen, *more))


def _read(request: DeviceRequest, attributes: tuple[str, ...]) -> tuple[Kind, int, ExactDeviceRequest | None] | str:
    """Return the kind, the number of devices (0: all), and the request if it is exact; or why it is not counted."""
    exact = request.exactly
    if exact is not None:
        why = _countable(exact)
        return why or (Kind((_wanted(exact, attributes),)), _count(exact), exact)
    ways = request.first_available
    if not ways:
        return reasons.devices.UNKNOWN_KIND
    for way in ways:
        if why := _countable(way):
            return why
    if len(ways) > 1 and any(_count(way) != 1 for way in ways):
        return reasons.devices.ALTERNATIVES
    return Kind(tuple(_wanted(way, attributes) for way in ways)), _count(ways[0]), None


def _countable(exact: ExactDeviceRequest) -> str:
    if exact.capacity:
        return reasons.devices.PART
    if exact.allocation_mode not in {"", "ExactCount", ALL}:
        return reasons.devices.unknown_mode(mode=exact.allocation_mode)
    return ""


def _count(exact: ExactDeviceRequest) -> int:
    """Return the number of devices; 0 means all."""
    return 0 if exact.allocation_mode == ALL else max(1, exact.count)


def _wanted(exact: ExactDeviceRequest, attributes: tuple[str, ...]) -> Wanted:
    selectors = tuple(each.cel.expression for each in exact.selectors if each.cel is not None)
    return Wanted(exact.device_class_name, selectors, tuple(map(tolerated, exact.tolerations)), attributes)


def _attributes(constraints: Iterable[DeviceConstraint], request: str) -> tuple[str, ...]:
    """Return the attributes that the devices of a request must have."""
    return tuple(
        sorted({each.match_attribute for each in constraints if each.match_attribute and _concerns(each, request)})
    )


def _alike(
    constraints: Iterable[DeviceConstraint], kinds: dict[str, tuple[Kind, int]]
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
    """Return True if it names the request, or one of its alternatives, or none, which means all."""
    return not constraint.requests or any(each.partition("/")[0] == request for each in constraint.requests)
