"""The demo of `muster demo --faults`: a gang with a spare loses a node, and a preemption waits for a checkpoint.

The demo's gangs fill a local control plane with eight nodes. The demo writes the node's fault like
node-problem-detector, and the checkpoint like a training program. Each step is a check: if the condition of a step is
not met in time, the demo ends.
"""

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import click

from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes import core, meta
from muster.api.muster.placement import PLACEMENTS, Placement
from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from muster.kube.errors import NotFound
from muster.resources.vector import GPU
from musterctl.output.terminal import Console

JSON = dict[str, Any]
T = TypeVar("T")
NAMESPACE = "default"
TIMEOUT_S = 60.0
_CLEAR_S = 120.0
POLL_S = 0.05
TRAIN, GUEST, BATCH, URGENT = "train", "guest", "batch", "urgent"
FAULT = "SysLogsXIDError"
"""A condition that makes a node suspect (docs/faults.md)."""
STEP = 1200
_RAW_NODES: Resource[JSON] = Resource("", "v1", "nodes", "Node", JSON, namespaced=False)
_PRIORITIES = {"demo-low": 1, "demo-high": 1000}


def clear(client: Client, others: Collection[str] = ()) -> None:
    """Remove the objects of an earlier demo and the Jobs with these names, and wait until their pods are gone."""
    names_cleared = {TRAIN, GUEST, BATCH, URGENT, *others}
    for job in client.list(JOBS, NAMESPACE):
        if job.metadata.name in names_cleared:
            client.delete(JOBS, job.metadata.name, NAMESPACE, propagation="Foreground")
    for name in _PRIORITIES:
        with suppress(NotFound):
            client.delete(core.PRIORITY_CLASSES, name)
    for node in client.list(_RAW_NODES):
        if any(each["type"] == FAULT for each in node["status"].get("conditions", ())):
            _report_node(client, node["metadata"]["name"], "False")
    deadline = time.monotonic() + _CLEAR_S
    while any(
        owner.name in names_cleared
        for pod in client.list(core.PODS, NAMESPACE)
        for owner in pod.metadata.owner_references
    ):
        if time.monotonic() > deadline:
            raise click.ClickException("pods of an earlier demo do not terminate; try `muster down --name demo`")
        time.sleep(POLL_S)


def show(client: Client, console: Console) -> bool:
    """Run the demo; return True if all steps succeeded."""
    demo = _FaultDemo(client, console)
    for name, value in _PRIORITIES.items():
        body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        client.apply(core.PRIORITY_CLASSES, body | {"value": value})
    try:
        _loses_a_node(demo)
        _asks_for_a_checkpoint(demo)
    except TimeoutError as error:
        console.print(f"[red]✗[/] {error}: did not happen within {TIMEOUT_S:.0f} s", highlight=False)
        return False
    console.print("[green]✓[/] a node died and a gang was preempted; no other gang was affected", highlight=False)
    return True


def _loses_a_node(demo: "_FaultDemo") -> None:
    demo.submit(TRAIN, 16, 2, {names.SPARES: "1"}, "demo-high")
    demo.wait(f"{TRAIN} runs", lambda: demo.bound(TRAIN) == 16)  # noqa: PLR2004 - its members
    [spare] = demo.wait("its spare", lambda: [each.node for each in demo.placement(TRAIN).spec.spares])
    demo.print(f"{TRAIN}: 16 members run on {demo.where(TRAIN)}, and {spare} is held as a spare")
    demo.submit(BATCH, 3, 8, {names.EVICT_NOTICE: "60s"}, "demo-low")
    demo.wait(f"{BATCH} runs", lambda: demo.bound(BATCH) == 3)  # noqa: PLR2004 - its members
    demo.print(f"{BATCH}: 3 members run on {demo.where(BATCH)}; the cluster is full")
    demo.submit(GUEST, 1, 8, {names.BORROWS: "true"})
    demo.wait(f"{GUEST} runs", lambda: demo.bound(GUEST) == 1)
    demo.print(f"{GUEST}: runs on the spare, because it accepts an eviction at any time")
    before = {pod.metadata.name: pod.metadata.uid for pod in demo.pods(TRAIN)}
    node = next(pod.spec.node_name for pod in demo.pods(TRAIN))
    demo.print(f"{node} reports {FAULT}=True, as node-problem-detector would")
    began = time.monotonic()
    _report_node(demo.client, node, "True")
    demo.wait(f"{GUEST} leaves", lambda: demo.bound(GUEST) == 0)
    demo.print(f"{GUEST}: evicted {time.monotonic() - began:.1f} s after the fault")
    demo.wait(f"{TRAIN} runs completely on healthy nodes", lambda: demo.bound(TRAIN, without=node) == 16)  # noqa: PLR2004
    after = {pod.metadata.name: pod.metadata.uid for pod in demo.pods(TRAIN)}
    came = sum(before[name] != uid for name, uid in after.items())
    took = time.monotonic() - began
    demo.print(
        f"{TRAIN}: {came} members are back on {spare} {took:.1f} s after the fault, and {16 - came} kept running"
    )


def _asks_for_a_checkpoint(demo: "_FaultDemo") -> None:
    demo.submit(URGENT, 3, 8, {}, "demo-high")
    notified = demo.wait(f"{BATCH} has a notice", lambda: [pod for pod in demo.pods(BATCH) if _notice_text(pod)])
    demo.print(f"{BATCH}: is to be evicted at {_notice_text(notified[0])}, or earlier if it reports a checkpoint")
    began = time.monotonic()
    note = {names.CHECKPOINT: f"step={STEP},at={meta.format_time(time.time())}"}
    demo.client.merge_patch(core.PODS, notified[0].metadata.name, {"metadata": {"annotations": note}}, NAMESPACE)
    demo.print(f"{BATCH}: reports that it has saved step {STEP}")
    demo.wait(f"{URGENT} runs", lambda: demo.bound(URGENT) == 3)  # noqa: PLR2004 - its members
    demo.print(f"{URGENT}: runs {time.monotonic() - began:.1f} s after the report, on {demo.where(URGENT)}")


class _FaultDemo:
    """The queries and waits for the demo's steps; times count from the start of the demo."""

    def __init__(self, client: Client, console: Console) -> None:
        self.client = client
        self._console = console
        self._began = time.monotonic()

    def print(self, text: str) -> None:
        """Print a line with the elapsed time."""
        self._console.print(f"{time.monotonic() - self._began:6.1f} s  {text}", highlight=False, soft_wrap=True)

    def wait(self, what: str, seen: Callable[[], T]) -> T:
        """Wait until a query returns a result, and return it. Raises TimeoutError."""
        deadline = time.monotonic() + TIMEOUT_S
        while not (found := seen()):
            if time.monotonic() > deadline:
                raise TimeoutError(what)
            time.sleep(POLL_S)
        return found

    def submit(self, name: str, pods: int, gpus: int, annotations: Mapping[str, str], priority: str = "") -> None:
        """Create a Volcano Job, whose controller re-creates lost members one by one."""
        container = {"name": "main", "image": "none", "resources": {"limits": {GPU: gpus}}}
        template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        spec = {"minAvailable": pods, "priorityClassName": priority, "schedulerName": names.SCHEDULER}
        manifest = {
            "apiVersion": JOBS.api_version,
            "kind": JOBS.kind,
            "metadata": {"name": name, "annotations": dict(annotations)},
            "spec": {**spec, "tasks": [{"name": "worker", "replicas": pods, "template": template}]},
        }
        self.client.create(JOBS, manifest, NAMESPACE)

    def pods(self, name: str) -> list[core.Pod]:
        """Return the pods of a gang that have a node and are not being deleted, keyed by name."""
        found = [
            pod for pod in self.client.list(core.PODS, NAMESPACE) if pod.metadata.labels.get(names.JOB_NAME) == name
        ]
        stays = [pod for pod in found if pod.spec.node_name and not pod.metadata.deletion_timestamp]
        return sorted(stays, key=lambda pod: pod.metadata.name)

    def bound(self, name: str, without: str = "") -> int:
        """Return the number of running members of a gang; members on the node `without` do not count."""
        return sum(pod.status.phase == "Running" and pod.spec.node_name != without for pod in self.pods(name))

    def where(self, name: str) -> str:
        """Return the names of a gang's nodes, joined to one string."""
        return ", ".join(sorted({pod.spec.node_name for pod in self.pods(name)}))

    def placement(self, name: str) -> Placement:
        """Return the placement of a gang."""
        found = self.client.list(PLACEMENTS, NAMESPACE)
        return next((each for each in found if each.metadata.name.startswith(f"{name}-")), Placement())


def _notice_text(pod: core.Pod) -> str:
    return pod.metadata.annotations.get(names.EVICT_AT, "")


def _report_node(client: Client, node: str, status: str) -> None:
    """Set the fault condition of a node."""
    known = client.get(_RAW_NODES, node)["status"].get("conditions", [])
    mine = {"type": FAULT, "status": status, "reason": "Demo", "lastTransitionTime": meta.format_time(time.time())}
    conditions = [*(each for each in known if each["type"] != FAULT), mine]
    client.merge_patch(core.NODES, node, {"status": {"conditions": conditions}}, subresource="status")
