"""A real Prometheus scrapes Muster as the chart says: panels have data, and alerts fire when they should."""

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest
from beside import prometheus
from beside.neighbour import Neighbours
from beside.prometheus import Prometheus
from gang_jobs import job, runs

from charts import rendered
from muster.api.kubernetes.core import NAMESPACES, PRIORITY_CLASSES
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.chart import CHART
from muster.kube.client import Client
from musterctl.plane.install import RACK
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.neighbour, pytest.mark.skipif(bool(prometheus.missing()), reason=prometheus.missing())]
JSON = dict[str, Any]
WaitFor = Callable[..., Any]
METRICS: JSON = {"metrics": {"serviceMonitors": True, "rules": True, "dashboard": True}}
CONFIG = f"""
actions: enqueue, allocate, consolidate, reclaim, preempt
tiers:
- plugins: [{{name: gang}}, {{name: priority}}, {{name: proportion}}]
- plugins: [{{name: predicates}}, {{name: minruntime}}]
- plugins:
  - name: topology
    arguments: {{levels: [{RACK}, kubernetes.io/hostname]}}
"""
WAIT_S = 240.0
NAMESPACE = "metrics"
GPU = "nvidia.com/gpu"
FEWER = ("minAvailable", "tasks/0/minAvailable", "tasks/0/replicas")
MAY_BE_ZERO = {"Keys that wait in queues"}
"""Panels whose series are there, and whose values are zero as long as everything is quick."""


def addresses(plane: Plane) -> dict[str, list[str]]:
    """Where the plane's processes have their metrics, by the part of the chart that runs them."""
    ports = {"webhook": "webhook-status", "scheduler": "extender-status", "controller": "controller-status"}
    return {part: [f"127.0.0.1:{plane.state.ports[port]}"] for part, port in ports.items()}


def panels() -> list[tuple[str, str]]:
    """The title and the expression of every target of the dashboard, its variable filled in as by default."""
    dashboard = json.loads((CHART / "files" / "dashboard.json").read_text(encoding="utf-8"))
    (resource,) = (each for each in dashboard["templating"]["list"] if each["name"] == "resource")
    return [
        (panel["title"], target["expr"].replace("$resource", resource["current"]["value"]))
        for panel in dashboard["panels"]
        for target in panel["targets"]
    ]


@pytest.fixture(scope="module")
def plane(module_plane: Callable[..., Plane]) -> Plane:
    """Eight nodes of 8 GPUs in four racks, and an extender that reclaims and preempts."""
    return module_plane(nodes=8, racks=4, planning_config=CONFIG)


@pytest.fixture(scope="module")
def watching(plane: Plane, neighbours: Neighbours, wait_for: WaitFor) -> Prometheus:
    """A Prometheus with the chart's ServiceMonitors."""
    objects = rendered(METRICS)
    one = Prometheus.start(neighbours, plane, prometheus.jobs(objects, addresses(plane)), prometheus.rules(objects))
    wait_for(one.ready, WAIT_S, "Prometheus to serve")
    return one


def submit(client: Client, name: str, replicas: int, *, queue: str, priority: str = "low", **options: Any) -> None:
    """A gang of one pod per node."""
    annotations = options.pop("annotations", {})
    manifest = job(name, NAMESPACE, replicas=replicas, **options)
    manifest["metadata"]["annotations"] = annotations
    manifest["spec"] |= {"queue": queue, "priorityClassName": priority}
    manifest["spec"]["policies"] = [{"event": "PodEvicted", "action": "RestartJob"}]
    client.create(JOBS, manifest, NAMESPACE)


def prepare(client: Client) -> None:
    """A namespace, two priorities, and two queues that deserve half of the plane each."""
    client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    for name, value in (("low", 1), ("high", 1000)):
        client.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
    for name in ("borrower", "lender"):
        client.create(QUEUES, {"metadata": {"name": name}, "spec": {"weight": 1, "deserved": {GPU: 32}}})


def a_day(plane: Plane, client: Client, wait_for: WaitFor) -> None:
    """What makes every panel move: gangs that end, borrow, are reclaimed and preempted, sit together, wait."""

    def running(name: str, replicas: int) -> None:
        wait_for(lambda: runs(client, NAMESPACE, name, replicas), WAIT_S, f"{name} to run")

    submit(client, "short", 2, queue="borrower", run_s=2)
    wait_for(lambda: client.get(JOBS, "short", NAMESPACE).status.state.phase == "Completed", WAIT_S, "short to end")
    submit(client, "first", 4, queue="borrower")
    submit(client, "second", 4, queue="borrower")
    running("first", 4)
    running("second", 4)
    submit(client, "mine", 4, queue="lender")  # takes back half of the plane
    running("mine", 4)
    submit(client, "urgent", 4, queue="borrower", priority="high")  # takes the place of the other half
    running("urgent", 4)
    client.delete(JOBS, "mine", NAMESPACE)
    submit(client, "near", 2, queue="lender", annotations={"muster.dev/topology-required": RACK})
    running("near", 2)
    fewer = [{"op": "replace", "path": f"/spec/{field}", "value": 3} for field in FEWER]
    patched = plane.kubectl(
        "patch",
        "jobs.batch.volcano.sh",
        "urgent",
        f"--namespace={NAMESPACE}",
        "--type=json",
        f"--patch={json.dumps(fewer)}",
    )
    assert patched.returncode == 0, patched.stderr
    submit(client, "large", 9, queue="lender")  # larger than the cluster
    client.create(POD_GROUPS, {"metadata": {"name": "absurd"}, "spec": {"minMember": 1, "queue": "lender"}}, NAMESPACE)
    client.merge_patch(POD_GROUPS, "absurd", {"spec": {"minMember": 2**31 - 1}}, NAMESPACE)


def test_every_target_of_the_chart_is_scraped(watching: Prometheus, wait_for: WaitFor) -> None:
    """Webhook, extender and controller: each ServiceMonitor leads over its Service to a port that answers."""
    each = {"muster-webhook": 1, "muster-scheduler": 1, "muster-controller": 1}
    wait_for(lambda: watching.healthy() == each, WAIT_S, "all targets to be up")


def test_every_panel_has_data(plane: Plane, watching: Prometheus, wait_for: WaitFor) -> None:
    """After a day of gangs, queues, preemption and topology no panel of the dashboard is empty, or only zero."""
    client = plane.client()
    with socket.create_connection(("127.0.0.1", plane.state.ports["webhook-status"])) as slow:
        slow.sendall(b"GET /metrics HTTP/1.1\r\n")  # and no more: the webhook hangs up after a while
        prepare(client)
        a_day(plane, client, wait_for)
        dropped = 'muster_server_connections_dropped_total{reason="request"} > 0'
        wait_for(lambda: watching.now(dropped), WAIT_S, "the slow client to be left")
    assert GPU in watching.label_values("muster_cluster_resources", "resource")

    for title, expression in panels():

        def moves(title: str = title, expression: str = expression) -> bool:
            found = watching.since(expression)
            return any(found) or bool(found and title in MAY_BE_ZERO)

        wait_for(moves, WAIT_S, f"data in the panel {title!r}: {expression}")
