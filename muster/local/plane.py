"""A plane: the parts of one control plane, their folder, and starting and stopping them together."""

import shutil
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from muster.local import binaries, nodes, parts, state
from muster.local.errors import LocalError
from muster.local.install import Installer
from muster.local.pki import ADMIN, Pki
from muster.local.process import Part
from muster.local.ready import wait_ready
from muster.local.state import Options

if TYPE_CHECKING:
    from muster.kube.client import Client

_START_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class PartStatus:
    """How a part is."""

    name: str
    pid: int | None
    started: bool

    @property
    def word(self) -> str:
        """running, dead (it was started and is gone) or stopped."""
        return "running" if self.pid else "dead" if self.started else "stopped"


class Plane:
    """One control plane in a folder; what an earlier process started in that folder is found again.

    `wanted` names the parts; a process of Muster's that cannot be run yet is left out. Options and parts count when the
    plane is made; a plane that exists keeps its own.
    """

    def __init__(self, root: Path, wanted: Collection[str] = parts.PARTS, options: Options | None = None) -> None:
        self.root = root.absolute()
        names = tuple(name for name in parts.PARTS if name in wanted and parts.runnable(name))
        self.state = state.load(self.root) or state.create(self.root, options or Options(), names)
        self._pki = Pki(self.root)
        self.site = parts.Site(
            folder=self.root,
            ports=self.state.ports,
            pki=self._pki,
            binaries=cache(lambda: binaries.find(self._programs())),
            kubeconfig=self._kubeconfig,
        )
        self.parts = {name: self._part(name) for name in self.state.parts}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self._kubeconfig(ADMIN)

    @property
    def etcd_endpoint(self) -> str:
        """The URL of etcd."""
        return self.site.url("etcd")

    def client(self) -> "Client":
        """A new API client with the administrator's rights."""
        from muster.kube.client import Client  # noqa: PLC0415 # a plane can be stopped without it

        return Client.load(self.kubeconfig)

    def part(self, name: str) -> Part:
        """One part."""
        if name not in self.parts:
            raise LocalError(f"this plane has no part {name!r}; it has {', '.join(self.parts)}")
        return self.parts[name]

    def start(self, report: Callable[[str], None] = lambda _: None) -> None:
        """Starts what does not run yet, installs what Muster needs, and returns when everything is ready."""
        self._pki.ensure()
        if not self.state.options.kubeconfig:
            self._start({parts.ETCD, parts.API_SERVER}, report)
        if parts.API_SERVER in self.parts or self.state.options.kubeconfig:
            installer = Installer(self.site.binaries()["kubectl"], self.kubeconfig)
            report("namespace and CRDs")
            installer.namespace()
            installer.crds()
            if parts.KWOK in self.parts:
                report("nodes")
                installer.create(nodes.nodes(self.state.options))
        self._start(set(self.parts), report)

    def stop(self) -> None:
        """Ends every part, those first that were started last."""
        for name in reversed(parts.PARTS):
            if name in self.parts:
                self.parts[name].stop()

    def remove(self) -> None:
        """Stops the plane and removes its folder."""
        self.stop()
        shutil.rmtree(self.root)

    def wait_ready(self, name: str, timeout_s: float = _START_TIMEOUT_S) -> None:
        """Returns when the part is ready; raises PartError if it died or is late."""
        wait_ready(self.part(name), self.site.ready_url(name), ca_file=self._pki.ca_file, timeout_s=timeout_s)

    def status(self) -> list[PartStatus]:
        """How each part is, in the order in which they are started."""
        return [PartStatus(name, part.pid, part.started) for name, part in self.parts.items()]

    def _start(self, names: set[str], report: Callable[[str], None]) -> None:
        """Starts those of the parts and waits for all of them."""
        mine = [name for name in self.parts if name in names]
        for name in mine:
            self.parts[name].start()
        for name in mine:
            report(name)
            self.wait_ready(name)

    def _part(self, name: str) -> Part:
        """The handle of a part."""
        return Part(name, self.root, lambda: self.site.command(name))

    def _kubeconfig(self, user: str) -> Path:
        """The kubeconfig of a user of this plane."""
        if self.state.options.kubeconfig:
            return Path(self.state.options.kubeconfig)
        return self._pki.kubeconfig(user, self.site.url(parts.API_SERVER, scheme="https"))

    def _programs(self) -> tuple[str, ...]:
        """The binaries that this plane needs."""
        used = {parts.program_of(name) for name in self.parts if name not in parts.OWN_PROCESSES}
        return tuple(sorted(used | {"kubectl"}))
