"""The plugin Coscheduling of Kubernetes' scheduler-plugins: a PodGroup per gang, and pods of this client.

The controller that writes the status of the PodGroups does not run: no decision of the plugin reads it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from beside import manifests, programs
from beside.neighbour import Neighbours

from muster.api.base import Resource
from muster.kube.client import Client
from musterctl.plane import install
from musterctl.plane.machine import LOOPBACK, free_ports
from musterctl.plane.plane import Plane
from musterctl.plane.process import PlaneProcess
from tests.bench.peers import kubernetes
from tests.bench.peers.peer import JSON, NAMESPACE, Peer

_MODULE = "sigs.k8s.io/scheduler-plugins"
_FOLDER = Path("manifests", "coscheduling")
_NAME = "coscheduling"
_LABEL = "scheduling.x-k8s.io/pod-group"
_GROUPS: Resource[JSON] = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup", dict[str, Any])


class Coscheduling(Peer):
    """kube-scheduler of scheduler-plugins, with the plugin in every place that its manifests name."""

    name = _NAME
    title = "coscheduling"
    parts = ("etcd", "kube-apiserver")
    own = (_NAME,)
    made = (_GROUPS,)

    def about(self) -> str:
        """Return versions and flags, as a sentence for the page."""
        version = programs.version(_NAME, _MODULE)
        return f"scheduler-plugins {version}, the configuration of its manifests, `qps` 5000 and `burst` 5000"

    def build(self) -> None:
        """Build its kube-scheduler."""
        _program()

    def prepare(self, plane: Plane, client: Client) -> None:
        """Install the kind PodGroup."""
        install.apply(client, manifests.read(programs.published(_NAME, _MODULE) / _FOLDER / "crd.yaml"))
        plane.kubectl("wait", "crd", "--all", "--for=condition=Established", "--timeout=60s")

    def start(self, plane: Plane) -> Mapping[str, PlaneProcess]:
        """Start the scheduler as the administrator."""
        kubeconfig = str(plane.kubeconfig)
        [config] = manifests.read(programs.published(_NAME, _MODULE) / _FOLDER / "scheduler-config.yaml")
        config["clientConnection"] = {"kubeconfig": kubeconfig, "qps": 5_000, "burst": 5_000}
        file = plane.root / "coscheduling.yaml"
        file.write_text(yaml.safe_dump(config), encoding="utf-8")
        (port,) = free_ports(1)
        access = [f"--{each}={kubeconfig}" for each in ("authentication-kubeconfig", "authorization-kubeconfig")]
        arguments = [f"--config={file}", *access, f"--bind-address={LOOPBACK}", f"--secure-port={port}"]
        return {_NAME: Neighbours().start(plane, _NAME, _program(), arguments)}

    def submit(self, client: Client, prefix: str, gangs: int, members: int) -> None:
        """Submit groups, each followed by its pods."""

        def group(name: str) -> object:
            body = {"apiVersion": _GROUPS.api_version, "kind": _GROUPS.kind, "metadata": {"name": name}}
            return client.create(_GROUPS, body | {"spec": {"minMember": members}}, NAMESPACE)

        def member(gang: str, name: str) -> JSON:
            one = kubernetes.pod(name)
            return one | {"metadata": {"name": name, "labels": {_LABEL: gang}}}

        kubernetes.submit_groups(client, [f"{prefix}-{number}" for number in range(gangs)], members, group, member)


def _program() -> Path:
    return programs.built(_NAME, f"{_MODULE}/cmd/scheduler", minutes=6)
