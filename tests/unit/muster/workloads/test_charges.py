"""Whom a pod is charged to: planner, recorder and controller say the same of every pod on a node."""

from collections import Counter
from typing import Any

import pytest
from builders import pod as a_pod
from extender_world import World
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import convert, to_builtins
from msgspec.structs import replace

from controller.queues.rules import RequestsByQueue
from extender.planner.queueuse import Use
from history import gangruns, members
from history.entries import Entries
from history.integral import integrate
from history.pods import ObservationTime, RecordedPod
from history.tally import spans_of
from muster.api import names
from muster.api.kubernetes.core import Pod, PodStatus
from muster.api.kubernetes.meta import format_time
from muster.api.volcano.scheduling import PodGroup
from muster.kube.offers import NodeOffers
from muster.resources.vector import add
from muster.workloads.charges import charged_queue, named_queue

LABELS = {names.QUEUE: "research", names.QUEUE_NAME: "volcano", names.MANAGED: "false", names.GANG: "gang"}
MARKERS = dict.fromkeys(names.MARKERS, "1")


def pod(scheduler: str, labels: dict[str, str], limits: dict[str, str], **more: Any) -> Pod:
    """A pod on a node."""
    made = a_pod("lone", uid="uid-lone", node="node-0", labels=labels, **more)
    made.spec.scheduler_name = scheduler
    made.spec.containers[0].resources.limits |= limits
    return made


@given(
    st.sampled_from(["muster", "volcano", "default-scheduler", "", "muster-b"]),
    st.sets(st.sampled_from([*LABELS])),
    st.booleans(),
    st.booleans(),
)
def test_all_charge_a_pod_to_the_same_queue(scheduler: str, keys: set[str], marked: bool, noted: bool) -> None:  # noqa: FBT001
    """Or to none, whatever it is labelled with: pods that another scheduler places are charged to nobody."""
    annotations = {names.VOLCANO_QUEUE: "noted"} if noted else {}
    one = pod(scheduler, {key: LABELS[key] for key in keys}, MARKERS if marked else {}, annotations=annotations)
    queue = charged_queue(one)
    world, entries = World().nodes(1), Entries()
    if scheduler != "muster-b":  # the planner of another pool
        world.state.on_pod(None, one)
        assert (world.state.ledger.entries["uid-lone"].queue or None) == queue
    recorded = convert(to_builtins(one), RecordedPod)
    recorded.status.phase = "Running"
    members.pod(entries, recorded, ObservationTime(1_800_000_000_000, live=True))
    assert [each.queue for each in entries.holdings.values()] == ([] if queue is None else [queue])
    requests = RequestsByQueue(lambda _: None)
    requests.pod_seen(one, gone=False)
    assert [*requests._queues] == ([] if queue is None else [queue])


@pytest.mark.parametrize("gone", [names.MANAGED, names.QUEUE])
def test_a_pod_of_another_scheduler_books_nothing(gone: str) -> None:
    """A label of a queue is a wish, which nobody has checked."""
    labels = {names.QUEUE: "theirs", names.MANAGED: "false"}
    del labels[gone]
    assert charged_queue(pod("default-scheduler", labels, {"nvidia.com/gpu": "100000000"})) is None


BEGIN, GPU = 1_800_000_000, "nvidia.com/gpu"
GANGS, QUEUES, PODS = ("", "one", "two"), ("a", "b", "default"), range(3)
NODES = ("node-0", "node-1")
SCHEDULERS = ("muster", "muster", "default-scheduler")


class Readers:
    """Planner, recorder and controller of one cluster, in which something happens each second."""

    def __init__(self) -> None:
        self.world, self.pods, self.now = World().nodes(2), dict[int, Pod](), BEGIN
        offers = NodeOffers(None)  # type: ignore[arg-type]  # never started
        self.nodes, self.entries = offers, Entries(offers.of)
        self.requests = RequestsByQueue(self._group, offers.of)
        self.moved = set[str]()
        self.unsure = False
        """A gang was deleted that had moved with pods on nodes, which only name its earlier queue."""
        for name in NODES:
            self.node_seen(name, 8)
        self.charged = Counter[str]()
        """GPU milliseconds, in thousandths, by the planner's account."""
        for gang, queue in zip(GANGS[1:], QUEUES, strict=False):
            self.group_seen(self.world.state.groups[self.world.pod_group(gang, queue=queue)])

    def _group(self, key: str) -> PodGroup | None:
        return self.world.state.groups.get(key)

    @property
    def moment(self) -> ObservationTime:
        """Now."""
        return ObservationTime(self.now * 1000, live=True)

    def group_seen(self, group: PodGroup) -> None:
        """Let recorder and controller see a PodGroup as it is now."""
        gangruns.group(self.entries, group, self.moment)
        self.requests.moved(group.metadata.key, group.spec.queue)

    def node_seen(self, name: str, gpus: int) -> None:
        """Let all see a node with so many GPUs: its device plugin may restart."""
        table = self.world.state.nodes
        known = table.nodes[table.index[name]]
        self.nodes.node_seen(known, self.world.node(name, gpus=gpus))
        self.requests.node_seen(name)

    def pod_seen(self, number: int, new: Pod | None) -> None:
        """Let all see a pod; None: it is gone."""
        known = self.pods.pop(number, None)
        if new is not None:
            version = self.world.meta("any").resource_version
            self.pods[number] = new = replace(new, metadata=replace(new.metadata, resource_version=version))
        self.world.state.on_pod(known, new)
        if (last := new or known) is not None:
            self.requests.pod_seen(last, gone=new is None)
            recorded = convert(to_builtins(last), RecordedPod)
            if new is None:
                members.pod_gone(self.entries, last.metadata.uid, self.moment, recorded)
            else:
                members.pod(self.entries, recorded, self.moment)

    def happens(self, what: str, number: int, choice: int) -> None:
        """Make a change that RBAC, admission and policies allow a tenant; a second passes."""
        known, groups = self.pods.get(number), self.world.state.groups
        if what in {"start", "create"} and known is None:
            gang, queue, scheduler = (each[choice // 3**at % 3] for at, each in enumerate((GANGS, QUEUES, SCHEDULERS)))
            labels = {names.QUEUE: queue, names.MANAGED: "false"} | ({names.GANG: gang} if gang else {})
            new = a_pod(f"p{number}", uid=f"uid-{number}-{self.now}", labels=labels)
            new.spec.scheduler_name = scheduler
            new.spec.containers[0].resources.limits[GPU] = ("1", "8", "100000000")[choice % 3]
            self.pod_seen(number, new)
        if what in {"start", "bind"} and (known := self.pods.get(number)) is not None and not known.spec.node_name:
            gang = known.metadata.labels.get(names.GANG)
            if gang is None or f"ns/{gang}" in groups:
                told = {"type": "PodScheduled", "status": "True", "lastTransitionTime": format_time(self.now)}
                status = convert({"phase": "Running", "conditions": [told]}, PodStatus)
                spec = replace(known.spec, node_name=f"node-{choice % 2}")
                queue, metadata = groups[f"ns/{gang}"].spec.queue if gang else named_queue(known), known.metadata
                if queue != named_queue(known):  # as Bind does
                    noted = {**metadata.annotations, names.VOLCANO_QUEUE: queue}
                    metadata = replace(metadata, annotations=noted)
                self.pod_seen(number, replace(known, metadata=metadata, spec=spec, status=status))
        elif what == "label" and known is not None:
            kept = bool(known.spec.node_name)  # the policy muster-pods protects the charge of a bound pod
            label = {names.POD_INDEX: "19999"} if kept else {names.QUEUE: QUEUES[choice % 3]}
            labels = {**known.metadata.labels, **label, names.MANAGED: "true"}
            self.pod_seen(number, replace(known, metadata=replace(known.metadata, labels=labels)))
        elif what == "end" and known is not None and known.spec.node_name:
            self.pod_seen(number, replace(known, status=replace(known.status, phase="Succeeded")))
        elif what == "delete" and known is not None:
            self.pod_seen(number, None)
        else:
            self.changes(what, NODES[number % len(NODES)], f"ns/{GANGS[1 + choice % 2]}", choice % 3)
        self.agree()

    def changes(self, what: str, node: str, gang: str, choice: int) -> None:
        """Make a change of a gang or a node, or restart the planner."""
        group = self._group(gang)
        if what == "node":
            self.node_seen(node, (0, 4, 8)[choice])
        elif what == "restart" and not self.unsure:
            self.restart()
        elif what == "move" and group is not None:
            self.moved.add(gang)
            self.group_seen(self.world.change(group, spec={"queue": QUEUES[choice]}))
        elif what == "delete group" and group is not None:
            self.unsure |= gang in self.moved
            self.world.state.on_pod_group(group, None)
            gangruns.group_gone(self.entries, group.metadata.uid, self.moment)

    def restart(self) -> None:
        """Let a new planner read what exists, while all nodes are well."""
        for name in NODES:
            self.node_seen(name, 8)
        before, self.world = self.world, World().nodes(len(NODES))
        self.world._versions = before._versions
        for group in before.state.groups.values():
            self.world.state.on_pod_group(None, group)
        for pod in self.pods.values():
            self.world.state.on_pod(None, pod)

    def agree(self) -> None:
        """Compare the amounts that count now, and what has been held until the next second."""
        uses = self.world.state.ledger.queues.queues
        now = {queue: use.staying.get(GPU, 0) + use.leaving.get(GPU, 0) for queue, use in uses.items()}
        for queue in QUEUES:
            use = uses.get(queue, Use())
            assert self.requests.requests_in(queue) == add(use.staying, use.leaving)
        self.now += 1
        self.charged.update({queue: amount * 1000 for queue, amount in now.items()})
        spans = spans_of(self.entries.changes.holdings.values())
        held = integrate(spans, BEGIN * 1000, self.now * 1000)
        assert {queue: held[queue, GPU].held for queue in QUEUES} == {queue: self.charged[queue] for queue in QUEUES}


HAPPENS = [
    "start", "start", "start", "create", "bind", "label", "end", "delete", "move", "delete group", "node", "restart",
]  # fmt: skip


@settings(max_examples=60, deadline=None)
@example([("start", 0, 4), ("delete group", 0, 0), ("restart", 0, 0)])
@given(
    st.lists(st.tuples(st.sampled_from(HAPPENS), st.sampled_from(PODS), st.integers(0, 26)), min_size=12, max_size=40)
)
def test_usage_is_what_nodes_held_for_the_pods_that_the_planner_charged(steps: list[tuple[str, int, int]]) -> None:
    """To the second, by queue, for all that a tenant creates, labels, moves and deletes."""
    readers = Readers()
    for step in steps:
        readers.happens(*step)
