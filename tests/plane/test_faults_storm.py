"""Faults at random: nodes turn suspect, do not answer, go and come, while gangs keep spares, borrow them or neither."""

import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gang_jobs import attempt, metric
from leases import start_at_once
from recordings import Recording, held
from test_storm import Storm, run_storm
from watching import Watching

from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.core import NODES, PODS, Pod
from muster.api.kubernetes.meta import format_time, readable_time
from muster.api.muster.gang import epoch_of
from muster.api.muster.noderuns import slots_of
from muster.api.muster.placement import PLACEMENTS, Placement, Slot
from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from muster.kube.reflector import Reflector
from muster.workloads.table import gang_of, slot_of
from musterctl.plane.plane import Plane
from musterctl.plane.state import CONTROLLER

pytestmark = [pytest.mark.plane, pytest.mark.long]
JSON = dict[str, Any]
RAW_NODES: Resource[JSON] = Resource("", "v1", "nodes", "Node", JSON, namespaced=False)
FAULT = "SysLogsXIDError"
NOT_READY = "kwok.muster.dev/not-ready"
AVOIDED_S = 20
"""For so long a gang leaves a node out on which a member failed, the first time."""
WaitFor = Callable[..., Any]


class FaultStorm(Storm):
    """Nodes have faults and members fail besides; a third of the gangs keeps spares, a third borrows them."""

    half_placed_limit_s = 15.0  # whatever is killed: a member that is lost is bound again in seconds
    kills = ("extender", "muster-scheduler", "controller", "webhook")

    def __init__(self, plane: Plane, namespace: str, chance: random.Random) -> None:
        super().__init__(plane, namespace, chance)
        self.lenders = 0

    def asking(self, manifest: JSON, size: int) -> JSON:
        """By lot; each restarts when a member fails, and leaves the node out where that was."""
        said = self.chance.choice([{names.SPARES: "1"}, {names.BORROWS: "true"}, {}])
        self.lenders += names.SPARES in said
        assert size
        spec = {**manifest["spec"], "policies": [{"event": "PodFailed", "action": "RestartJob"}], "maxRetry": 100}
        said = {**said, names.AVOID_FAILED_NODE: f"{AVOIDED_S}s"}
        return {**manifest, "spec": spec, "metadata": {**manifest["metadata"], "annotations": said}}

    def start_again(self, part: str) -> None:
        """A controller leads at once: it makes the pods of lost members, and a dead one's Lease lasts for 15 s."""
        if part == CONTROLLER:
            start_at_once(self.plane, part, names.CONTROLLER_LEASE)
        else:
            super().start_again(part)

    def submit(self, number: int) -> None:
        """One more gang; and at times a member of another one fails."""
        super().submit(number)
        pods = self.client.list(PODS, self.namespace) if self.chance.random() < 0.4 else []
        running = sorted(pod.metadata.name for pod in pods if gang_of(pod) and pod.status.phase == "Running")
        if running:
            name, failed = self.chance.choice(running), {"status": {"phase": "Failed"}}
            attempt(lambda: self.client.merge_patch(PODS, name, failed, self.namespace, subresource="status"))
            self.restarted.add(name.split("-")[0])

    def cordon(self, *, on: bool) -> None:
        """A node of the second half is cordoned, suspect, or does not answer; or all are healthy again."""
        half = self.node_names[len(self.node_names) // 2 :]
        super().cordon(on=on and self.chance.random() < 0.3)
        for name in [self.chance.choice(half)] if on else half:
            suspect = on and self.chance.random() < 0.6
            attempt(lambda name=name, suspect=suspect: says(self.client, name, suspect=suspect))
            note = {NOT_READY: "true" if on and not suspect else None}
            attempt(
                lambda name=name, note=note: self.client.merge_patch(NODES, name, {"metadata": {"annotations": note}})
            )


def says(client: Client, node: str, *, suspect: bool) -> None:
    """A node reports a fault, or that it has none, as node-problem-detector would."""
    known = client.get(RAW_NODES, node)["status"].get("conditions", [])
    now, status = format_time(time.time()), "True" if suspect else "False"
    mine = {"type": FAULT, "status": status, "reason": "Test", "lastTransitionTime": now}
    conditions = [*(each for each in known if each["type"] != FAULT), mine]
    client.merge_patch(NODES, node, {"status": {"conditions": conditions}}, subresource="status")


class Marks(Watching):
    """Which members ran on spares of others by their placement, and which pods said so."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.lent: dict[tuple[str, int], dict[str, set[str]]] = {}
        """Gang and epoch → when each such placement was made, and the nodes on which it runs on spares of others."""
        self.bound: dict[str, tuple[tuple[str, int, str], str, bool]] = {}
        """UID of a pod → gang, epoch and node, when it was bound, and whether it is marked."""
        self.avoided: dict[tuple[str, str], float] = {}
        """Gang and node on which a member of it failed → until when it is left out, in seconds since the epoch."""
        self.places: dict[tuple[str, Slot], str] = {}
        """Gang and slot → the node of its pod, until the pod is gone."""
        self.used_again: list[str] = []
        self._lock = threading.Lock()
        pods, placements = (
            Reflector(client, PODS, namespace=namespace),
            Reflector(client, PLACEMENTS, namespace=namespace),
        )
        pods.add_handler(self._pod)
        placements.add_handler(self._placement)
        super().__init__(pods, placements)

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
        self._place(new or old, there=new is not None)
        if new is None or not new.spec.node_name:
            return
        gang, epoch = gang_of(new), epoch_of(new.metadata)
        if gang and epoch is not None:
            marked = new.metadata.annotations.get(names.RUNS_ON_SPARE) == "true"
            with self._lock:
                scheduled = new.status.condition("PodScheduled")
                bound = scheduled.last_transition_time if scheduled else None
                self.bound[new.metadata.uid] = (gang, epoch, new.spec.node_name), bound or "", marked

    def _place(self, pod: Pod | None, *, there: bool) -> None:
        gang, slot = (gang_of(pod), slot_of(pod.metadata)) if pod else (None, None)
        if pod is None or gang is None or slot is None or not pod.spec.node_name:
            return
        with self._lock:
            if there:
                self.places[gang.split("-")[0], slot] = pod.spec.node_name
            else:
                self.places.pop((gang.split("-")[0], slot), None)

    def _placement(self, old: Placement | None, new: Placement | None) -> None:
        if new is None:
            return
        gang = new.metadata.name.split("-")[0]  # the PodGroup of a Job that restarts may be another one
        with self._lock:
            made = new.metadata.creation_timestamp or ""
            of_gang = self.lent.setdefault((new.metadata.name, new.spec.epoch), {})
            of_gang.setdefault(made, set()).update(loan.node for loan in new.spec.borrows)
            known = dict(slots_of(old)) if old is not None else {}
            # A member that is still there keeps its node in a new placement.
            kept = {(slot, node) for (of, slot), node in self.places.items() if of == gang} | known.items()
            for node in {node for _, node in {*slots_of(new)} - kept}:
                left_s = self.avoided.get((gang, node), 0.0) - time.time()
                if left_s > 0:
                    self.used_again.append(
                        f"{new.metadata.name} has {node}, which it leaves out for {left_s:.1f} s more"
                    )
            for each in new.status.avoided:
                if each.failures:
                    self.avoided[gang, each.node] = readable_time(each.until) or 0.0

    def unmarked(self) -> list[tuple[str, int, str]]:
        """Members on spares of others that did not say so.

        A Job that restarts gets a PodGroup of the same name, and epochs from 1 on: a pod was bound by the latest
        placement before that.
        """
        with self._lock:
            return [
                place for place, bound, marked in self.bound.values() if not marked and self._on_spares(place, bound)
            ]

    def _on_spares(self, place: tuple[str, int, str], bound: str) -> bool:
        gang, epoch, node = place
        made = {at: nodes for at, nodes in self.lent.get((gang, epoch), {}).items() if at <= bound}
        return bool(made) and node in made[max(made)]


def run_faults(plane: Plane, namespace: str, wait_for: WaitFor, *, gangs: int, kills: int, seed: int) -> None:
    """The storm, and what must hold of spares besides."""
    client = plane.client()
    with Marks(client, namespace) as marks:
        run_storm(plane, namespace, gangs=gangs, kills=kills, seed=seed, of=FaultStorm)
        assert not marks.unmarked()
        assert not marks.used_again
        sys.stderr.write(f"\n{len(marks.avoided)} nodes were left out by gangs of which a member failed there\n")
    for each in client.list(JOBS, namespace):
        client.delete(JOBS, each.metadata.name, namespace)
    kept = 'muster_queue_spare_seats{queue="default",what="kept"}'
    used = 'muster_queue_resources{queue="default",resource="nvidia.com/gpu",what="allocated"}'
    wait_for(lambda: metric(plane, "extender", kept) == metric(plane, "extender", used) == 0, 60, "all to be back")


@pytest.fixture(scope="module")
def plane(module_plane: Callable[..., Plane]) -> Plane:
    """A plane of this module's own, which tells all that happens on it."""
    return module_plane(traced=True)


def test_a_short_storm_of_faults(plane: Plane, namespace: str, wait_for: WaitFor, tmp_path: Path, seed: int) -> None:
    """Twenty-four gangs, two kills; the model takes each step, repairs among them."""
    with Recording(plane, tmp_path) as recording:
        run_faults(plane, namespace, wait_for, gangs=24, kills=2, seed=seed)
    held(recording, tmp_path, "faults")


@pytest.mark.storm
@pytest.mark.timeout(3600)
def test_a_long_storm_of_faults(fresh_plane: Callable[..., Plane], wait_for: WaitFor, seed: int) -> None:
    """Two hundred gangs, twenty kills."""
    run_faults(fresh_plane(nodes=16), "default", wait_for, gangs=200, kills=20, seed=seed)
