"""Node faults that other programs report, interpreted by a cluster's rules. Pure.

Muster does not detect faults itself. Muster reads conditions and taints that are written by Kubernetes,
node-problem-detector, NVSentinel and EKS's node monitoring agent. The page docs/faults.md names the source of each
condition and taint. A *suspect* node keeps its pods, but gets no new pods. A node is *not ready* if its kubelet does
not respond.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from muster.api.kubernetes import core, meta
from muster.api.muster.configuration import Suspects

FaultKind = Literal["suspect", "not-ready"]
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
"""Taint that an administrator sets on a node that is shut down and runs no pods (Kubernetes' non-graceful node
shutdown)."""
CONDITIONS: Final = (
    # node-problem-detector: config/kernel-monitor.json, readonly-monitor.json
    *("KernelDeadlock=True", "ReadonlyFilesystem=True", "XfsShutdown=True"),
    # systemd-monitor-counter.json, kernel-monitor-counter.json, docker-monitor-counter.json
    *("FrequentKubeletRestart=True", "FrequentDockerRestart=True", "FrequentContainerdRestart=True"),
    *("FrequentUnregisterNetDevice=True", "CorruptDockerOverlay2=True"),
    # health-checker-*.json
    *("KubeletUnhealthy=True", "ContainerRuntimeUnhealthy=True"),
    # NVSentinel, from DCGM: docs/INTEGRATIONS.md; True is set only for fatal findings
    *("GpuMemWatch=True", "GpuPcieWatch=True", "GpuInforomWatch=True", "GpuSmWatch=True", "GpuNvlinkWatch=True"),
    *("GpuMcuWatch=True", "GpuPmuWatch=True", "GpuDriverWatch=True", "GpuThermalWatch=True", "GpuPowerWatch=True"),
    # NVSentinel, from the system's log and NVSwitches
    *("SysLogsXIDError=True", "SysLogsSXIDError=True", "SysLogsGPUFallenOff=True"),
    *("NVSwitchFatalError=True", "NVSwitchDown=True"),
    # the node monitoring agent of EKS
    *("AcceleratedHardwareReady=False", "KernelReady=False", "NetworkingReady=False", "StorageReady=False"),
    "ContainerRuntimeReady=False",
)
"""Node conditions that make a node suspect by default, each as type=status."""
TAINTS: Final = (
    # NVSentinel's examples, for installations in which it taints nodes: docs/INTEGRATIONS.md
    *("nvidia.com/gpu-xid-error", "nvidia.com/gpu-nvlink-error", "nvidia.com/syslog-xid-error", "nvidia.com/gpu-error"),
    # Kubernetes: the cloud's node controller, and an administrator
    *("node.cloudprovider.kubernetes.io/shutdown", OUT_OF_SERVICE),
)
"""Keys of taints that make a node suspect by default, with any value and effect."""


class FaultRules(NamedTuple):
    """Rules that make a node suspect."""

    conditions: frozenset[tuple[str, str]]
    """Type and status of each condition that makes a node suspect."""
    taints: frozenset[str]
    """Key of each taint that makes a node suspect."""

    @property
    def published(self) -> Suspects:
        """Return a text for users that lists the rules in alphabetical order."""
        return Suspects(tuple(sorted("=".join(pair) for pair in self.conditions)), tuple(sorted(self.taints)))


class Fault(NamedTuple):
    """A fault of a node."""

    kind: FaultKind
    cause: str
    """The condition or taint of the node that is the cause, as text."""
    since: float | None
    """Time at which the node became not ready, in seconds since the epoch; None if unknown."""


def is_dead(fault: Fault | None) -> bool:
    """Return True for a deleted node (None), or a node whose kubelet can no longer terminate pods."""
    return fault is None or fault.kind == "not-ready" or fault.cause == f"taint {OUT_OF_SERVICE}"


def rules_of(conditions: Iterable[str], taints: Iterable[str]) -> FaultRules:
    """Return the rules that these conditions (each as type=status) and these taint keys describe."""
    pairs = (text.partition("=") for text in conditions)
    return FaultRules(frozenset((kind, status) for kind, _, status in pairs), frozenset(taints))


def changed(known: Iterable[str], more: Sequence[str]) -> list[str]:
    """Return the entries of `known` and `more`; an entry of `more` with a leading minus removes that entry."""
    without = {text.removeprefix("-") for text in more if text.startswith("-")}
    return [text for text in (*known, *more) if text not in without and not text.startswith("-")]


DEFAULT_RULES: Final = rules_of(CONDITIONS, TAINTS)


def rules_in(published: Mapping[str, Suspects], pool: str) -> FaultRules:
    """Return the rules that the extenders of a node pool have published; the built-in rules if there are none."""
    suspects = published.get(pool)
    return rules_of(suspects.conditions, suspects.taints) if suspects else DEFAULT_RULES


def suspect(node: core.Node, rules: FaultRules) -> str:
    """Return the first condition or taint that makes a node suspect, as text; empty if there is none."""
    for taint in node.spec.taints:
        if taint.key in rules.taints:
            return f"taint {taint.key}"
    for condition in node.status.conditions:
        if (condition.type, condition.status) in rules.conditions:
            return f"condition {condition.type}={condition.status}"
    return ""


def fault_of(node: core.Node, rules: FaultRules) -> Fault | None:
    """Return the fault of a node; None for a healthy node, or for a node whose kubelet has not reported yet."""
    cause = suspect(node, rules)
    if cause:
        return Fault("suspect", cause, None)
    ready = next((each for each in node.status.conditions if each.type == "Ready"), None)
    if ready is None or ready.status == "True":
        return None
    return Fault("not-ready", f"condition Ready={ready.status}", meta.readable_time(ready.last_transition_time))
