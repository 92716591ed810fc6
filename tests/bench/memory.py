"""What the extender's caches weigh: recorded objects of a usual size, decoded from JSON as from a watch."""

import gc
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from extender.cluster import name_only
from extender.state.state import State
from muster.api.core import Node, Pod
from muster.kube.store import Store

NODES, PODS = 5_000, 50_000
BUDGET_MIB = 350


def run() -> Iterator[str]:
    """Resident memory before and after, in one process."""
    state, store = State(), Store[Pod]()
    for index in range(NODES):
        state.on_node(None, msgspec.convert(node(index), Node))
    decode = msgspec.json.Decoder(Pod).decode
    for index in range(PODS):
        one = decode(json.dumps(pod(index)).encode())
        state.on_pod(None, one)
        store.put(name_only(one))
    gc.collect()
    total = resident_mib()
    size = len(json.dumps(pod(0)))
    yield (
        f"{NODES} nodes and {len(state.pods)} pods of {size} bytes: {total:.0f} MiB in all, "
        f"budget {BUDGET_MIB} MiB, ratio {total / BUDGET_MIB:.2f}"
    )


def resident_mib(pid: int | str = "self") -> float:
    """Resident memory of a process, this one unless another is named."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def node(index: int) -> dict[str, Any]:
    """A node with twenty labels."""
    labels = {f"example.com/label-{number}": f"value-{number}" for number in range(20)}
    amounts = {"cpu": "32", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"}
    name = f"node-{index:05d}"
    return {"metadata": {"name": name, "uid": f"node-{index}", "labels": labels}, "status": {"allocatable": amounts}}


def pod(index: int) -> dict[str, Any]:
    """A running member of a gang of a hundred, with 25 variables and what admission usually adds."""
    job, node_name = f"job{index // 100}", f"node-{index % NODES:05d}"
    pin = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [pin]}}
    labels = {"volcano.sh/job-name": job, "volcano.sh/task-spec": "worker", "volcano.sh/task-index": str(index % 100)}
    annotations = {
        **labels,
        "scheduling.k8s.io/group-name": f"{job}-uid",
        "muster.dev/node": node_name,
        "muster.dev/epoch": "1",
    }
    container = {
        "name": "main",
        "image": "example.com/team/train:1.2.3",
        "env": [{"name": f"VARIABLE_{number}", "value": f"value-{number}"} for number in range(25)],
        "resources": {"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"nvidia.com/gpu": "1"}},
    }
    token = {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    types = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    return {
        "metadata": {
            "name": f"{job}-worker-{index % 100}",
            "namespace": "team",
            "uid": f"{index:036d}",
            "resourceVersion": str(index + 1),
            "labels": labels,
            "annotations": annotations,
        },
        "spec": {
            "nodeName": node_name,
            "schedulerName": "volcano",
            "containers": [container],
            "volumes": [token],
            "affinity": {"nodeAffinity": required},
        },
        "status": {"phase": "Running", "conditions": [{"type": kind, "status": "True"} for kind in types]},
    }
