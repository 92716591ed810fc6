"""How the kubelet of one node is configured, and who it is."""

import os
from pathlib import Path
from typing import Any

import yaml

from certs.authority import Authority
from musterctl.plane.pki import Pki
from realnode import namespaces
from realnode.namespaces import Place

CPUS = 2
"""What every node has to offer, whatever the machine has."""
_CREDENTIALS = "kubelet"


def configure(
    folder: Path, name: str, node: int, place: Place, *, pki: Pki, server: str, group: str, socket: Path
) -> list[str]:
    """Writes what the kubelet reads into the folder; its arguments."""
    names, address = (name,), namespaces.address(node)
    user, groups = f"system:node:{name}", ("system:nodes",)
    pair = Authority.load(pki.folder).issue(
        user, organizations=groups, dns_names=names, ips=(address,), client=True, server=True
    )
    pair.save(folder, _CREDENTIALS)
    (folder / "resolv.conf").touch()  # nothing of this machine's: the pods' network has no way out
    kubelet_yaml = _configuration(folder, address, place.dns, pki.ca_file, group, socket)
    files = {"kubelet.yaml": kubelet_yaml, "kubelet.kubeconfig": _kubeconfig(folder, server, pki.ca_file)}
    for file, content in files.items():
        (folder / file).write_text(yaml.safe_dump(content))
    return [
        f"--config={folder / 'kubelet.yaml'}",
        f"--kubeconfig={folder / 'kubelet.kubeconfig'}",
        f"--hostname-override={name}",
        f"--node-ip={address}",
        f"--root-dir={folder / 'kubelet'}",
        f"--cert-dir={folder}",
        "--v=2",
    ]


def _configuration(folder: Path, address: str, dns: str, ca_file: Path, group: str, socket: Path) -> dict[str, Any]:
    reserved = (os.cpu_count() or CPUS) - CPUS
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": address,
        "healthzBindAddress": address,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(ca_file)},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(folder / f"{_CREDENTIALS}.crt"),
        "tlsPrivateKeyFile": str(folder / f"{_CREDENTIALS}.key"),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{group}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "containerRuntimeEndpoint": f"unix://{socket}",
        "podLogsDir": str(folder / "logs"),
        "clusterDNS": [dns],
        "clusterDomain": "cluster.local",
        "resolvConf": str(folder / "resolv.conf"),
        "systemReserved": {"cpu": str(reserved)} if reserved > 0 else {},
        # The machine is a developer's: a full disk is not the tests' subject, and the images are to stay.
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
    }


def _kubeconfig(folder: Path, server: str, ca_file: Path) -> dict[str, Any]:
    files = {"client-certificate": f"{_CREDENTIALS}.crt", "client-key": f"{_CREDENTIALS}.key"}
    user = {key: str(folder / file) for key, file in files.items()}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "muster", "cluster": {"server": server, "certificate-authority": str(ca_file)}}],
        "users": [{"name": "kubelet", "user": user}],
        "contexts": [{"name": "muster", "context": {"cluster": "muster", "user": "kubelet"}}],
        "current-context": "muster",
    }
