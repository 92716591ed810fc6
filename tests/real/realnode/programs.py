"""kubelet and CoreDNS, built once from Go modules into the user's cache."""

from pathlib import Path

from musterctl.plane import build

_KUBELET = build.Recipe("kubelet", build.CONTROL_PLANE.module, {"kubelet": "k8s.io/kubernetes/cmd/kubelet"}, minutes=10)
"""Of the same version as the control plane."""
_COREDNS = build.Recipe("coredns", Path(__file__).parents[1] / "coredns", {"coredns": "muster.dev/coredns"}, minutes=4)


def kubelet() -> Path:
    """The kubelet."""
    return build.cached(_KUBELET) / "kubelet"


def coredns() -> Path:
    """A CoreDNS that knows the cluster's names and no others."""
    return build.cached(_COREDNS) / "coredns"
