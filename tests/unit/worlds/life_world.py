"""A cluster in which things happen by chance, for tests that keep what the planner decides."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from itertools import count
from random import Random
from typing import Any
from zlib import crc32

import msgspec
import numpy as np
from extender_world import of
from victims_world import Cluster

from extender.planner.cycle import parts_of
from extender.planner.framework import config, decisions
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.state.pods import PodRecord
from muster.api import names
from muster.api.muster.noderuns import slots_of
from muster.api.muster.reason import Reason
from muster.api.volcano.scheduling import Guarantee, NetworkTopology

Needs = dict[str, dict[str, Any]]
GPU = "nvidia.com/gpu"
TIERS = (
    "",
    "proportion priority gang elastic predicates minruntime binpack topology",
    "drf priority gang overcommit predicates nodeorder fragmentation",
    "proportion gang priority sla predicates gpupack taskorder subgrouporder topology reservations",
    "gang proportion resourcequota conformance predicates gpuspread resourcetype nodeplacement nodeavailability",
)
WISHES = (
    {names.SPARES: "1"}, {names.EVICT_NOTICE: "30s"}, {names.TOPOLOGY_REQUIRED: "rack"},
    {names.TOPOLOGY_PREFERRED: "block"},
)  # fmt: skip
ACTIONS = "repair, enqueue, allocate, consolidate, reclaim, preempt, backfill, stalegangeviction"


class Life(Cluster):
    """A cluster in which things happen by chance, and all decisions are carried out."""

    cycles = 20

    def __init__(self, number: int) -> None:
        super().__init__(0, checked=False)
        self.chance = Random(number)  # noqa: S311 - the same lives each time
        self.configuration = config.parse(self.text_of(number))
        self.parts, self.plugins = parts_of(self.configuration)
        self.size = self.chance.randint(4, 9)
        for index in range(self.size):
            self.stands_up(index)
        self.number = count()
        self.reasons: dict[str, str] = {}
        self.made: dict[str, dict[str, Any]] = {}
        self.pods: dict[tuple[str, str, int], dict[str, Any]] = {}
        self.queues = self.tree()

    def text_of(self, number: int) -> str:
        """The configuration."""
        tiers = TIERS[number % len(TIERS)]
        plugins = "".join(f"\n  - name: {name}" for name in tiers.split())
        return f'actions: "{ACTIONS}"\ntiers:\n- plugins:{plugins}' if tiers else ""

    def tree(self) -> list[str]:
        """Two departments; their teams have shares, limits and guarantees of some kind."""
        for name in ("a", "b"):
            self.queue(name, parent="root", weight=self.chance.randint(1, 3), **self.share(16, 32))
        for name in ("a1", "a2", "b1"):
            self.queue(name, parent=name[0], weight=self.chance.randint(1, 2), **self.share(8, 24))
        return ["a1", "a1", "a2", "b1"]

    def share(self, least: int, most: int) -> dict[str, Any]:
        """One of the ways in which a queue has a share."""
        amount = {GPU: self.chance.randrange(least, most + 1, 4)}
        one = self.chance.choice(["", "", "deserved", "deserved", "capability", "guarantee"])
        return {one: Guarantee(resource=amount) if one == "guarantee" else amount} if one else {}

    def stands_up(self, index: int, **more: Any) -> None:
        """A node, or its newer state; two share a rack, four a block."""
        labels = {"rack": f"r{index // 2}", "block": f"b{index // 4}", "kubernetes.io/hostname": f"node-{index}"}
        self.node(f"node-{index}", gpus=8 if index % 5 else 4, cpu=64, labels=labels, **more)

    def comes(self) -> None:
        """A gang: large or small, rigid or elastic, and with wishes."""
        chance, name = self.chance, f"g{next(self.number)}"
        sizes = {task: chance.randint(1, 4) for task in (["worker"] if chance.random() < 0.7 else ["lead", "worker"])}
        needs = {task: {GPU: chance.choice([1, 2, 4, 8, 8]), "cpu": chance.choice([1, 8])} for task in sizes}
        elastic = chance.random() < 0.3
        least = {task: max(1, size - 1) if elastic else size for task, size in sizes.items()}
        needs, more, wishes = self.more_of(name, needs)
        key = self.gang(
            name,
            {task: (size, needs[task]) for task, size in sizes.items()},
            min_member=sum(least.values()),
            min_task_member=least,
            phase="Pending",
            queue=chance.choice(self.queues),
            priority_class=chance.choice(["low", "low", "high", "meek"]),
            runtime=chance.choice(["", "2m", "1h"]),
            **more,
        )
        group = self.state.groups[key]
        said = chance.choice([{}, {}, *WISHES]) | wishes
        network = NetworkTopology(mode="soft", highest_tier_allowed=1) if chance.random() < 0.1 else None
        self.change(group, annotations=group.metadata.annotations | said, spec={"network_topology": network})
        self.made[key] = needs
        for task, size in sizes.items():
            for rank in range(size):
                self.renew(key, task, rank)

    def more_of(self, _name: str, needs: Needs) -> tuple[Needs, dict[str, Any], dict[str, str]]:
        """What each pod of a gang asks for, other arguments of `gang`, and annotations."""
        return needs, {}, {}

    def renew(self, key: str, task: str, rank: int) -> None:
        """The owner makes a pod, perhaps in place of one that has gone."""
        known = self.pods.get((key, task, rank))
        uid = f"{key}-{task}-{rank}-{int(known['uid'].rpartition('-')[2]) + 1 if known else 0}"
        if known:
            self.vanishes(known["uid"])
        self.pods[key, task, rank] = {"uid": uid, "name": uid.partition("/")[2]}
        self.member(key, task, rank, gated=True)

    def vanishes(self, uid: str) -> None:
        """A pod is gone."""
        self.state.on_pod(self.state.pod_objects[uid], None)

    def member(self, key: str, task: str, rank: int, **more: Any) -> None:
        """The newest pod of a slot, as it is now."""
        self.pod(key, task, rank, self.made[key][task], **more, **self.pods[key, task, rank])

    def ends(self, key: str) -> None:  # type: ignore[override]
        """All of a gang goes."""
        for slot in [slot for slot in self.pods if slot[0] == key]:
            self.vanishes(self.pods.pop(slot)["uid"])
        self.state.on_pod_group(self.state.groups[key], None)
        if key in self.state.placements:
            self.state.on_placement(self.state.placements[key], None)
        del self.made[key]

    def dies(self, index: int) -> None:
        """A node goes with its pods, or comes back."""
        column = self.state.nodes.index.get(f"node-{index}")
        if column is None:
            self.stands_up(index)
            return
        self.state.on_node(self.state.nodes.nodes[column], None)
        for slot, pod in [*self.pods.items()]:
            if self.state.pods[pod["uid"]].node == f"node-{index}":
                self.renew(*slot)

    def happens(self) -> None:
        """Something, and time passes."""
        for _ in range(self.chance.choice([1, 1, 2, 3]) if len(self.made) < 14 else 0):
            self.comes()
        if self.made and self.chance.random() < 0.35:
            self.ends(self.chance.choice([*self.made]))
        index = self.chance.randrange(self.size)
        if self.chance.random() < 0.12:
            self.dies(index)
        elif self.chance.random() < 0.12 and f"node-{index}" in self.state.nodes.index:
            wrong = self.chance.choice(({}, {}, {"Ready": "Unknown"}, {"SysLogsXIDError": "True"}))
            self.stands_up(index, conditions=wrong, since=self.now, unschedulable=self.chance.random() < 0.2)
        self.now += self.chance.choice([1, 1, 10, 70, 700])

    def lives(self) -> Iterator[str]:
        """The decisions of each cycle."""
        for cycle in range(self.cycles):
            self.happens()
            session = self.session(*self.parts)
            yield from (f"{cycle} {words}" for words in [*said(session), *self.waits(session), scores(session)])
            self.carries_out(session)

    def waits(self, session: Session) -> Iterator[str]:
        """Gangs that begin to wait, or for another kind of reason."""
        known, self.reasons = (
            self.reasons,
            {each.gang.key: each.reason for each in of(session, decisions.Unschedulable)},
        )
        new = sorted(self.reasons.items() - known.items())
        if new:
            yield "wait " + " ".join(f"{key.removeprefix('ns/')}:{reason}" for key, reason in new)

    def carries_out(self, session: Session) -> None:
        """All that was decided is done at once, and members are bound where their gang is placed."""
        self.close(session)
        for enqueue in of(session, decisions.AdmitGang):
            self.change(self.state.groups[enqueue.gang.key], status={"phase": "Inqueue"})
        for place in of(session, decisions.Place):
            self.place(place)
        self.keep_spares(session)
        self.write_reservations(session)
        self.avoid(session)
        self.room_is_there(session)
        gone = {each.pod.uid for each in of(session, decisions.Evict)}
        gone |= {pod.uid for room in of(session, decisions.MakeRoom) for _, pod in room.victims}
        gone |= {pod.uid for repair in of(session, decisions.EvictForFaults) for pod in repair.pods}
        self.go(gone)
        self.binds()

    def go(self, gone: set[str]) -> None:
        """Pods are evicted, and their owners make others."""
        for slot, pod in [*self.pods.items()]:
            if pod["uid"] in gone:
                self.renew(*slot)

    def binds(self) -> None:
        """Pods run on the nodes of their placements, unless others have to go first."""
        for key, placement in [*self.state.placements.items()]:
            if key not in self.made or placement.spec.victims or placement.status.phase != "Planned":
                continue
            for slot, node in slots_of(placement):
                pod = self.pods.get((key, slot.pod_set, slot.rank))
                if pod and not self.state.pods[pod["uid"]].node and node in self.state.nodes.index:
                    more = {"epoch": placement.spec.epoch, "since": self.now, "bound": self.now}
                    self.member(key, slot.pod_set, slot.rank, node=node, pin=node, phase="Running", **more)
            self.change(self.state.groups[key], status={"phase": "Running"})


def scores(session: Session) -> str:
    """A hash of how good each node is for the pods of each gang."""
    classes = [pod_set.cls for gang in session.snapshot.gangs for pod_set in gang.pod_sets if pod_set.cls]
    found = [np.round(np.atleast_1d(session.scores(cls)), 3) + 0.0 for cls in classes]
    return f"scores {crc32(b''.join(each.tobytes() for each in found)):08x}"


def said(session: Session) -> Iterator[str]:
    """The decisions of a cycle with all that they say; of sentences, the numbers."""
    for each in session.decisions:
        if isinstance(each, decisions.Unschedulable):
            continue
        words = (text_of(getattr(each, field.name)) for field in fields(each))
        yield " ".join([type(each).__name__, *filter(None, words)])
    told = [text_of(each.why) for each in of(session, decisions.Unschedulable)]
    yield f"sentences {crc32(' '.join(told).encode()):08x}"


def text_of(value: Any) -> str:
    """A part of a decision as a word."""
    match value:
        case GangView() | PodRecord():
            word = value.key.removeprefix("ns/")
        case Reason():
            word = "-".join([value.code, *re.findall(r"\d+", str(value))])
        case Mapping():
            word = text_of(sorted(value.items(), key=str))
        case frozenset():
            word = text_of(sorted(map(text_of, value)))
        case list() | tuple():
            word = ",".join(map(text_of, value))
        case msgspec.Struct():
            word = "*".join(map(text_of, msgspec.structs.astuple(value)))
        case str() if " " in value:
            word = "-".join(re.findall(r"\d+", value))
        case _:
            word = "" if value is None else str(value)
    return word
