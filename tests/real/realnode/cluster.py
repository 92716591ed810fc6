"""A whole plane with real nodes in place of simulated ones, in network and mount namespaces of its own."""

import contextlib
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from certs.authority import Authority
from muster.api.kubernetes.core import NODES, PODS
from musterctl.plane import state
from musterctl.plane.machine import LocalError
from musterctl.plane.pki import Pki
from musterctl.plane.plane import Plane
from musterctl.plane.process import PlaneProcess
from realnode import dns, guard, images, namespaces, programs
from realnode.node import Joined, Node

COUNT = 2
GRACE_S = 20
"""How long a node is Ready after its kubelet's last sign of life; kubelets give one every ten seconds."""
_CLIENT = "kubelet-client"
_DISK = "/var/tmp"  # noqa: S108 - gigabytes: /tmp is memory on many machines
_START_TIMEOUT_S = 60.0
_POLL_S = 0.1


class Cluster:
    """Two nodes and their plane, in a folder of the plane's; images and containers are stored on disk.

    It can be started once in a process, which is in the namespaces from then on.
    """

    def __init__(self, root: Path) -> None:
        pki = Pki(root)
        self.plane = Plane(
            root,
            set(state.COMPONENTS) - {state.KWOK},
            bound=True,
            arguments={
                state.API_SERVER: [
                    f"--kubelet-client-certificate={pki.cert_file(_CLIENT)}",
                    f"--kubelet-client-key={pki.key_file(_CLIENT)}",
                    "--kubelet-preferred-address-types=InternalIP",
                ],
                state.CONTROLLER_MANAGER: [f"--node-monitor-grace-period={GRACE_S}s"],
            },
        )
        pki.ensure()
        Authority.load(pki.folder).issue(_CLIENT, organizations=("system:masters",), client=True).save(
            pki.folder, _CLIENT
        )
        self._storage = Path(tempfile.mkdtemp(prefix="nodes-", dir=_DISK))
        run = f"muster-{self._storage.name}"
        server = self.plane.commandlines.url(state.API_SERVER, scheme="https")
        joined = Joined(self.plane.root, pki, server, images.MPI.name)
        self.nodes = [Node(number, joined, self._storage, f"{run}-{number}") for number in range(1, COUNT + 1)]
        self._another = Node(COUNT + 1, joined, self._storage, f"{run}-{COUNT + 1}")
        """A third node, for the tests that need one."""
        self._dns = dns.part(
            self.plane.root, namespaces.shared().dns, lambda: self.plane.commandlines.kubeconfig("coredns")
        )
        self._guard: subprocess.Popen[bytes] | None = None
        self.settings_before = namespaces.kernel_settings()
        """What the kernel was told before there were nodes."""

    @property
    def settings_now(self) -> dict[str, str]:
        """What the kernel is told now: as the guard sees it, which stays outside of the nodes' namespaces."""
        assert self._guard
        return namespaces.kernel_settings(Path(f"/proc/{self._guard.pid}/root"))

    @property
    def parts(self) -> list[PlaneProcess]:
        """The processes beside those of the plane."""
        return [self._dns, *(part for node in self.nodes for part in node.parts)]

    @property
    def all_nodes(self) -> list[Node]:
        """The nodes, with the third one if it is there or was."""
        return [*self.nodes, self._another]

    def start(self) -> None:
        """Enters the namespaces and starts everything; returns when the nodes are Ready."""
        self._guard = guard.start(self._storage, [node.group for node in self.all_nodes])
        namespaces.enter(COUNT + 1)
        self.plane.start()  # first, as its guard ends all that follows if this process dies
        self._dns.start()
        for node in self.nodes:
            node.start_runtime()
        self._wait("containerd answers", lambda: all(node.answers() for node in self.nodes))
        self.load(images.MPI)
        for node in self.nodes:
            node.kubelet.start()
        self._wait("the nodes are Ready", lambda: all(self.ready(node.name) for node in self.nodes))

    def load(self, image: images.Image) -> None:
        """Puts an image on every node."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda node: node.load(image.archive()), self.nodes))

    @contextlib.contextmanager
    def another(self) -> Iterator[None]:
        """Have a third node in the block."""
        one = self._another
        one.start_runtime()
        try:
            self._wait("containerd answers", one.answers)
            for image in (images.MPI, images.TORCH):
                one.load(image.archive())
            one.kubelet.start()
            self._wait("the third node is Ready", lambda: self.ready(one.name))
            yield
        finally:
            one.stop()
            self.plane.kubectl("delete", "node", one.name)

    @contextlib.contextmanager
    def dead(self, name: str) -> Iterator[None]:
        """Have a node dead in the block, as a machine without power; afterwards it is there again."""
        one = self.node(name)
        one.die()
        try:
            yield
        finally:
            one.revive()
            self._wait("containerd answers", one.answers, dead=one.kubelet)
            one.kubelet.start()
            self._wait(f"{name} is Ready again", lambda: self.ready(name))

    def node(self, name: str) -> Node:
        """The node of that name."""
        return next(node for node in self.all_nodes if node.name == name)

    def ready(self, name: str) -> bool:
        """Whether the cluster takes the node for Ready, and lets pods go there."""
        with contextlib.closing(self.plane.client()) as client:
            found = {node.metadata.name: node for node in client.list(NODES)}
        if name not in found or found[name].spec.taints:
            return False
        return any(one.type == "Ready" and one.status == "True" for one in found[name].status.conditions)

    def sections(self) -> Iterator[tuple[str, str]]:
        """What a report of a failing test tells of the nodes: their logs, and what the pods said."""
        for part in self.parts:
            yield f"{part.name} in {self.plane.root}", part.log_tail()
        yield "pods", self.plane.kubectl("get", "pods", "--all-namespaces", "--output=wide").stdout
        yield "events", self.plane.kubectl("get", "events", "--all-namespaces").stdout
        with contextlib.closing(self.plane.client()) as client:
            for pod in client.list(PODS):
                name, namespace = pod.metadata.name, pod.metadata.namespace
                said = self.plane.kubectl("logs", name, f"--namespace={namespace}", "--tail=30")
                yield f"log of pod {namespace}/{name}", said.stdout or said.stderr

    def stop(self) -> None:
        """Ends everything and removes what was stored; does no harm to what was never started."""
        for node in self.nodes:
            node.stop()
        self._dns.stop()
        self.plane.stop()
        if self._guard is not None:
            self._guard.communicate()
            self._guard = None

    def _wait(self, what: str, condition: Callable[[], bool], *, dead: PlaneProcess | None = None) -> None:
        """Wait for a condition while all processes live, but for one that is known to be `dead`."""
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not condition():
            died = next((part for part in self.parts if part.started and not part.alive and part is not dead), None)
            if died:
                raise died.death()
            if time.monotonic() > deadline:
                tails = "\n".join(f"{part.name}: {part.log_tail()}" for part in self.parts)
                raise LocalError(f"{what}: not within {_START_TIMEOUT_S:.0f} s.\n{tails}")
            time.sleep(_POLL_S)


def prepare() -> None:
    """Builds and makes everything that is not in the user's cache yet; the namespaces have no way to a mirror."""
    programs.kubelet()
    programs.coredns()
    for image in (images.MPI, images.TORCH):
        image.archive()
