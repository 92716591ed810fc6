"""What runs on a machine beside its kubelet: kube-proxy for Services, and kube-router for NetworkPolicies.

The CNI plugin of the nodes connects pods and forbids nothing. kube-router with its firewall alone, as users have it
beside other plugins, has each node's kernel enforce the policies of the node's pods (iptables and IP sets).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import yaml
from realnode import namespaces, programs

from musterctl.plane.process import PlaneProcess

_NO_LIMITS: Final = {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}
"""Of the table of connections: they belong to the machine, and a namespace cannot set them."""
Kubeconfig = Callable[[str], Path]
"""The kubeconfig of a part of that name."""


def proxy(
    name: str, root: Path, kubeconfig: Kubeconfig, *, node: str, address: str, enter: tuple[str, ...]
) -> PlaneProcess:
    """kube-proxy in the network of that machine, which has this address."""

    def command() -> list[str]:
        config = {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "iptables",
            "bindAddress": address,
            "clientConnection": {"kubeconfig": str(kubeconfig("kube-proxy"))},
            "clusterCIDR": namespaces.NETWORK,
            "hostnameOverride": node,
            "healthzBindAddress": "127.0.0.1:10256",
            "metricsBindAddress": "127.0.0.1:10249",
            "conntrack": _NO_LIMITS,
        }
        file = root / f"{name}.yaml"
        file.write_text(yaml.safe_dump(config), encoding="utf-8")
        return [*enter, str(programs.kube_proxy()), f"--config={file}", "--v=2"]

    return PlaneProcess(name, root, command)


def firewall(root: Path, kubeconfig: Kubeconfig, services: str, *, node: str, enter: tuple[str, ...]) -> PlaneProcess:
    """kube-router on a node that the API server knows already, with nothing but its firewall."""

    def command() -> list[str]:
        return [
            *enter,
            str(programs.kube_router()),
            f"--kubeconfig={kubeconfig('kube-router')}",
            f"--hostname-override={node}",
            f"--service-cluster-ip-range={services}",
            "--run-firewall=true",
            "--run-router=false",
            "--run-service-proxy=false",
            "--health-port=0",
            "--v=1",
        ]

    return PlaneProcess(f"{node}-kube-router", root, command)
