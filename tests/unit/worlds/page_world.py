"""Rows, queues and placements for tests of pages, with names that cannot be mistaken for anything else."""

from typing import Any

from builders import placement, pod

from extender.explain.queues import QueueReport, WaitingGang
from gangs.row import GangRow
from muster.api.kubernetes.core import Pod
from muster.api.muster.placement import Placement

NOW = 1_800_000_000.0


def row(name: str = "train", namespace: str = "ours", state: str = "Waiting", **more: Any) -> GangRow:
    """One gang."""
    told = {"kind": "Job", "gang": f"{name}-group", "queue": "research", "created": "2027-01-15T07:00:00Z"} | more
    return GangRow(name=name, namespace=namespace, reference=f"job.batch/{name}", state=state, **told)


def report(queue: str = "research", *waiting: WaitingGang, **more: Any) -> QueueReport:
    """One queue with eight GPUs in use, of which it deserves sixteen."""
    amounts: dict[str, Any] = {
        "allocated": {"nvidia.com/gpu": 8000, "cpu": 4000},
        "fair_share": {"nvidia.com/gpu": 16000, "cpu": 32000},
        "deserved": {"nvidia.com/gpu": 12000},
        "capability": {"nvidia.com/gpu": 32000},
        "guarantee": {},
    }
    told: dict[str, Any] = {"parent": "root", "depth": 1, "weight": 1, "priority": 0, "waiting": len(waiting)}
    return QueueReport(queue=queue, first=waiting, **(amounts | told | more))


def reserved(namespace: str, name: str, *nodes: str) -> Placement:
    """A placement that keeps nodes for a gang."""
    status = {"expectedAt": "2027-01-15T09:00:00Z", "reservedAt": "2027-01-15T07:30:00Z"}
    return placement(name, {"worker": nodes}, namespace, epoch=3, phase="Reserved", status=status)


def member(name: str, rank: int, node: str = "", phase: str = "Running", **more: Any) -> Pod:
    """A pod of pod set `worker`."""
    status = {"startTime": "2027-01-15T07:40:00Z", **more.pop("status", {})}
    labels = {"volcano.sh/task-index": str(rank)}
    return pod(name, "ours", node=node, task="worker", index=rank, labels=labels, phase=phase, status=status, **more)
