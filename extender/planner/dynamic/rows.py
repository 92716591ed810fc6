"""Devices represented as resources of a node, so that counting devices means adding and comparing numbers.

Each kind of device is a resource: a node has one unit for each matching device, and a request for two devices takes two
units. A device may belong to two kinds, such as "any GPU" and "a GPU with 80 GB", and must not be counted twice. A
request therefore takes units from every resource that includes all devices of the requested kind. For example, a
request for a large GPU also takes one unit of the resource for any GPU. By Hall's theorem, all requests can be served
if and only if each union of kinds has enough devices for the requests for its kinds. If kinds overlap and neither
includes the other, their union is therefore an additional resource. As a result, all code for resources also works for
devices: free capacity, victims, reservations, queues and scale-up requests.

A request with allocation mode `All` is for all devices of a kind on a node, regardless of their number. Requests with
mode `All` have a separate resource: a node with devices of the kind has `WHOLE` units of the resource. Each user of a
single device takes one unit, so all `WHOLE` units are free only as long as no device is in use.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from extender.planner.dynamic.claims import DeviceKind
from muster.resources.vector import unit

WHOLE = 1 << 20
"""Number of units of the separate resource that a request for all devices of a kind takes. The number is larger than
the number of devices on any node."""
MOST_UNIONS = 64
"""Maximum number of unions of kinds that are counted. Only kube-scheduler detects shortages of further unions."""
Pattern = int
"""The kinds of a device as a bit mask, one bit per kind."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The resources that represent a set of kinds of devices, for devices with the given patterns."""

    masks: Mapping[str, Pattern]
    """Maps a resource to the bit mask of the kinds whose devices it includes."""
    wholes: Mapping[str, Pattern]
    """Maps a resource for requests with mode `All` to the bit mask of the kinds whose devices it includes."""
    taken: Mapping[DeviceKind, tuple[str, ...]]
    """Maps a kind to the resources that one device of the kind takes: the kind's own resource first, resources in
    `wholes` last."""
    whole_of: Mapping[DeviceKind, str]
    """Maps a kind to the resource that represents requests for all devices of the kind on a node."""
    name_of: Mapping[DeviceKind, str]
    """Maps a kind to its own resource."""

    def amounts(self, patterns: Mapping[Pattern, int]) -> dict[str, int]:
        """Return the resources of a node, given its number of devices per pattern; zero values are left out."""
        found = {name: _device_count_in(patterns, mask) * unit(name) for name, mask in self.masks.items()}
        found |= {name: WHOLE for name, mask in self.wholes.items() if _device_count_in(patterns, mask)}
        return {name: amount for name, amount in found.items() if amount}

    def used(self, patterns: Mapping[Pattern, int]) -> dict[str, int]:
        """Return the resources that allocated devices take, given the number of allocated devices per pattern."""
        masks = (*self.masks.items(), *self.wholes.items())
        return {name: count * unit(name) for name, mask in masks if (count := _device_count_in(patterns, mask))}

    def asked(self, kind: DeviceKind, count: int) -> dict[str, int]:
        """Return the resources that a request for `count` devices of the kind takes."""
        return {name: count * unit(name) for name in self.taken[kind]}

    def asked_all(self, kind: DeviceKind) -> dict[str, int]:
        """Return the resources that a request for all devices of the kind on a node takes."""
        return self.asked(kind, 1) | {self.whole_of[kind]: WHOLE}


def rows_of(
    bits: Mapping[DeviceKind, int],
    names: Mapping[DeviceKind, str],
    alls: Collection[DeviceKind],
    patterns: Collection[Pattern],
) -> Rows:
    """Build the resources that represent these kinds of devices.

    `bits` maps each kind to its bit in patterns, and `alls` contains the kinds that are requested with mode `All`.

    `patterns` contains the distinct patterns of the devices.
    """
    own = {kind: 1 << bit for kind, bit in bits.items()}
    masks = {names[kind]: mask for kind, mask in own.items()}
    words = {mask: names[kind] for kind, mask in own.items()}
    for union in islice(_unions(list(own.values()), patterns), MOST_UNIONS):
        parts = (name for mask, name in sorted(words.items()) if mask & union and mask.bit_count() == 1)
        masks[" or ".join(parts)] = union
    whole_of = {kind: f"{names[kind]} (all of a node)" for kind in alls if kind in own}
    wholes = {name: own[kind] for kind, name in whole_of.items()}
    taken = {}
    for kind, mask in own.items():
        mine = [pattern for pattern in patterns if pattern & mask]
        including = [
            name for name, other in masks.items() if other != mask and mine and all(each & other for each in mine)
        ]
        touched = [name for name, other in wholes.items() if any(each & other for each in mine)]
        taken[kind] = (names[kind], *including, *touched)
    return Rows(masks, wholes, taken, whole_of, dict(names))


def _unions(masks: list[Pattern], patterns: Collection[Pattern]) -> Iterator[Pattern]:
    """Yield the unions of overlapping kinds of which neither includes the other, and the unions of such unions."""
    known = dict.fromkeys(masks)
    sets = {mask: frozenset(each for each in patterns if each & mask) for mask in masks}
    todo = list(masks)
    while todo:
        left = todo.pop(0)
        for right in list(known):
            both = left | right
            overlap = sets[left] & sets[right]
            if both in known or not overlap or sets[left] <= sets[right] or sets[right] <= sets[left]:
                continue
            sets[both] = sets[left] | sets[right]
            known[both] = None
            todo.append(both)
            yield both


def _device_count_in(patterns: Mapping[Pattern, int], mask: Pattern) -> int:
    return sum(count for pattern, count in patterns.items() if pattern & mask)
