"""Nodes and pods of a usual size, and what a process weighs: for measurements of memory."""

import os
from pathlib import Path
from typing import Any

from builders import manifests


def resident_mib(pid: int | str = "self") -> float:
    """Resident memory of a process, this one unless another is named."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def node(index: int) -> dict[str, Any]:
    """A node with twenty labels."""
    labels = {f"example.com/label-{number}": f"value-{number}" for number in range(20)}
    amounts = {"cpu": "32", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"}
    name = f"node-{index:05d}"
    return {"metadata": {"name": name, "uid": f"node-{index}", "labels": labels}, "status": {"allocatable": amounts}}


def pod(index: int, nodes: int) -> dict[str, Any]:
    """A running member of a gang of a hundred on one of so many nodes: 25 variables, and what admission adds."""
    job, node_name = f"job{index // 100}", f"node-{index % nodes:05d}"
    pin = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [pin]}}
    labels = {"volcano.sh/job-name": job, "volcano.sh/task-spec": "worker", "volcano.sh/task-index": str(index % 100)}
    variables = [{"name": f"VARIABLE_{number}", "value": f"value-{number}"} for number in range(25)]
    amounts = {"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"nvidia.com/gpu": "1"}}
    container = manifests.container(image="example.com/team/train:1.2.3", env=variables, **amounts)
    token = {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    types = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    return manifests.pod(
        f"{job}-worker-{index % 100}",
        "team",
        uid=f"{index:036d}",
        version=str(index + 1),
        labels=labels,
        annotations={**labels, "muster.dev/node": node_name, "muster.dev/epoch": "1"},
        gang=f"{job}-uid",
        owner={**manifests.job_owner(job, f"{job}-uid"), "blockOwnerDeletion": True},
        node=node_name,
        scheduler="volcano",
        containers=[container],
        volumes=[token],
        affinity={"nodeAffinity": required},
        status={"conditions": [{"type": kind, "status": "True"} for kind in types]},
    )
