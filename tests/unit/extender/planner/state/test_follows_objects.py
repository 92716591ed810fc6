"""The state that events keep is the one that the objects alone would give, and a rollback leaves no trace."""

from copy import deepcopy
from dataclasses import fields
from typing import Any

import msgspec
import numpy as np
from extender_world import World
from hypothesis import example, given, settings
from hypothesis import strategies as st

from extender.planner.framework.inputs import CycleInputs
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import Snapshot, take_snapshot
from extender.planner.framework.statement import Statement
from extender.planner.plugins.predicates import Predicates
from muster.api.kubernetes.core import Namespace, Node, Pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
COPIED = (
    "order", "changed", "allocatable", "free", "axis", "index", "placed", "pod_counts", "exclusive_claims", "queue_use",
    "queue_asked", "gang_use", "gpu_use", "shared_claims", "claim_users", "claim_queues", "faults", "failed",
)  # fmt: skip
"""Fields of a snapshot that can be compared with a copy."""
LICENCE = "example.com/licence"
APPS, NODES, NAMESPACES = ("web", "db"), ("n0", "n1", "n2"), ("ns", "other")
app = st.sampled_from(APPS)
selector = st.builds(lambda name: {"matchLabels": {"app": name}}, app)
term = st.fixed_dictionaries(
    {"topologyKey": st.sampled_from(("zone", "host")), "labelSelector": selector},
    optional={"namespaceSelector": st.just({"matchLabels": {"team": "red"}})},
)
spread = st.fixed_dictionaries(
    {"maxSkew": st.just(1), "topologyKey": st.just("zone"), "whenUnsatisfiable": st.just("DoNotSchedule"),
     "labelSelector": selector}
)  # fmt: skip
demands = st.fixed_dictionaries({}, optional={
    "affinity": st.builds(
        lambda kind, one: {kind: {REQUIRED: [one]}}, st.sampled_from(("podAffinity", "podAntiAffinity")), term
    ),
    "topologySpreadConstraints": spread.map(lambda one: [one]),
    "volumes": st.just([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]),
    "schedulerName": st.just("muster"),
})  # fmt: skip
pod_event = st.tuples(
    st.just("pod"), st.integers(0, 5), st.sampled_from(NAMESPACES), app, st.sampled_from(("", *NODES)),
    st.sampled_from(("Pending", "Running", "Succeeded")), st.booleans(), st.booleans(), demands,
)  # fmt: skip
LIMITS: tuple[dict[str, Any], ...] = ({}, {"capability": {"cpu": 9}}, {"max-per-user": "cpu=9"})
event = st.one_of(
    pod_event,
    pod_event,
    st.tuples(st.just("gone"), st.integers(0, 5)),
    st.tuples(st.just("node"), st.sampled_from(NODES), st.sampled_from(("a", "b")), st.integers(0, 2)),
    st.tuples(st.just("lost"), st.sampled_from(NODES)),
    st.tuples(st.just("team"), st.sampled_from(("red", "blue"))),
    st.tuples(st.just("gang"), st.integers(0, 2), demands),
    st.tuples(st.just("queue"), st.sampled_from(("default", "root")), st.sampled_from(LIMITS)),
    st.tuples(st.just("plan")),
)


def tell(world: World, what: str, *details: Any) -> None:
    """Let one event happen."""
    state = world.state
    if what == "pod":
        number, namespace, label, node, phase, leaving, ports, spec = details
        gone = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if leaving else {}
        known = state.pods.get(f"p{number}")
        node = node or (known.node if known else "")  # the API server has nobody take a pod from its node
        named = {"uid": f"p{number}", "namespace": namespace, "labels": {"app": label}}
        meta = msgspec.to_builtins(world.meta(f"p{number}", **named))
        container = {"name": "main", "resources": {"requests": {"cpu": 1}}}
        if ports:
            container["resources"]["requests"][LICENCE] = 1  # type: ignore[index]
            container["ports"] = [{"containerPort": 80, "hostPort": 80}]
        body = {"metadata": meta | gone, "spec": {"containers": [container], "nodeName": node, **spec}}
        pod = msgspec.convert(body, Pod)
        pod.status.phase = phase
        state.on_pod(None, pod)
    elif what == "gone":
        pod = state.pod_objects.get(f"p{details[0]}")
        if pod is not None:
            state.on_pod(pod, None)
    elif what == "node":
        name, zone, licences = details
        node = world.node(name, labels={"zone": zone, "host": name})
        offered = {"cpu": 32, "pods": 110, **({LICENCE: licences} if licences else {}), "memory": "256Gi"}
        world.change(node, status={"allocatable": offered})
    elif what == "lost":
        column = state.nodes.index.get(details[0])
        state.on_node(state.nodes.nodes[column] if column is not None else Node(metadata=world.meta(details[0])), None)
    elif what == "team":
        state.on_namespace(None, Namespace(metadata=world.meta("other", namespace="", labels={"team": details[0]})))
    elif what == "gang":
        world.gang(f"g{details[0]}", {"worker": (2, {"cpu": 1})}, spec=details[1])
    elif what == "queue":
        world.queue(details[0], **details[1])
    else:
        world.plan()


@settings(max_examples=settings().max_examples * 2)
@given(events=st.lists(event, max_size=30))
@example(events=[
    ("queue", "default", LIMITS[2]),
    *(("pod", 0, "ns", "web", "n0", "Running", leaves, False, {"schedulerName": "muster"}) for leaves in (False, True)),
    ("gone", 0),
])  # fmt: skip
def test_after_any_events_the_state_is_what_its_objects_say(events: list[tuple[Any, ...]]) -> None:
    """Arrays, entries of the ledger, limits of queues, ports, claims, and the pods that each demand counts."""
    world = World()
    for one in events:
        tell(world, *one)
        assert world.state.differences() == []


@settings(max_examples=settings().max_examples * 2)
@given(events=st.lists(event, max_size=30), steps=st.lists(st.integers(0, 3), min_size=30, max_size=30))
def test_comparisons_in_steps_end_as_those_at_once(events: list[tuple[Any, ...]], steps: list[int]) -> None:
    """Whatever happens while some pods have been compared with new demands, and others not."""
    world = World(checked=False, looks=1)
    for one, count in zip(events, steps, strict=False):
        tell(world, *one)
        for _ in range(count):
            world.state.compare(1)
    world.state.settle()
    assert world.state.differences() == []
    assert all(view.compared for view in world.state.gangs())


@given(before=st.lists(event, max_size=15), after=st.lists(event, min_size=5, max_size=15))
def test_a_snapshot_is_not_changed_by_later_events(before: list[tuple[Any, ...]], after: list[tuple[Any, ...]]) -> None:
    """Its arrays and tables are copies, or are copied once the state changes them."""
    world = World(checked=False)
    for one in before:
        tell(world, *one)
    snapshot = take_snapshot(world.state)
    pods = {gang.key: [pod.uid for pod in gang.pods] for gang in snapshot.gangs}
    saved = {each.name: deepcopy(getattr(snapshot, each.name)) for each in fields(Snapshot) if each.name in COPIED}
    devices = [getattr(snapshot.devices, each.name).copy() for each in fields(snapshot.devices)]
    for one in after:
        tell(world, *one)
    for name, value in saved.items():
        np.testing.assert_equal(getattr(snapshot, name), value, name)
    np.testing.assert_equal([getattr(snapshot.devices, each.name) for each in fields(snapshot.devices)], devices)
    assert {gang.key: [pod.uid for pod in gang.pods] for gang in snapshot.gangs} == pods


@given(events=st.lists(event, max_size=15), places=st.lists(st.integers(0, 2), max_size=8))
def test_what_a_statement_takes_back_changes_no_answer(events: list[tuple[Any, ...]], places: list[int]) -> None:
    """Every class is refused by the same nodes for the same reasons as before."""
    world = World()
    for node in NODES:
        tell(world, "node", node, "a", 1)
    apart = {"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone", "labelSelector": {}}]}}
    tell(world, "gang", 0, {"affinity": apart})
    for one in events:
        tell(world, *one)
    session = Session(CycleInputs(snapshot=take_snapshot(world.state), now=world.now))
    Predicates({}).on_session_open(session)
    classes = [pod_set.cls for gang in session.snapshot.gangs for pod_set in gang.pod_sets if pod_set.cls]
    before = [session.codes(cls).copy() for cls in classes]
    statement = Statement(session)
    gang = session.snapshot.gangs[0]
    for column in places:
        for cls in classes:
            statement.allocate(gang, "worker", [0, 1], column, cls)
    statement.discard()
    assert all(np.array_equal(codes, session.codes(cls)) for codes, cls in zip(before, classes, strict=True))


def test_a_difference_is_named() -> None:
    """With what is kept and what is right: the oracle can fail."""
    world = World()
    tell(world, "node", "n0", "a", 1)
    leaving, ports = False, True
    tell(world, "pod", 0, "ns", "web", "n0", "Running", leaving, ports, {})
    world.state.nodes.used[world.state.nodes.axis["cpu"], 0] += 5
    assert world.state.differences() == ["used ('n0', 'cpu'): 1005 is kept, 1000 is right"]
