"""Small random worlds with one gang, and an exhaustive search for its nodes that shares no code with the planner."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Literal

from topology_world import Racks

Kind = Literal["leader", "slices", "levels", "shares", "tasks"]
KINDS: tuple[Kind, ...] = ("leader", "slices", "levels", "shares", "tasks")
WHOLE = 1000
WIDTH = {"": 0, "block": 2, "rack": 4, "host": 6}
"""Letters of a node's name that name its domain, by level."""


@dataclass(frozen=True)
class Pods:
    """One pod set."""

    name: str
    count: int
    gpus: int = 0
    cpu: int = 1
    fraction: int = 0
    """Thousandths of one GPU, instead of whole ones."""
    required: str = ""
    group: bool = False
    """It sits in one domain of its level with all others that say so."""
    slice_level: str = ""
    slice_size: int = 1

    @property
    def annotations(self) -> dict[str, str]:
        """Of its template."""
        said = {"muster.dev/topology-required": self.required} if self.required else {}
        if self.group:
            said["muster.dev/topology-group"] = "g"
        if self.slice_level:
            said["muster.dev/topology-slice-required"] = self.slice_level
            said["muster.dev/topology-slice-size"] = str(self.slice_size)
        return said | ({"gpu-fraction": str(self.fraction / WHOLE)} if self.fraction else {})

    @property
    def requests(self) -> dict[str, int]:
        """Of one pod."""
        return {"cpu": self.cpu} | ({"nvidia.com/gpu": self.gpus} if self.gpus else {})


@dataclass(frozen=True)
class Case:
    """Free nodes and one gang."""

    nodes: Mapping[str, tuple[int, int]]
    """Name (`b0r1n2`) → GPUs and cpus."""
    sets: tuple[Pods, ...]
    required: str = ""
    """Level of the gang as a whole."""

    def with_count(self, name: str, count: int) -> "Case":
        """The same with another number of pods in one set."""
        return replace(self, sets=tuple(replace(one, count=count) if one.name == name else one for one in self.sets))

    def world(self, profile: str = "mixed") -> tuple[Racks, str]:
        """A world of the planner, and the key of the gang."""
        world = Racks(0, checked=False, profile=profile)
        for name, (gpus, cpu) in self.nodes.items():
            labels = {level: name[:width] for level, width in WIDTH.items() if level}
            world.node(name, gpus=gpus, cpu=cpu, labels=labels)
        key = world.gang("a", {one.name: (one.count, one.requests) for one in self.sets})
        world.said_of(key, {"muster.dev/topology-required": self.required} if self.required else {})
        world.annotate_templates(key, {one.name: one.annotations for one in self.sets})
        return world, key


def broken(case: Case, placed: Mapping[str, Sequence[str]]) -> str:
    """The first requirement that a whole placement breaks; empty if it keeps all of them."""
    everything = [node for nodes in placed.values() for node in nodes]
    for one in case.sets:
        if len(placed.get(one.name, ())) != one.count:
            return f"{one.name} has {len(placed.get(one.name, ()))} pods of {one.count}"
    if _domains(everything, case.required) > 1:
        return f"the gang is in several domains of {case.required}"
    together = [node for one in case.sets if one.group for node in placed[one.name]]
    grouped = next((one for one in case.sets if one.group), None)
    if grouped and _domains(together, grouped.required) > 1:
        return f"the group is in several domains of {grouped.required}"
    for one in case.sets:
        if _domains(placed[one.name], one.required) > 1:
            return f"{one.name} is in several domains of {one.required}"
        for first in range(0, one.count, one.slice_size):
            if _domains(placed[one.name][first : first + one.slice_size], one.slice_level) > 1:
                return f"ranks from {first} of {one.name} are in several domains of {one.slice_level}"
    return _too_full(case, placed)


def _domains(nodes: Sequence[str], level: str) -> int:
    return len({node[: WIDTH[level]] for node in nodes})


def _too_full(case: Case, placed: Mapping[str, Sequence[str]]) -> str:
    for node, (gpus, cpu) in case.nodes.items():
        count = Counter({one.name: placed[one.name].count(node) for one in case.sets})
        if sum(one.cpu * count[one.name] for one in case.sets) > cpu:
            return f"{node} has too little cpu"
        uses = {(0,) * gpus}
        for one in case.sets:
            for _ in range(count[one.name]):
                uses = {after for used in uses for after in _taken(used, one)}
        if not uses:
            return f"{node} has too few GPUs"
    return ""


def _taken(used: tuple[int, ...], one: Pods) -> Iterator[tuple[int, ...]]:
    """The use of a node's devices with one more pod, in every way that differs."""
    if one.fraction:
        for load in sorted({load for load in used if load + one.fraction <= WHOLE}):
            left = list(used)
            left[left.index(load)] += one.fraction
            yield tuple(sorted(left))
    elif used.count(0) >= one.gpus:
        left = sorted(used)
        left[: one.gpus] = [WHOLE] * one.gpus
        yield tuple(sorted(left))


class Exhaustive:
    """Looks through all placements of a gang."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._pods = [(one, rank) for one in case.sets for rank in range(one.count)]
        self._seen: set[Any] = set()

    def finds(self) -> bool:
        """True if there is a placement that keeps every requirement."""
        nodes = tuple((name, (0,) * gpus, cpu) for name, (gpus, cpu) in self._case.nodes.items())
        return self._place(0, nodes, {})

    def _place(self, at: int, nodes: tuple[tuple[str, tuple[int, ...], int], ...], chosen: dict[str, str]) -> bool:
        if at == len(self._pods):
            return True
        one, rank = self._pods[at]
        if rank % one.slice_size == 0:
            chosen = {what: domain for what, domain in chosen.items() if not what.startswith("slice")}
        state = at, nodes, tuple(sorted(chosen.items()))
        if state in self._seen:
            return False
        self._seen.add(state)
        for place, (name, used, cpu) in enumerate(nodes):
            asked = {"gang": self._case.required, f"slice {one.name}": one.slice_level}
            asked["group" if one.group else one.name] = one.required
            domains = {what: name[: WIDTH[level]] for what, level in asked.items() if level}
            if cpu < one.cpu or any(chosen.get(what, domain) != domain for what, domain in domains.items()):
                continue
            for left in _taken(used, one):
                more = (*nodes[:place], (name, left, cpu - one.cpu), *nodes[place + 1 :])
                if self._place(at + 1, more, chosen | domains):
                    return True
        return False


def random_case(kind: Kind, seed: int) -> Case | None:
    """A gang of this kind that fits, mostly as large as fits; None if not even the smallest does."""
    random = Random(f"{kind} {seed}")  # noqa: S311 - worlds, not secrets
    nodes = {}
    for number in range(random.randint(2, 6)):
        domain = f"b{random.randint(0, 1)}r{random.randint(0, 2)}n{number}"
        nodes[domain] = (random.randint(0, 4), random.randint(2, 8))
    nodes = dict(sorted(nodes.items()))
    case, grown, step = _gang(kind, random, nodes)
    if not Exhaustive(case).finds():
        return None
    (count,) = (one.count for one in case.sets if one.name == grown)
    for _ in range(random.choice((0, 1, 8, 8))):
        count += step
        larger = case.with_count(grown, count)
        if count > 8 or not Exhaustive(larger).finds():
            break
        case = larger
    return case


def _gang(kind: Kind, random: Random, nodes: Mapping[str, tuple[int, int]]) -> tuple[Case, str, int]:
    """A small gang, the set that may grow, and by how much at once."""
    level = random.choice(("", "block", "rack"))
    worker = Pods("worker", 2, random.randint(1, 2), random.randint(1, 2))
    if kind == "leader":
        leader = Pods("leader", 1, random.randint(0, 1), random.randint(1, 3), required=level or "block", group=True)
        workers = replace(worker, required=level or "block", group=True)
        if random.random() < 0.4:
            workers = replace(workers, slice_level=random.choice(("rack", "host")), slice_size=2)
        return Case(nodes, (leader, workers)), "worker", workers.slice_size
    if kind == "slices":
        size = random.randint(2, 3)
        sliced = replace(worker, count=size, slice_level=random.choice(("block", "rack", "host")), slice_size=size)
        return Case(nodes, (sliced,), level), "worker", size
    if kind == "levels":
        other = Pods("server", random.randint(1, 2), random.randint(0, 2), random.randint(1, 2))
        sets = (replace(worker, required=random.choice(("block", "rack"))), other)
        if random.random() < 0.5:
            sets = (sets[0], replace(other, required=random.choice(("block", "rack", "host"))))
        return Case(nodes, sets, random.choice(("", "block"))), "worker", 1
    if kind == "shares":
        part = Pods("part", random.randint(1, 3), 0, 1, fraction=random.choice((250, 500, 600)), required=level)
        return Case(nodes, (part, replace(worker, required=random.choice(("", "rack")))), level), "worker", 1
    other = Pods("server", random.randint(1, 2), random.randint(0, 3), random.randint(1, 4))
    return Case(nodes, (worker, other), level), "worker", 1
