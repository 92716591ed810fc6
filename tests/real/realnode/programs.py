"""kubelet and CoreDNS, built once from Go modules into the user's cache."""

from pathlib import Path

from musterctl.plane import binaries

_KUBELET = binaries.Recipe(
    "kubelet", binaries.CONTROL_PLANE.module, {"kubelet": "k8s.io/kubernetes/cmd/kubelet"}, minutes=10
)
"""Of the same version as the control plane."""
_COREDNS = binaries.Recipe(
    "coredns", Path(__file__).parents[1] / "coredns", {"coredns": "muster.dev/coredns"}, minutes=4
)


def kubelet() -> Path:
    """The kubelet."""
    return binaries.cached(_KUBELET) / "kubelet"


def coredns() -> Path:
    """A CoreDNS that knows the cluster's names and no others."""
    return binaries.cached(_COREDNS) / "coredns"
