"""One node: a kubelet and the containerd that it drives."""

import os
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from musterctl.plane.pki import Pki
from musterctl.plane.process import PlaneProcess
from realnode import cgroups, containerd, kubelet, namespaces, oci, programs
from realnode.namespaces import Place

_RUN = Path("/run")
_NAMESPACE = "k8s.io"
"""containerd's namespace of everything that kubelet makes and sees."""


@dataclass(frozen=True)
class Joined:
    """The control plane that a node joins."""

    root: Path
    """Its folder, which gets pid files and logs of the nodes, too."""
    pki: Pki
    server: str
    """The URL of the API server."""
    sandbox: str
    """The image that holds a pod's namespaces; every node must have it."""


class Node:
    """A node of a control plane, whose pid files and logs lie with that one's own.

    Images and containers are kept in `storage`; `group` is the node's control group, below which its containers run;
    `place` is where it is in the network, by default on the bridge of all.
    """

    def __init__(self, number: int, joined: Joined, storage: Path, group: str, place: Place | None = None) -> None:
        self.name = f"node-{number}"
        self.group = group
        self._number = number
        self._joined = joined
        self._place = place or namespaces.shared()
        self._folder = storage / self.name
        self._state = _RUN / self.name
        self.containerd = PlaneProcess(f"{self.name}-containerd", joined.root, self._containerd)
        self.kubelet = PlaneProcess(f"{self.name}-kubelet", joined.root, self._kubelet)

    @property
    def parts(self) -> tuple[PlaneProcess, PlaneProcess]:
        """Its processes, in the order in which they are started."""
        return self.containerd, self.kubelet

    def start_runtime(self) -> None:
        """Starts containerd, which needs a moment until it answers."""
        self._folder.mkdir(parents=True)
        self._state.mkdir()
        cgroups.make(self.group)
        self.containerd.start()

    def answers(self) -> bool:
        """Whether containerd does."""
        return self._ctr("version").returncode == 0

    def load(self, archive: Path, *names: str) -> None:
        """Puts the image of an OCI archive into containerd's store, by its name, its digest, and other names."""
        self._images("import", str(archive))
        name, digest = oci.name_and_digest(archive)
        for other in (f"{name.rpartition(':')[0]}@{digest}", *names):
            self._images("tag", "--force", name, other)

    def _images(self, *arguments: str) -> None:
        result = self._ctr("images", *arguments)
        if result.returncode:
            raise OSError(f"{self.name}: ctr images {' '.join(arguments)}: {result.stderr.strip()}")

    def kill(self, container_id: str) -> None:
        """Ends the first process of a container by SIGKILL, as the kernel would; `container_id` as in a pod's status.

        Neither kubelet nor containerd is asked for it: they find out.
        """
        wanted = container_id.partition("://")[2]
        tasks = (line.split() for line in self._ctr("tasks", "list").stdout.splitlines())
        pids = [int(pid) for name, pid, *_ in tasks if name == wanted]
        if not pids:
            raise ProcessLookupError(f"{self.name} runs no container {container_id}")
        os.kill(pids[0], signal.SIGKILL)

    def die(self) -> None:
        """Ends everything at once, as when the machine loses its power: nobody is told."""
        self.kubelet.kill()
        self.containerd.kill()
        cgroups.end(self.group)

    def revive(self) -> None:
        """Starts containerd again after `die`; the kubelet is to follow when that answers."""
        cgroups.make(self.group)
        self.containerd.start()

    def stop(self) -> None:
        """Ends everything: kubelet, so that nothing is started again, the containers, containerd."""
        self.kubelet.stop()
        cgroups.end(self.group)
        self.containerd.stop()

    def _containerd(self) -> list[str]:
        file = containerd.configure(self._folder, self._state, self._number, self._place, self._joined.sandbox)
        return [*self._place.enter, shutil.which("containerd") or "containerd", f"--config={file}"]

    def _kubelet(self) -> list[str]:
        arguments = kubelet.configure(
            self._folder,
            self.name,
            self._number,
            self._place,
            pki=self._joined.pki,
            server=self._joined.server,
            group=self.group,
            socket=containerd.socket(self._state),
        )
        return [*self._place.enter, str(programs.kubelet()), *arguments]

    def _ctr(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["ctr", f"--address={containerd.socket(self._state)}", f"--namespace={_NAMESPACE}", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)
