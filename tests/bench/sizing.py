"""What the processes weigh in clusters of several sizes: the figures of the table in docs/operations.md.

Each figure is the resident memory of a process of its own, which imports what the real one does and fills its caches
with objects of a usual size (those of `usual`), a gang of a hundred pods at a time.
"""

# ruff: noqa: PLC0415 - what the other process imports must not weigh
import gc
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator

import msgspec

from muster.api.kubernetes.core import Node, Pod
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import PodGroup
from muster.kube.client import Client
from muster.kube.config import ClientConfig
from muster.kube.store import ObjectStore
from tests.bench.usual import node, pod, resident_mib

SIZES = ((100, 1_000), (1_000, 10_000), (5_000, 50_000))
"""Nodes, and pods of gangs."""
GANG = 100


def run() -> Iterator[str]:
    """A line per size."""
    for nodes, pods in SIZES:
        figures = ", ".join(f"{process} {_asked(process, nodes, pods)} MiB" for process in ("extender", "controller"))
        yield f"{nodes} nodes, {pods} pods: {figures}"


def _asked(process: str, nodes: int, pods: int) -> str:
    command = [sys.executable, "-m", "tests.bench.sizing", process, str(nodes), str(pods)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def fill_extender(nodes: int, pods: int) -> object:
    """The extender's state and the cache of its pods."""
    from extender.cluster import name_only
    from extender.planner.state.state import PlannerState

    state, store = PlannerState(), ObjectStore[Pod]()
    for index in range(nodes):
        state.on_node(None, msgspec.convert(node(index), Node))
    for one in _pods(nodes, pods):
        state.on_pod(None, one)
        store.add_object(name_only(one))
    return state, store, state.nodes


def fill_controller(nodes: int, pods: int) -> object:
    """The controller's caches: pods, and a Job and a PodGroup for each hundred of them."""
    from controller.app import Controller
    from controller.caches import kept

    one = Controller(Client(ClientConfig(server="http://127.0.0.1:9")), workers=3)
    for each in _pods(nodes, pods):
        one.reflectors["pods"].store.add_object(kept(each))
    for number in range(pods // GANG):
        template = {"spec": pod(number, nodes)["spec"]}
        meta = {"name": f"job{number}", "namespace": "team", "uid": f"job-{number}"}
        task = {"name": "worker", "replicas": GANG, "template": template}
        job = {"metadata": meta, "spec": {"schedulerName": "volcano", "minAvailable": GANG, "tasks": [task]}}
        one.reflectors["jobs"].store.add_object(msgspec.convert(job, Job))
        group = {"metadata": {**meta, "name": f"job{number}-uid"}, "spec": {"minMember": GANG, "queue": "default"}}
        one.reflectors["podgroups"].store.add_object(msgspec.convert(group, PodGroup))
    return one


def _pods(nodes: int, pods: int) -> Iterator[Pod]:
    """As they come from a watch."""
    decode = msgspec.json.Decoder(Pod).decode
    for index in range(pods):
        yield decode(json.dumps(pod(index, nodes)).encode())


if __name__ == "__main__":
    importlib.import_module(f"{sys.argv[1]}.main")
    fill = {"extender": fill_extender, "controller": fill_controller}[sys.argv[1]]
    filled = fill(int(sys.argv[2]), int(sys.argv[3]))
    gc.collect()
    print(round(resident_mib()))
