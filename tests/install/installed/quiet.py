"""What a release says and leaves behind, and what of that is as it should be."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from installed.cluster import Cluster
from muster.api.names import SYSTEM_NAMESPACE

_KLOG: Final = re.compile(r"^[WEF]\d{4} ")
"""How kube-scheduler begins its warnings and errors."""
_LOUD: Final = frozenset({"warning", "error", "critical"})
_EXPECTED: Final = tuple(
    re.compile(text)
    for text in (
        "Neither --kubeconfig nor --master was specified. +Using the inClusterConfig",  # the stock program, in any pod
        "The manifest file is empty, ignoring",  # of metrics, for which it has no flag here
        "Error initially creating lease lock.*already exists",  # two replicas begin at once, and one is first
    )
)
"""Lines of kube-scheduler's that a clean start may have; of Muster's own there are none."""
_KINDS: Final = (
    "clusterroles", "clusterrolebindings", "mutatingwebhookconfigurations", "validatingwebhookconfigurations",
    "validatingadmissionpolicies", "validatingadmissionpolicybindings", "priorityclasses"
)  # fmt: skip
"""Kinds outside of namespaces of which nothing may stay; CRDs do, and what the API server makes for them."""
_OWN_KINDS: Final = (
    "deployments,daemonsets,pods,services,configmaps,secrets,leases,serviceaccounts,roles,rolebindings,"
    "poddisruptionbudgets,networkpolicies,jobs.batch"
)
STAYS: Final = frozenset({"Secret/muster-webhook-tls", "Lease/muster-controller", "Lease/muster-scheduler"})
"""What the processes made themselves, in the release's namespace; it goes when that is deleted."""
_ALWAYS: Final = frozenset({"ConfigMap/kube-root-ca.crt", "ServiceAccount/default"})
"""What every namespace has."""


def warnings(logs: Mapping[str, Sequence[str]]) -> list[str]:
    """The lines that are warnings or worse, but for the expected ones, with the container that wrote each."""
    return [f"{name}: {line}" for name, lines in logs.items() for line in lines if _loud(line)]


def left(cluster: Cluster) -> frozenset[str]:
    """What there is of a release that is gone, as `Kind/name`, in its namespace and outside of all."""
    inside = {f"{each['kind']}/{each['metadata']['name']}" for each in cluster.objects(_OWN_KINDS, SYSTEM_NAMESPACE)}
    outside = {
        f"{each['kind']}/{each['metadata']['name']}"
        for each in cluster.objects(",".join(_KINDS))
        if "muster" in each["metadata"]["name"]
    }
    return frozenset((inside | outside) - _ALWAYS)


def _loud(line: str) -> bool:
    if any(pattern.search(line) for pattern in _EXPECTED):
        return False
    if _KLOG.match(line):
        return True
    try:
        record = json.loads(line)
    except json.JSONDecodeError:
        return "Traceback" in line
    return isinstance(record, dict) and record.get("level") in _LOUD
