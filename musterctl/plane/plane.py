"""A plane: the parts of one control plane, their folder, and starting and stopping them together."""

import contextlib
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from muster.kube.client import Client
from muster.kube.errors import APIError
from musterctl.plane import accounts, binaries, components, guard, install, nodes, rights, state
from musterctl.plane.commandlines import CommandLines
from musterctl.plane.errors import LocalError, PartError
from musterctl.plane.health import wait_ready
from musterctl.plane.machine import locked
from musterctl.plane.pki import ADMIN, Pki
from musterctl.plane.process import Part, kill_leftovers
from musterctl.plane.state import Options
from webhook import config, registration
from webhook.config import ResourceGroup

_START_TIMEOUT_S = 60.0
_REMOVE_TIMEOUT_S = 3.0
_POLL_S = 0.1
Report = Callable[[str], None]


class Plane:
    """One control plane in a folder; what an earlier process started in that folder is found again.

    `wanted` names the parts; a process of Muster's that cannot be run is left out. Options and parts count when the
    plane is made: a plane that exists keeps its own. A `bound` plane ends with this process, however that ends; one
    that is used in a `with` statement is bound. `is_new` says that the folder held none before. `arguments` are more of
    them for the command lines of parts, `settings` more fields for the files of Muster's processes, which
    are written when those are started.
    """

    def __init__(
        self,
        root: Path,
        wanted: Collection[str] = components.COMPONENTS,
        options: Options | None = None,
        *,
        bound: bool = False,
        arguments: Mapping[str, Sequence[str]] | None = None,
        settings: Mapping[str, Mapping[str, object]] | None = None,
    ) -> None:
        self.root = root.absolute()
        self._arguments = arguments or {}
        names = tuple(name for name in components.COMPONENTS if name in wanted and components.runnable(name))
        found = state.load(self.root)
        self.is_new = found is None
        self.state = found or state.create(self.root, options or Options(), names)
        self._pki = Pki(self.root)
        self.commandlines = CommandLines(
            folder=self.root,
            ports=self.state.ports,
            pki=self._pki,
            binaries=cache(lambda: binaries.find(self._programs(), self.state.options.kubernetes)),
            kubeconfig=self._kubeconfig,
            shared=self.state.options.shared,
            extender_tls=self.state.options.extender_tls,
            admission_config=self.state.options.admission_config,
            planning_config=self.state.options.planning_config,
            settings={} if settings is None else settings,
            played=components.KWOK in self.state.parts,
        )
        self.parts = {name: Part(name, self.root, self._command_of(name)) for name in self.state.parts}
        self._bound = bound
        self._guard: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._bound = True
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def attached(self) -> bool:
        """Whether the cluster is somebody else's."""
        return bool(self.state.options.kubeconfig)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig (of an attached plane: the one that was given)."""
        return self._kubeconfig(ADMIN)

    @property
    def etcd_endpoint(self) -> str:
        """The URL of etcd, for measurements that go past the API server."""
        return self.commandlines.url("etcd")

    def client(self) -> Client:
        """A new API client with the administrator's rights."""
        return Client.load(self.kubeconfig)

    def kubectl_program(self) -> Path:
        """The kubectl that belongs to the plane; for somebody else's cluster the one on the PATH."""
        if not self.attached:
            return self.commandlines.binaries()["kubectl"]
        found = shutil.which("kubectl")
        if found is None:
            raise LocalError(f"kubectl is not on the PATH; the cluster's kubeconfig is {self.kubeconfig}")
        return Path(found)

    def kubectl(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Runs kubectl with the administrator's rights; the caller looks at the exit code."""
        command = [str(self.kubectl_program()), f"--kubeconfig={self.kubeconfig}", *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)

    def part(self, name: str) -> Part:
        """The part of that name; LocalError names the parts that there are."""
        if name not in self.parts:
            raise LocalError(f"this plane has no part {name!r}; it has {', '.join(self.parts)}")
        return self.parts[name]

    def start(self, report: Report = lambda _: None) -> None:
        """Starts what does not run yet, installs what Muster needs, and returns when everything is ready.

        `report` is told what is waited for.
        """
        with locked(self.root / "lock"):
            if self._bound and self._guard is None:
                self._guard = guard.start(self.root)
            self._pki.ensure()
            if self.state.options.extender_tls:
                self._pki.ensure_extender()
            self._prepare(report)
            self._start((components.ETCD, components.API_SERVER), report)
            self._launch(components.CLUSTER)  # ready later: meanwhile the CRDs are installed
            if self.attached or components.API_SERVER in self.parts:
                self._install(report)
            self._start((components.WEBHOOK,), report)
            if components.WEBHOOK in self.parts:
                report("webhooks and runtimes")
                with contextlib.closing(self.client()) as client:
                    groups = config.parse(self.state.options.admission_config).resource_groups
                    install.webhooks(client, self._webhook_configurations(groups))
                    install.runtimes(client)
                    install.trainer_version(client)
            self._start(components.COMPONENTS, report)
            self._await("nodes are known", install.nodes_are_known, components.KWOK, report)
            self._await("the default queue is open", install.has_open_queue, components.CONTROLLER, report)

    def stop(self, report: Report = lambda _: None) -> None:
        """Ends every part, those together that need the API server; an attached plane takes its webhooks along."""
        if self.attached and components.WEBHOOK in self.parts and self.parts[components.WEBHOOK].started:
            self._remove_webhooks(report)
        for group in components.STOP_GROUPS:
            ending = [
                self.parts[name] for name in reversed(components.COMPONENTS) if name in group and name in self.parts
            ]
            for part in ending:
                part.signal(signal.SIGTERM)
            for part in ending:
                part.finish()
        kill_leftovers(self.root)
        if self._guard is not None:
            self._guard.communicate()
            self._guard = None

    def remove(self, report: Report = lambda _: None) -> None:
        """Stops the plane and removes its folder."""
        self.stop(report)
        shutil.rmtree(self.root)

    def wait_ready(self, name: str, timeout_s: float = _START_TIMEOUT_S) -> None:
        """Returns when the part is ready; raises PartError if it died or is late."""
        wait_ready(self.part(name), self.commandlines.ready_url(name), ca_file=self._pki.ca_file, timeout_s=timeout_s)

    def _prepare(self, report: Report) -> None:
        """What takes long or may fail before anything runs: the rights in somebody else's cluster, and programs."""
        if self.attached:
            report("an answer on what this kubeconfig's user may do")
            with contextlib.closing(self.client()) as client:
                rights.check(client)
        if self._programs():
            report("the programs of Kubernetes (built once, in some minutes, if they are not there)")
            self.commandlines.binaries()

    def _start(self, names: Collection[str], report: Report) -> None:
        """Starts those of the parts and waits for all of them."""
        for name in self._launch(names):
            report(name)
            self.wait_ready(name)

    def _launch(self, names: Collection[str]) -> list[str]:
        """Starts those of the parts and does not wait; answers which they are."""
        mine = [name for name in self.parts if name in names]
        for name in mine:
            self.parts[name].start()
        return mine

    def _install(self, report: Report) -> None:
        """Namespace, CRDs and, where kwok plays them, nodes; starts what makes the nodes Ready in between."""
        with contextlib.closing(self.client()) as client:
            report("namespace, roles and CRDs")
            install.namespace(client)
            install.roles(client, shared=self.state.options.shared)
            self._write_tokens(client)
            install.crds(client)
            if components.KWOK in self.parts:
                report("nodes")
                install.nodes(client, nodes.nodes(self.state.options))

    def _await(self, what: str, condition: Callable[[Client], bool], name: str, report: Report) -> None:
        """Returns when the condition, which a part brings about, holds in the cluster."""
        if name not in self.parts:
            return
        report(what)
        part = self.part(name)
        deadline = time.monotonic() + _START_TIMEOUT_S
        with contextlib.closing(self.client()) as client:
            while not condition(client):
                if not part.alive:
                    raise part.death()
                if time.monotonic() > deadline:
                    raise PartError(
                        f"{what}: not within {_START_TIMEOUT_S:.0f} s. The end of {part.log_file}:\n{part.log_tail()}"
                    )
                time.sleep(_POLL_S)

    def _webhook_configurations(self, groups: Sequence[ResourceGroup] = ()) -> list[dict[str, Any]]:
        """The webhook configurations that point to this plane's webhook."""
        return registration.configurations(
            url=self.commandlines.url("webhook", scheme="https"),
            ca_bundle=self._pki.ca_file.read_bytes(),
            groups=groups,
        )

    def _remove_webhooks(self, report: Report) -> None:
        """Takes the webhook configurations out of somebody else's cluster, if that still answers."""
        try:
            with contextlib.closing(Client.load(self.kubeconfig, timeout_s=_REMOVE_TIMEOUT_S)) as client:
                install.remove_webhooks(client, self._webhook_configurations())
        except APIError as error:
            report(f"the webhook configurations stay in the cluster: {error}")

    def _command_of(self, name: str) -> Callable[[], list[str]]:
        """How to start a part, worked out only when it is started."""
        return lambda: [*self.commandlines.command(name), *self._arguments.get(name, ())]

    def renew_tokens(self, report: Report) -> None:
        """Gives Muster's processes new tokens, which they take up while they run; says what was in the way."""
        try:
            with contextlib.closing(self.client()) as client:
                self._write_tokens(client)
        except APIError as error:
            report(f"the tokens of Muster's processes are not renewed: {error}")

    def _write_tokens(self, client: Client) -> None:
        accounts.renew_tokens(client, self._tokens, shared=self.state.options.shared)

    @property
    def _tokens(self) -> Path:
        return self.root / "tokens"

    def _kubeconfig(self, user: str) -> Path:
        """The kubeconfig of a user of this plane."""
        account = accounts.accounts(shared=self.state.options.shared).get(user)
        if account is not None:
            target = self.root / f"{user}.kubeconfig"
            return accounts.kubeconfig(self.kubeconfig, account.name, self._tokens, target)
        if self.attached:
            return Path(self.state.options.kubeconfig)
        return self._pki.kubeconfig(user, self.commandlines.url(components.API_SERVER, scheme="https"))

    def _programs(self) -> tuple[str, ...]:
        """The binaries that this plane needs."""
        used = {components.program_of(name) for name in self.parts if name not in components.OWN_PROCESSES}
        return tuple(sorted(used | ({"kubectl"} if not self.attached else set())))
