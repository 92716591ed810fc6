"""A local control plane: its folder, and its components, which are started and stopped together."""

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from muster.kube.client import Client
from muster.kube.errors import APIError
from musterctl.plane import binaries, install, rights, state
from musterctl.plane.commandlines import CommandLines
from musterctl.plane.health import trouble_at, wait_until
from musterctl.plane.machine import LocalError, locked
from musterctl.plane.pki import ADMIN, Pki
from musterctl.plane.process import PlaneProcess, kill_leftovers, start_guard
from musterctl.plane.state import PlaneOptions
from webhook import config, registration

_START_TIMEOUT_S: Final = 60.0
_REMOVE_TIMEOUT_S: Final = 3.0
Report = Callable[[str], None]


class Plane:
    """A local control plane in a folder; components that an earlier process has started in the folder are found again.

    `wanted` names the components. Options and components are chosen when the control plane is created; an existing
    control plane keeps its options and components. A `bound` control plane ends with this process, however the process
    ends; in a `with` statement, a control plane is bound. `is_new` is true if the folder contained no control plane
    before. `arguments` are additional command-line arguments of components; changed arguments take effect when a
    component is started. `settings` are additional fields for the settings files of Muster's processes, which are
    written when a process is started.
    """

    def __init__(
        self,
        root: Path,
        wanted: Collection[str] = state.COMPONENTS,
        options: PlaneOptions | None = None,
        *,
        bound: bool = False,
        arguments: Mapping[str, Sequence[str]] | None = None,
        settings: Mapping[str, Mapping[str, object]] | None = None,
    ) -> None:
        self.root = root.absolute()
        self.arguments: dict[str, Sequence[str]] = dict(arguments or {})
        names = state.parts_of(wanted, options.pool if options else ())
        found = state.load(self.root)
        self.is_new = found is None
        self.state = found or state.create(self.root, options or PlaneOptions(), names)
        self._pki = Pki(self.root)
        self.commandlines = CommandLines(
            folder=self.root,
            current_options=lambda: self.state.options,
            ports=self.state.ports,
            pki=self._pki,
            binaries=cache(lambda: binaries.find_programs(self._programs(), self.state.options.kubernetes)),
            kubeconfig=self._kubeconfig,
            settings={} if settings is None else settings,
            played=state.KWOK in self.state.parts,
        )
        supervising = [sys.executable, "-m", "musterctl.plane.supervisor", str(self.root)]
        self.supervisor = PlaneProcess("supervisor", self.root, lambda: supervising)
        """Process that restarts dead components; only a control plane in the background has such a process."""
        self.parts = {name: PlaneProcess(name, self.root, self._command_of(name)) for name in self.state.parts}
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
        """Return True if Muster is attached to a cluster that existed before."""
        return bool(self.state.options.kubeconfig)

    @property
    def kubeconfig(self) -> Path:
        """Return the path of the administrator's kubeconfig, or of the user's kubeconfig for an attached cluster."""
        return self._kubeconfig(ADMIN)

    def client(self) -> Client:
        """Return a new API client with the administrator's rights."""
        return Client.load(self.kubeconfig)

    def kubectl_program(self) -> Path:
        """Return the path of the control plane's kubectl, or of the kubectl on the PATH for an attached cluster."""
        if not self.attached:
            return self.commandlines.binaries()["kubectl"]
        found = shutil.which("kubectl")
        if found is None:
            raise LocalError(f"kubectl is not on the PATH; the cluster's kubeconfig is {self.kubeconfig}")
        return Path(found)

    def kubectl(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run kubectl with the administrator's rights, and return the result; the caller must check the exit code."""
        command = [str(self.kubectl_program()), f"--kubeconfig={self.kubeconfig}", *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)

    def part(self, name: str) -> PlaneProcess:
        """Return the component with this name.

        If the control plane has no such component, raise LocalError, which lists the existing components.
        """
        if name not in self.parts:
            raise LocalError(f"this control plane has no component {name!r}; it has {', '.join(self.parts)}")
        return self.parts[name]

    def alone(self) -> AbstractContextManager[None]:
        """Lock the control plane within the `with` block, so that no other process starts or stops its components."""
        return locked(self.root / "lock")

    def start(self, report: Report = lambda _: None) -> None:
        """Start missing components, install the objects that Muster needs, and wait for all components.

        `report` is called with a description of each awaited condition.
        """
        with self.alone():
            if self._bound and self._guard is None:
                self._guard = start_guard(self.root)
            self._pki.ensure(extender_tls=self.state.options.extender_tls)
            with closing(self.client()) as client:
                if self.attached:
                    report("the API server to check the rights of this kubeconfig's user")
                    rights.check_rights(client)
                if self._programs():
                    report("the programs of Kubernetes (built once if they are missing, which takes a few minutes)")
                    self.commandlines.binaries()
                self._start_all(client, report)

    def _start_all(self, client: Client, report: Report) -> None:
        """Start the components in order; before each group of components, install the objects that the group needs."""
        self._start((state.ETCD, state.API_SERVER), report)
        self._launch(state.CLUSTER)  # these become ready while the CRDs are installed
        if self.attached or state.API_SERVER in self.parts:
            self._install(client, report)
        self._launch((state.HISTORY,))  # no need to wait: it also records earlier events
        self._start((state.WEBHOOK,), report)
        if state.WEBHOOK in self.parts:
            report("webhooks and runtimes")
            groups = config.parse(self.state.options.admission_config)
            url, ca_bundle = self.commandlines.url("webhook", scheme="https"), self._pki.ca_file.read_bytes()
            install.apply(client, registration.configurations(url=url, ca_bundle=ca_bundle, groups=groups))
            install.runtimes(client)
            install.trainer_version(client)
        self._start(state.COMPONENTS, report)
        self._await(state.KWOK, "the nodes", lambda: install.unknown_nodes(client), report)
        self._await(state.CONTROLLER, "the default queue", lambda: install.closed_queue(client), report)

    def mend(self) -> None:
        """Start the components that have died, in order, and wait until they are ready; install no objects."""
        with self.alone():
            self._start((state.ETCD, state.API_SERVER), lambda _: None)
            self._start(state.ALL, lambda _: None)

    def restart(self, name: str) -> None:
        """Start or restart a component, and wait until the component is ready."""
        part = self.part(name)
        with self.alone():
            part.restart()
            self.wait_ready(name)

    def stop(self, report: Report = lambda _: None) -> None:
        """Stop every component; all clients of the API server are stopped at the same time.

        If Muster is attached to a cluster, remove the webhook configurations.
        """
        if self.supervisor.started:
            self.supervisor.stop()
        if self.attached and state.WEBHOOK in self.parts and self.parts[state.WEBHOOK].started:
            self._remove_webhooks(report)
        for group in state.STOP_GROUPS:
            ending = [part for name, part in reversed(self.parts.items()) if state.base_of(name) in group]
            for part in ending:
                part.signal(signal.SIGTERM)
            for part in ending:
                part.finish()
        kill_leftovers(self.root)
        if self._guard is not None:
            self._guard.communicate()
            self._guard = None

    def remove(self, report: Report = lambda _: None) -> None:
        """Stop the control plane and remove its folder."""
        self.stop(report)
        shutil.rmtree(self.root)

    def wait_ready(self, name: str, timeout_s: float = _START_TIMEOUT_S) -> None:
        """Wait until the component is ready; raise LocalError if the component dies or takes too long."""
        scheme, port, path = state.ready(name)
        url = self.commandlines.url(port, scheme=scheme) + path
        wait_until(self.part(name), lambda: trouble_at(url, self._pki.ca_file), timeout_s)

    def trouble(self, name: str) -> str:
        """Return the reason why a process of Muster is not ready; "" if it is ready, and for all other components."""
        if not state.is_own(name) or not self.part(name).alive:
            return ""
        scheme, port, _ = state.ready(name)
        return trouble_at(self.commandlines.url(port, scheme=scheme) + "/readyz", self._pki.ca_file)

    def _start(self, names: Collection[str], report: Report) -> None:
        """Start the given components, if the control plane has them, and wait until all of them are ready."""
        for name in self._launch(names):
            report(name)
            self.wait_ready(name)

    def _launch(self, names: Collection[str]) -> list[str]:
        """Start all components with these base names, without waiting; return the names of the components."""
        mine = [name for name in self.parts if state.base_of(name) in names]
        for name in mine:
            self.parts[name].start()
        return mine

    def _await(self, name: str, what: str, trouble: Callable[[], str], report: Report) -> None:
        """Wait for a condition that depends on a component; return at once if the control plane lacks it."""
        if name in self.parts:
            report(what)
            wait_until(self.parts[name], trouble, _START_TIMEOUT_S)

    def _install(self, client: Client, report: Report) -> None:
        """Install the namespace, roles and CRDs, and the nodes if kwok simulates nodes."""
        report("namespace, roles and CRDs")
        install.roles(client, shared=self.state.options.shared, pools=self.state.options.pool)
        self._write_tokens(client)
        install.crds(client)
        if state.KWOK in self.parts:
            report("nodes")
            install.nodes(client, self.state.options, self.state.ports[state.KWOK])

    def _remove_webhooks(self, report: Report) -> None:
        """Remove the webhook configurations from the user's cluster, if the cluster still answers."""
        try:
            with closing(Client.load(self.kubeconfig, timeout_s=_REMOVE_TIMEOUT_S)) as client:
                install.remove_webhooks(client)
        except APIError as error:
            report(f"the webhook configurations could not be removed from the cluster: {error}")

    def _command_of(self, name: str) -> Callable[[], list[str]]:
        """Return a function that computes a component's command line; it is called at each start of the component."""
        return lambda: [*self.commandlines.command(name), *self.arguments.get(name, ())]

    def renew_tokens(self, report: Report) -> None:
        """Give Muster's processes new tokens, which running processes reload; call `report` if this fails."""
        try:
            with closing(self.client()) as client:
                self._write_tokens(client)
        except APIError as error:
            report(f"the tokens of Muster's processes could not be renewed: {error}")

    def _write_tokens(self, client: Client) -> None:
        options = self.state.options
        rights.renew_tokens(client, self._tokens, shared=options.shared, pools=options.pool)

    @property
    def _tokens(self) -> Path:
        return self.root / "tokens"

    def _kubeconfig(self, user: str) -> Path:
        account = rights.accounts(shared=self.state.options.shared).get(state.base_of(user))
        if account is not None:
            target, token = self.root / f"{user}.kubeconfig", state.in_pool(account.name, state.pool_of(user))
            return rights.kubeconfig(self.kubeconfig, token, self._tokens, target)
        if self.attached:
            return Path(self.state.options.kubeconfig)
        return self._pki.kubeconfig(user, self.commandlines.url(state.API_SERVER, scheme="https"))

    def _programs(self) -> tuple[str, ...]:
        used = {state.program_of(name) for name in self.parts if not state.is_own(name)}
        return tuple(sorted(used | ({"kubectl"} if not self.attached else set())))
