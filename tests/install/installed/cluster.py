"""The cluster: its control plane, two real nodes, and the images that they have."""

import json
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from realnode import guard, namespaces
from realnode.node import Joined, Node

from installed import agents, controlplane, images, network
from installed.controlplane import ControlPlane
from musterctl.plane.machine import LocalError
from musterctl.plane.process import PlaneProcess, start_guard

COUNT: Final = 2
_DISK: Final = "/var/tmp"  # noqa: S108 - gigabytes: /tmp is memory on many machines
_START_S: Final = 120.0
_POLL_S: Final = 0.1
_LOG_LINES: Final = 12


class Cluster:
    """A control plane in a folder of its own and its nodes; it can be started once in a process.

    That process is in the cluster's namespaces from then on. However it ends, nothing of the cluster stays.
    """

    def __init__(self, root: Path) -> None:
        self.plane = ControlPlane(root)
        self._storage = Path(tempfile.mkdtemp(prefix="nodes-", dir=_DISK))
        joined = Joined(root, self.plane.pki, controlplane.SERVER, images.PAUSE)
        run = f"muster-{self._storage.name}"
        self.nodes: list[Node] = []
        self.agents: list[PlaneProcess] = self._agents_of_the_control_plane()
        """kube-proxy and kube-router of each machine; they are not part of a node, and outlive its power."""
        for number in range(1, COUNT + 1):
            place = network.place(number)
            node = Node(number, joined, self._storage, f"{run}-{number}", place)
            self.nodes.append(node)
            self.agents += self._agents_of(node.name, namespaces.address(number), place.enter)
        self._guards: list[subprocess.Popen[bytes]] = []
        self.settings_before = namespaces.kernel_settings()
        """What the kernel was told before there were nodes."""

    @property
    def settings_now(self) -> dict[str, str]:
        """What the kernel is told now: as the guard sees it, which stays outside of the nodes' namespaces."""
        return namespaces.kernel_settings(Path(f"/proc/{self._guards[0].pid}/root"))

    @property
    def parts(self) -> list[PlaneProcess]:
        """All its processes, in the order of their start."""
        return [*self.plane.parts.values(), *(part for node in self.nodes for part in node.parts), *self.agents]

    def start(self, archives: Sequence[Path]) -> None:
        """Enters the namespaces and starts everything; returns when the nodes are Ready and have the images."""
        self._guards = [guard.start(self._storage, [node.group for node in self.nodes])]
        network.lay(COUNT, controlplane.SERVICES)
        self._guards.append(start_guard(self.plane.root))
        self.plane.prepare()
        self.plane.parts["etcd"].start()
        self.plane.parts["kube-apiserver"].start()
        self.wait("the API server is ready", lambda: not self.plane.kubectl("get", "--raw=/readyz").returncode)
        for part in self.plane.parts.values():
            part.start()
        for node in self.nodes:
            node.start_runtime()
        self.wait("containerd answers", lambda: all(node.answers() for node in self.nodes))
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda node: [node.load(each, *images.other_names(each)) for each in archives], self.nodes))
        for node in self.nodes:
            node.kubelet.start()
        self.wait("the nodes are Ready", lambda: self.ready() == {node.name for node in self.nodes})
        for part in self.agents:  # not before: a kube-proxy ends when its node gets an address while it runs
            part.start()

    def node(self, name: str) -> Node:
        """The node of that name."""
        return next(node for node in self.nodes if node.name == name)

    def revive(self, node: Node) -> None:
        """Starts a node again that had died; returns when it is Ready."""
        node.revive()
        self.wait("containerd answers", node.answers)
        node.kubelet.start()
        self.wait(f"{node.name} is Ready", lambda: node.name in self.ready())

    def ready(self) -> set[str]:
        """The names of nodes that are Ready and take pods."""
        return {each["metadata"]["name"] for each in self.objects("nodes") if _is_ready(each)}

    def objects(self, kind: str, namespace: str = "", *more: str) -> list[dict[str, Any]]:
        """The objects of a kind (as kubectl calls it), in one namespace or in all."""
        where = f"--namespace={namespace}" if namespace else "--all-namespaces"
        found = self.plane.kubectl("get", kind, where, "--output=json", *more)
        items: list[dict[str, Any]] = json.loads(found.stdout)["items"] if not found.returncode else []
        return items

    def sections(self) -> Iterator[tuple[str, str]]:
        """What a report of a failing test tells: logs of processes and of Muster's pods, pods and Events."""
        for part in self.parts:
            yield f"{part.name} ({part.word})", part.log_tail(_LOG_LINES)
        yield "pods", self.plane.kubectl("get", "pods", "--all-namespaces", "--output=wide").stdout
        yield "events", self.plane.kubectl("get", "events", "--all-namespaces").stdout[-8000:]
        for pod in self.objects("pods", "muster-system"):
            name = pod["metadata"]["name"]
            said = self.plane.kubectl("logs", name, "--namespace=muster-system", "--all-containers", "--tail=40")
            yield f"log of {name}", said.stdout or said.stderr

    def stop(self) -> None:
        """Ends everything and removes what was stored; does no harm to what was never started."""
        for part in self.agents:
            part.stop()
        for node in self.nodes:
            node.stop()
        for part in reversed(self.plane.parts.values()):
            if part.name == "kube-apiserver":
                part.signal(signal.SIGTERM)  # its shutdown may hang on watches; the second signal ends it
            part.stop()
        for each in reversed(self._guards):
            each.communicate()
        self._guards = []

    def wait(self, what: str, condition: Callable[[], bool], timeout_s: float = _START_S) -> None:
        """Returns as soon as the condition holds; an error if a part of the control plane dies, or it is too late."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            watched = (*self.plane.parts.values(), *self.agents)
            dead = next((part for part in watched if part.started and not part.alive), None)
            if dead:
                raise dead.death()
            if time.monotonic() > deadline:
                tails = "\n".join(f"{title}: {text}" for title, text in self._tails())
                raise LocalError(f"{what}: not within {timeout_s:.0f} s.\n{tails}")
            time.sleep(_POLL_S)

    def _agents_of_the_control_plane(self) -> list[PlaneProcess]:
        """kube-proxy, which has to call itself by the name of a node, though that machine is none."""
        root, kubeconfig = self.plane.root, self.plane.kubeconfig
        return [agents.proxy("kube-proxy", root, kubeconfig, node="node-1", address=controlplane.ADDRESS, enter=())]

    def _agents_of(self, node: str, address: str, enter: tuple[str, ...]) -> list[PlaneProcess]:
        root, kubeconfig = self.plane.root, self.plane.kubeconfig
        return [
            agents.proxy(f"{node}-kube-proxy", root, kubeconfig, node=node, address=address, enter=enter),
            agents.firewall(root, kubeconfig, controlplane.SERVICES, node=node, enter=enter),
        ]

    def _tails(self) -> Iterable[tuple[str, str]]:
        return ((part.name, part.log_tail(_LOG_LINES)) for part in self.parts if part.started)


def _is_ready(node: dict[str, Any]) -> bool:
    good = any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"].get("conditions", ()))
    return good and not node["spec"].get("taints")
