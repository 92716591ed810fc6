"""kubelet, CoreDNS, kube-proxy and kube-router, built once from Go modules into the user's cache."""

from pathlib import Path

from musterctl.plane import binaries
from musterctl.plane.gobuild import Recipe

_KUBELET = Recipe("kubelet", binaries.CONTROL_PLANE.module, {"kubelet": "k8s.io/kubernetes/cmd/kubelet"}, minutes=10)
"""Of the same version as the control plane."""
_COREDNS = Recipe("coredns", Path(__file__).parents[1] / "coredns", {"coredns": "muster.dev/coredns"}, minutes=4)
_KUBE_PROXY = Recipe(
    "kube-proxy",
    Path(__file__).parents[1] / "kube-proxy",
    {"kube-proxy": "k8s.io/kubernetes/cmd/kube-proxy"},
    minutes=2,
)
"""Of the control plane's version, too: `.ci/kube-proxy-recipe` writes it."""
_KUBE_ROUTER = Recipe(
    "kube-router",
    Path(__file__).parents[2] / "neighbours" / "modules" / "kube-router",
    {"kube-router": "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"},
    minutes=3,
)
"""`.ci/neighbour-recipe` writes it."""


def kubelet() -> Path:
    """The kubelet."""
    return binaries.cached(_KUBELET) / "kubelet"


def coredns() -> Path:
    """A CoreDNS that knows the cluster's names and no others."""
    return binaries.cached(_COREDNS) / "coredns"


def kube_proxy() -> Path:
    """The kube-proxy that gives Services their addresses."""
    return binaries.cached(_KUBE_PROXY) / "kube-proxy"


def kube_router() -> Path:
    """The kube-router that has the kernel enforce NetworkPolicies; it is used for nothing else."""
    return binaries.cached(_KUBE_ROUTER) / "kube-router"
