"""The devices of every node, read from the ResourceSlices that drivers publish, and each device's kinds.

A device is counted if it is a whole device, belongs to one node, and is in a complete pool (`planner.dynamic.pools`). A
kind of device that also matches partial devices, shared devices, or devices of several nodes is not counted (`unseen`).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from extender.planner import reasons
from extender.planner.dynamic.cel import UnsupportedError, value_of
from extender.planner.dynamic.claims import DeviceKind, kind_of_class
from extender.planner.dynamic.pools import DeviceId, Entry, PoolId, TaintRules, entries_of, pool_of
from extender.planner.dynamic.rows import Pattern, Rows, rows_of
from muster.api.kubernetes.devices import DEVICE_CLASS_RESOURCE, DeviceClass, DeviceTaintRule, ResourceSlice
from muster.api.limits import DEVICE_KINDS
from muster.api.muster.reason import Reason, reason_of
from muster.resources.vector import unit


class Inventory:
    """Devices by pool and node, updated by watch events; each update returns the nodes whose devices have changed."""

    def __init__(self) -> None:
        self.classes: dict[str, DeviceClass] = {}
        self.extended: dict[str, str] = {}
        """Maps an extended resource's name to the name of its device class."""
        self.rows: Rows = rows_of({}, {}, (), ())
        self._rules = TaintRules()
        self._named: dict[str, ResourceSlice] = {}
        self._slices: dict[PoolId, dict[str, ResourceSlice]] = {}
        self._entries: dict[PoolId, dict[str, Entry]] = {}
        self._of_node: dict[str, Counter[Pattern]] = {}
        self._uncounted: Counter[Pattern] = Counter()
        self._wanted: dict[DeviceKind, Counter[str]] = {}
        """Maps a kind to its number of requests per namespace; the namespace "" stands for device classes."""
        self._alls: Counter[DeviceKind] = Counter()
        self._bits: dict[DeviceKind, int] = {}
        self._unknown: dict[DeviceKind, Reason] = {}
        """Maps a kind to the reason why it cannot be counted, regardless of the devices."""
        self._patterns: Counter[Pattern] = Counter()
        """Maps a pattern (the set of a device's kinds) to the number of counted devices with this pattern."""
        self._key: object = None
        self._stale = False
        self._uniform: dict[tuple[str, tuple[DeviceKind, ...]], bool] = {}

    def put_slice(self, name: str, new: ResourceSlice | None) -> set[str]:
        """Add, replace or (with None) remove the ResourceSlice of this name."""
        old, changed = self._named.pop(name, None), set[str]()
        if new is not None:
            self._named[name] = new
            if old is not None and old.spec == new.spec:
                return changed
        for pool in {pool_of(each) for each in (old, new) if each is not None}:
            slices = self._slices.setdefault(pool, {})
            slices.pop(name, None)
            if new is not None and pool_of(new) == pool:
                slices[name] = new
            changed |= self._read_pool(pool)
            if not slices:
                del self._slices[pool]
        return changed

    def put_rule(self, name: str, new: DeviceTaintRule | None) -> set[str]:
        """Add, replace or (with None) remove a DeviceTaintRule."""
        touched = self._rules.update_rule(name, new)
        return set().union(*map(self._read_pool, filter(touched, list(self._slices))))

    def put_class(self, name: str, new: DeviceClass | None) -> set[str]:
        """Add, replace or (with None) remove a device class."""
        old = self.classes.pop(name, None)
        if new is not None:
            self.classes[name] = new
        bare = kind_of_class(name)
        if old is None and new is not None:
            self._wanted.setdefault(bare, Counter())[""] += 1  # the kind's devices are determined below
        elif old is not None and new is None:
            self.uncount(bare)
        self.extended = _extended(self.classes.values())
        self._stale = True
        if (old.spec.selectors if old else None) == (new.spec.selectors if new else None):
            return set()
        for kind in [kind for kind in self._wanted if name in kind.classes]:
            self._mark(kind)
        return set(self._of_node)

    def want(self, kind: DeviceKind, namespace: str = "", *, whole: bool = False) -> None:
        """Register a request for devices of this kind; `whole` is true for a request for all devices of a node.

        A kind is counted until `uncount` has been called once for each registered request.
        """
        wanted = self._wanted.setdefault(kind, Counter())
        wanted[namespace] += 1
        if whole:
            self._alls[kind] += 1
            self._stale |= self._alls[kind] == 1
        if wanted.total() == 1 or (wanted[namespace] == 1 and self._is_crowded(kind)):
            self._mark(kind)

    def uncount(self, kind: DeviceKind, namespace: str = "", *, whole: bool = False) -> None:
        """Remove a request that was registered with `want`."""
        wanted = self._wanted[kind]
        wanted[namespace] -= 1
        if not wanted[namespace]:
            del wanted[namespace]
        if whole:
            self._alls[kind] -= 1
            if not self._alls[kind]:
                del self._alls[kind]
                self._stale = True
        if not wanted:
            del self._wanted[kind]
            self._stale = True
            self._unmark(kind)
            crowded = [each for each in self._unknown if self._is_crowded(each)]
            if crowded:
                self._mark(min(crowded, key=self._shares()))

    def refresh(self) -> bool:
        """Rebuild `rows` if kinds or devices have changed; return True after a rebuild."""
        if not self._stale:
            return False
        self._stale = False
        self._uniform.clear()
        patterns = sorted(self._patterns)
        names = {kind: self._resource(kind) for kind in self._bits}
        alls = [kind for kind in self._bits if kind in self._alls]
        unseen = sorted(self._uncounted), dict(self._unknown)
        key = dict(self._bits), names, alls, patterns, unseen, frozenset(self.classes)
        if key == self._key:
            return False
        self._key = key
        self.rows = rows_of(self._bits, names, alls, patterns)
        return True

    def offers(self, node: str, own: Mapping[str, int]) -> dict[str, int]:
        """Return the devices of a node as quantities of resources; `own` contains the node's allocatable resources.

        If a device plugin advertises an extended resource, its quantity is kept, and added to each resource that
        includes its device class.
        """
        offered = self.rows.amounts(self._of_node.get(node, {}))
        for name, class_name in self.extended.items():
            amount = own.get(name, 0)
            if amount > 0:
                for including in self.rows.taken.get(kind_of_class(class_name), ()):
                    offered[including] = offered.get(including, 0) + amount // unit(name) * unit(including)
                offered.pop(name, None)
        return offered

    def used(self, devices: Iterable[DeviceId]) -> dict[str, int]:
        """Return the resources that these devices take on their nodes when they are allocated."""
        found = (entry for device in devices if (entry := self.entry(device)) is not None and entry.counted)
        return self.rows.used(Counter(entry.pattern for entry in found))

    def entry(self, device: DeviceId) -> Entry | None:
        """Return the entry of a device; None if the device's pool is incomplete or does not contain the device."""
        driver, pool, name = device
        return self._entries.get((driver, pool), {}).get(name)

    def unseen(self, kind: DeviceKind) -> str:
        """Return the reason why the kind cannot be counted; empty if it can be counted."""
        if kind in self._unknown:
            return str(self._unknown[kind])
        mask = 1 << self._bits[kind] if kind in self._bits else 0
        return reasons.devices.NOT_OF_ONE_NODE if any(pattern & mask for pattern in self._uncounted) else ""

    def class_of(self, resource: str) -> str:
        """Return the name of an extended resource's device class; empty without a class."""
        if resource.startswith(DEVICE_CLASS_RESOURCE):
            name = resource.removeprefix(DEVICE_CLASS_RESOURCE)
            return name if name in self.classes else ""
        return self.extended.get(resource, "")

    def uniform(self, kinds: tuple[DeviceKind, ...], attribute: str) -> bool:
        """Return True if, on every node, all devices of these kinds have the same value of an attribute."""
        known = self._uniform.get((attribute, kinds))
        if known is None:
            mask = sum(1 << self._bits[kind] for kind in set(kinds) if kind in self._bits)
            values: dict[str, str] = {}
            known = self._uniform[attribute, kinds] = all(
                values.setdefault(entry.node, value) == value
                for entry in self._devices()
                if entry.pattern & mask
                for value in (value_of(entry.driver, entry.device.attributes, attribute),)
            )
        return known

    @property
    def nodes(self) -> Collection[str]:
        """Names of the nodes with counted devices."""
        return self._of_node.keys()

    def _resource(self, kind: DeviceKind) -> str:
        first = kind.classes[0]
        known = self.classes.get(first) if kind == kind_of_class(first) else None
        name = known.spec.extended_resource_name if known else None
        return name if name and self.extended.get(name) == first else kind.name

    def _read_pool(self, pool: PoolId) -> set[str]:
        before = self._entries.pop(pool, {})
        self._count(before.values(), -1)
        entries = entries_of(self._slices[pool].values(), self._rules)
        again: list[DeviceKind] = []
        for kind, bit in self._bits.items():
            try:
                for entry in entries.values():
                    entry.pattern |= kind.matched_by(entry.driver, entry.device, self.classes) << bit
            except UnsupportedError:
                again.append(kind)
        if entries:
            self._entries[pool] = entries
        self._count(entries.values(), 1)
        for kind in again:  # with fewer devices, an expression may be within its limit
            self._mark(kind)
        return {entry.node for entry in (*before.values(), *entries.values()) if entry.node}

    def _count(self, entries: Iterable[Entry], sign: int) -> None:
        for entry in entries:
            self._stale = True
            counters = [self._uncounted]
            if entry.counted:
                counters = [self._patterns, self._of_node.setdefault(entry.node, Counter())]
            for counter in counters:
                counter[entry.pattern] += sign
                if not counter[entry.pattern]:
                    del counter[entry.pattern]
            if entry.counted and not counters[-1]:
                del self._of_node[entry.node]

    def _mark(self, kind: DeviceKind) -> None:
        self._stale = True
        self._unmark(kind)
        if len(self._bits) >= DEVICE_KINDS.value:
            crowded = self._most_crowded(kind)
            self._unmark(crowded)
            self._unknown[crowded] = reasons.devices.too_many_kinds(most=DEVICE_KINDS.value)
            if crowded == kind:
                return
        bit = next(number for number in range(len(self._bits) + 1) if number not in set(self._bits.values()))
        try:
            kind.begin(self.classes)
            matched = [each for each in self._devices() if kind.matched_by(each.driver, each.device, self.classes)]
        except UnsupportedError as error:
            self._unknown[kind] = reason_of(str(error))
            return
        self._bits[kind] = bit
        self._repattern(matched, lambda pattern: pattern | 1 << bit)

    def _is_crowded(self, kind: DeviceKind) -> bool:
        why = self._unknown.get(kind)
        return why is not None and why.code == reasons.devices.too_many_kinds.code

    def _most_crowded(self, kind: DeviceKind) -> DeviceKind:
        """Return the kind that is dropped in favour of `kind`; `kind` itself if its namespaces have the most kinds.

        The namespaces with the most kinds lose their newest kinds, so that no namespace can use up the limit.
        """
        share = self._shares()
        newest = max(reversed(self._bits), key=share)
        return newest if share(newest) > share(kind) + 1 else kind

    def _shares(self) -> Callable[[DeviceKind], int]:
        """Return a function from a kind of device to the lowest number of counted kinds among the kind's namespaces.

        The number is 0 for kinds of device classes.
        """
        counts = Counter(namespace for each in self._bits for namespace in self._wanted[each] if namespace)
        return lambda kind: min(counts[namespace] for namespace in self._wanted[kind])

    def _unmark(self, kind: DeviceKind) -> None:
        self._unknown.pop(kind, None)
        bit = self._bits.pop(kind, None)
        if bit is not None:
            mask = 1 << bit
            marked = [entry for entry in self._devices() if entry.pattern & mask]
            self._repattern(marked, lambda pattern: pattern & ~mask)

    def _devices(self) -> Iterator[Entry]:
        return (entry for entries in self._entries.values() for entry in entries.values())

    def _repattern(self, entries: list[Entry], change: Callable[[Pattern], Pattern]) -> None:
        self._count(entries, -1)
        for entry in entries:
            entry.pattern = change(entry.pattern)
        self._count(entries, 1)


def _extended(classes: Iterable[DeviceClass]) -> dict[str, str]:
    """Map each extended resource to the newest device class that names it, the first by name if several are newest."""
    named = [each for each in classes if each.spec.extended_resource_name]
    named.sort(key=lambda each: each.metadata.name, reverse=True)
    named.sort(key=lambda each: each.metadata.creation_timestamp or "")
    return {each.spec.extended_resource_name or "": each.metadata.name for each in named}
