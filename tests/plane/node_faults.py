"""Faults of nodes, as those that detect them tell of them."""

from dataclasses import replace
from typing import Any

from muster.api.kubernetes.core import NODES
from muster.kube.client import Client

RAW_NODES = replace(NODES, type=dict[str, Any])
XID = "SysLogsXIDError"
"""A condition of NVSentinel."""
REPAIR_S = 30.0
"""A gang is repaired within this time, far below the five minutes after which Kubernetes evicts from dead nodes."""


def says(client: Client, node: str, condition: str, status: str) -> None:
    """Has a node say this of itself, as node-problem-detector would."""
    known = client.get(RAW_NODES, node)["status"].get("conditions", [])
    moment = next((each["lastTransitionTime"] for each in known), "2026-01-01T00:00:00Z")
    mine = {"type": condition, "status": status, "reason": "Test", "lastTransitionTime": moment}
    conditions = [each for each in known if each["type"] != condition]
    client.merge_patch(NODES, node, {"status": {"conditions": [*conditions, mine]}}, subresource="status")
