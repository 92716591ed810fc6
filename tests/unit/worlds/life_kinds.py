"""Kinds of things that happen in a wide life, and what its gangs say of each kind."""

from typing import Any

from muster.api import names

GPU = "nvidia.com/gpu"
KINDS = ("rules", "neighbours", "devices", "networks", "parts", "scale-up", "limits", "budgets", "shares", "others",
         "failures", "slow", "sizes", "notices", "faults", "closing", "spaces")  # fmt: skip
LEVELS = ["block", "rack", "kubernetes.io/hostname"]


def rack(**term: Any) -> dict[str, Any]:
    """A term of affinity between pods."""
    return {"topologyKey": "rack", "labelSelector": {"matchLabels": {"task": "worker"}}, **term}


def nodes_with(key: str, operator: str, *values: str) -> list[dict[str, Any]]:
    """Conditions on nodes."""
    return [{"key": key, "operator": operator, "values": [*values]}]


def required(key: str, operator: str, *values: str) -> dict[str, Any]:
    """Affinity to nodes."""
    terms = [{"matchExpressions": nodes_with(key, operator, *values)}]
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    }


def preferred(weight: int, key: str, operator: str, *values: str) -> dict[str, Any]:
    """Preference for nodes."""
    term = {"weight": weight, "preference": {"matchExpressions": nodes_with(key, operator, *values)}}
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}}


def near(kind: str, weight: int = 0, **term: Any) -> dict[str, Any]:
    """Affinity between pods: required, or preferred by a weight."""
    if weight:
        terms = [{"weight": weight, "podAffinityTerm": rack(**term)}]
        return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": terms}}}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [rack(**term)]}}}


def spread(skew: int, policy: str) -> dict[str, Any]:
    """Pods are spread over racks."""
    return {"topologySpreadConstraints": [rack(maxSkew=skew, whenUnsatisfiable=policy)]}


HOST = {"topologyKey": "kubernetes.io/hostname"}
SPECS: dict[str, list[dict[str, Any]]] = {
    "rules": [
        {"nodeSelector": {"block": "b0"}}, required("rack", "NotIn", "r0"), required("size", "Gt", "2"),
        preferred(50, "rack", "In", "r1", "r2"), preferred(10, "size", "Lt", "3"),
        {"tolerations": [{"key": "team", "operator": "Exists"}]},
        {"tolerations": [{"key": "team", "value": "x", "effect": "NoSchedule"}]},
    ],
    "neighbours": [
        near("podAntiAffinity", **HOST), near("podAffinity"), near("podAffinity", 30), near("podAntiAffinity", 5),
        spread(1, "DoNotSchedule"), spread(2, "DoNotSchedule"), spread(1, "ScheduleAnyway"),
        {"containers": [{"name": "main", "ports": [{"containerPort": 80, "hostPort": 8080}]}]},
    ],
}  # fmt: skip
NOTES: dict[str, list[dict[str, str]]] = {
    "parts": [
        {f"{names.DOMAIN}/topology-slice-required": "rack", f"{names.DOMAIN}/topology-slice-size": "2"},
        {f"{names.DOMAIN}/topology-group": "g", names.TOPOLOGY_REQUIRED: "rack"},
        {names.TOPOLOGY_PREFERRED: "kubernetes.io/hostname"},
    ],
    "shares": [{"gpu-fraction": "0.5"}, {"gpu-fraction": "0.3"}, {"gpu-memory": "4000"}],
}  # fmt: skip
WISHES: dict[str, list[dict[str, str]]] = {
    "faults": [
        {names.ON_NODE_FAULT: "restart"}, {names.ON_NODE_FAULT: "wait"}, {names.NODE_FAULT_GRACE: "10s"},
        {names.SPARES: "2", names.ON_NODE_FAULT: "replace"}, {names.BORROWS: "true"},
    ],
    "failures": [{names.AVOID_FAILED_NODE: "10m"}, {names.AVOID_FAILED_NODE: "1m", names.SPARES: "1"}],
    "notices": [{names.EVICT_NOTICE: "60s"}, {names.EVICT_NOTICE: "300s"}],
    "scale-up": [{}, {names.SCALE_UP: "none"}, {names.SCALE_UP_TIMEOUT: "1m"}],
    "networks": [{names.TOPOLOGY: "rack"}],
}  # fmt: skip
