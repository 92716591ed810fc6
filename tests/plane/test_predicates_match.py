"""Muster's predicates accept exactly the nodes where the real kube-scheduler would bind."""

import random
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from native_gates import NATIVE_KINDS
from predicates_world import TRIAL, Generator, Object, Oracle, judged, trial_scheduler

from extender.planner.framework.inputs import CycleInputs
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import take_snapshot
from extender.planner.plugins.predicates import Predicates
from extender.planner.state.feed import FEED
from extender.planner.state.state import PlannerState
from muster.api.base import Resource
from muster.api.kubernetes.core import NAMESPACES, NODES, PODS, Pod
from muster.api.kubernetes.storage import CLAIMS, STORAGE_CLASSES, VOLUMES
from muster.api.names import SCHEDULER
from muster.kube.client import Client
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.slow]
WaitFor = Callable[..., Any]

NODE_COUNT = 12
RUNNING = 30
TRIALS = 60


def make(client: Client, resource: Resource[Any], *objects: Object) -> list[Any]:
    """Create the objects, several at a time; they come back as the API server completed them."""
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(lambda one: client.create(resource, one, one["metadata"].get("namespace")), objects))


def furnish(client: Client) -> None:
    """What all worlds share."""
    make(
        client,
        STORAGE_CLASSES,
        {"metadata": {"name": "fast"}, "provisioner": "example.com/disk", "volumeBindingMode": "Immediate"},
        {"metadata": {"name": "lazy"}, "provisioner": "example.com/disk", "volumeBindingMode": "WaitForFirstConsumer"},
    )
    client.request(
        "POST",
        "/apis/node.k8s.io/v1/runtimeclasses",
        body=b'{"metadata":{"name":"heavy"},"handler":"heavy","overhead":{"podFixed":{"cpu":"500m","memory":"64Mi"}}}',
        content_type="application/json",
    )


def populate(client: Client, generator: Generator, chance: random.Random) -> None:
    """Nodes, volumes, pods that run, a few that end or are being deleted, and the trial pods."""
    make(client, NAMESPACES, *generator.namespace_objects())
    nodes = [node.metadata.name for node in make(client, NODES, *(generator.node(n) for n in range(NODE_COUNT)))]
    volumes, claims = generator.storage()
    make(client, VOLUMES, *volumes)
    make(client, CLAIMS, *claims)
    running = [generator.pod(f"running-{n}") for n in range(RUNNING)]
    for pod in running:
        pod["spec"] |= {"nodeName": chance.choice(nodes), "schedulerName": "none"}
    for pod in make(client, PODS, *running):
        meta = pod.metadata
        if chance.random() < 0.1:
            client.delete(PODS, meta.name, meta.namespace)  # nobody confirms it, so it stays
        elif chance.random() < 0.1:
            client.merge_patch(
                PODS, meta.name, {"status": {"phase": "Succeeded"}}, meta.namespace, subresource="status"
            )
    trials = [generator.pod(f"trial-{n}") for n in range(TRIALS)]
    for pod in trials:
        pod["spec"] |= {"schedulerName": TRIAL}
    make(client, PODS, *trials)


def clear(client: Client) -> None:
    """Remove the world's nodes and pods; its volumes matter to nobody else."""
    with ThreadPoolExecutor(8) as pool:
        for node in client.list(NODES):
            pool.submit(client.delete, NODES, node.metadata.name)
        for pod in client.list(PODS):
            pool.submit(client.delete, PODS, pod.metadata.name, pod.metadata.namespace, grace_period_s=0)


def judged_trials(client: Client) -> list[Pod]:
    """The trial pods, once kube-scheduler has answered for all of them."""
    found = [pod for pod in client.list(PODS) if pod.spec.scheduler_name == TRIAL]
    return found if all(map(judged, found)) else []


def ours(state: PlannerState, pods: list[Pod]) -> tuple[dict[str, set[str]], dict[str, dict[str, str]]]:
    """Per pod UID the nodes that our predicates accept, and why they refuse the others."""
    session = Session(CycleInputs(snapshot=take_snapshot(state), now=0.0))
    Predicates({}).on_session_open(session)
    accepted: dict[str, set[str]] = {}
    refused: dict[str, dict[str, str]] = {}
    for pod in pods:
        cls = state.pods[pod.metadata.uid].cls
        codes, room = session.codes(cls), session.room(cls)
        scarce = session.scarce(cls)
        columns = {session.snapshot.name(int(column)): int(column) for column in session.snapshot.order}
        accepted[pod.metadata.uid] = {name for name, at in columns.items() if not codes[at] and room[at] > 0}
        refused[pod.metadata.uid] = {
            name: str(session.causes.of[codes[at] or scarce[at]]) for name, at in columns.items()
        }
    return accepted, refused


def run_worlds(plane: Plane, wait_for: WaitFor, folder: Path, seed: int, worlds: int) -> None:
    """So many random worlds, each judged by both."""
    sys.stderr.write(f"\npredicates seed {seed}\n")
    client = plane.client()
    furnish(client)
    compared = fitting = 0
    for number in range(worlds):
        chance = random.Random(f"{seed}/{number}")  # noqa: S311 - the seed is printed so that a run can be repeated
        populate(client, Generator(chance, number), chance)
        with Oracle() as oracle, trial_scheduler(plane, oracle, folder):
            pods = wait_for(partial(judged_trials, client), 60, "kube-scheduler to judge every trial pod")
        state = PlannerState()
        for fed in FEED:
            for one in [] if fed.optional or fed.resource in NATIVE_KINDS else client.list(fed.resource):
                if fed.resource is PODS and one.spec.scheduler_name == TRIAL:  # of others' pods fewer terms count
                    one.spec.scheduler_name = SCHEDULER
                fed.apply(state, None, one)
        accepted, refused = ours(state, pods)
        for pod in pods:
            theirs = oracle.left.get(pod.metadata.uid, set())
            mine = accepted[pod.metadata.uid]
            assert mine == theirs, (
                f"seed {seed}, world {number}, {pod.metadata.key}: only we accept {sorted(mine - theirs)}, only "
                f"kube-scheduler accepts { ({name: refused[pod.metadata.uid][name] for name in theirs - mine}) }; "
                f"it says {[condition.message for condition in pod.status.conditions]}; {pod.spec}"
            )
            compared += len(refused[pod.metadata.uid])
            fitting += len(theirs)
        clear(client)
    sys.stderr.write(f"{compared} pairs of pod and node agree, {fitting} of them fit\n")


@pytest.fixture
def trial_plane(fresh_plane: Callable[..., Plane]) -> Plane:
    """Only etcd and an API server: nobody else schedules, and nodes are what the test says they are."""
    return fresh_plane(("etcd", "kube-apiserver"))


def test_we_accept_what_kube_scheduler_accepts(
    trial_plane: Plane, wait_for: WaitFor, tmp_path: Path, seed: int
) -> None:
    """In two random clusters."""
    run_worlds(trial_plane, wait_for, tmp_path, seed, worlds=2)


@pytest.mark.storm
def test_our_predicates_accept_the_nodes_that_kube_scheduler_accepts_in_many_clusters(
    trial_plane: Plane, wait_for: WaitFor, tmp_path: Path, seed: int
) -> None:
    """The same for longer."""
    run_worlds(trial_plane, wait_for, tmp_path, seed, worlds=40)
