"""Every process of a plane twice, as the chart has them: a second one of each, and a Service before the webhooks.

A Service is played by a forwarder that does as kube-proxy does: each new connection goes to any endpoint, and an
endpoint is one as long as it says that it is ready. Who is sent to a dead one is refused.
"""

import base64
import json
import os
import random
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import yaml
from gang_jobs import attempt, job
from pairs import ended, option, replaced, resettled, started

from muster.api import names
from muster.api.kubernetes.core import LEASES, PODS
from muster.api.kubernetes.extensions import WEBHOOK_CONFIGURATIONS
from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from muster.kube.errors import APIError
from musterctl.plane import rights
from musterctl.plane.machine import free_ports
from musterctl.plane.plane import Plane
from musterctl.plane.state import CONTROLLER, EXTENDER, MUSTER_SCHEDULER, WEBHOOK

OTHER_HOST = "other"
PARTS = {WEBHOOK: (WEBHOOK,), CONTROLLER: (CONTROLLER,), "scheduler": (EXTENDER, MUSTER_SCHEDULER)}
"""The pods of the chart, and the processes in each."""
LEASE_OF = {CONTROLLER: names.CONTROLLER_LEASE, "scheduler": names.SCHEDULER_LEASE}
_PROBE_S = 1.0


class Second:
    """The second process of each part; it has a token of its own, so that the audit log tells it from the first."""

    def __init__(self, plane: Plane, folder: Path) -> None:
        self._plane, self._folder = plane, folder
        names_ = ("webhook", "webhook-status", "extender", "extender-status", "controller", "reports", "scheduler")
        self.ports = dict(zip(names_, free_ports(len(names_), plane.state.ports.values()), strict=True))
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self.credential = ""
        """What the audit log calls the token of its kube-scheduler and extender."""
        self._commands = self._written()

    def start(self, *parts: str) -> None:
        """Starts processes that do not run."""
        for part in parts:
            log = self._folder / f"{part}.log"
            host = "" if part == WEBHOOK else OTHER_HOST
            self._running[part] = started(self._commands[part], log, host=host)

    def kill(self, *parts: str) -> None:
        """SIGKILL."""
        for part in parts:
            ended(self._running.pop(part))

    def end(self, *parts: str) -> None:
        """SIGTERM, and waits until they have ended."""
        for part in parts:
            process = self._running.pop(part)
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(30)

    def stop(self) -> None:
        """Ends all that run."""
        self.kill(*self._running)

    def _written(self) -> dict[str, list[str]]:
        plane, ports = self._plane, self.ports
        made = {part: plane.commandlines.command(part) for part in (WEBHOOK, CONTROLLER, EXTENDER, MUSTER_SCHEDULER)}
        scheduler = yaml.safe_load(Path(option(made[MUSTER_SCHEDULER], "--config")).read_text())
        with_token = self._kubeconfig()
        for entry in scheduler["extenders"]:
            entry["urlPrefix"] = f"http://127.0.0.1:{ports['extender']}"
        scheduler["clientConnection"]["kubeconfig"] = str(with_token)
        config = self._folder / "scheduler.yaml"
        config.write_text(yaml.safe_dump(scheduler))
        settings: dict[str, dict[str, object]] = {
            WEBHOOK: {"port": ports["webhook"], "statusPort": ports["webhook-status"]},
            CONTROLLER: {"statusPort": ports["controller"], "reportPort": ports["reports"]},
            EXTENDER: {"port": ports["extender"], "statusPort": ports["extender-status"]},
        }
        own = {
            part: resettled(made[part], self._folder / f"{part}-settings.yaml", fields)
            for part, fields in settings.items()
        }
        return {
            **own,
            EXTENDER: replaced(own[EXTENDER], {"--kubeconfig": with_token}),
            MUSTER_SCHEDULER: replaced(
                made[MUSTER_SCHEDULER], {"--config": config, "--secure-port": ports["scheduler"]}
            ),
        }

    def _kubeconfig(self) -> Path:
        account = rights.accounts(shared=False)[EXTENDER].name
        token = rights.new_token(self._plane.client(), account)
        payload = token.split(".")[1]
        self.credential = f"JTI={json.loads(base64.urlsafe_b64decode(payload + '=' * (-len(payload) % 4)))['jti']}"
        rights.token_file(self._folder, account).write_text(token)
        return rights.kubeconfig(self._plane.kubeconfig, account, self._folder, self._folder / "kubeconfig")


class Replicas:
    """Both processes of each part."""

    def __init__(self, plane: Plane, folder: Path, wait_for: Callable[..., Any]) -> None:
        self.plane, self.client, self._wait_for = plane, plane.client(), wait_for
        self.second = Second(plane, folder)

    def leads(self, pod: str) -> str:
        """Which of them leads: first, second, or nobody yet."""
        held = [one for one in self.client.list(LEASES, names.SYSTEM_NAMESPACE) if one.metadata.name == LEASE_OF[pod]]
        holder = held[0].spec.holder_identity if held else ""
        return ("second" if holder.startswith(f"{OTHER_HOST}_") else "first") if holder else ""

    def kill(self, pod: str, which: str) -> None:
        """The first or the second of a pod, with all its processes."""
        if which == "second":
            self.second.kill(*PARTS[pod])
        else:
            for part in PARTS[pod]:
                self.plane.part(part).kill()

    def end(self, pod: str, which: str) -> None:
        """The same, as a kubelet ends a pod."""
        if which == "second":
            self.second.end(*PARTS[pod])
        else:
            for part in PARTS[pod]:
                self.plane.part(part).stop()

    def start(self, pod: str, which: str) -> None:
        """What was killed, until it could take over."""
        if which == "second":
            self.second.start(*PARTS[pod])
        else:
            for part in PARTS[pod]:
                self.plane.part(part).start()
        for url in self._health(pod, which):
            self._wait_for(lambda url=url: answers(url), 60, f"{url} of the {which} {pod}")

    def _health(self, pod: str, which: str) -> list[str]:
        first, second = self.plane.state.ports, self.second.ports
        status = {
            WEBHOOK: (first["webhook-status"], second["webhook-status"], "readyz"),
            CONTROLLER: (first["controller-status"], second["controller"], "readyz"),
            "scheduler": (first["extender-status"], second["extender-status"], "healthz"),
        }[pod]
        return [f"http://127.0.0.1:{status[which == 'second']}/{status[2]}"]

    def signal_first(self, pod: str, number: int) -> None:
        """To the first's processes and their children."""
        for part in PARTS[pod]:
            pid = self.plane.part(part).pid
            if pid is not None:
                with suppress(ProcessLookupError):
                    os.killpg(os.getpgid(pid), number)

    @contextmanager
    def service(self) -> Iterator[None]:
        """The API server calls both webhooks through a Service."""
        (port,) = free_ports(1, [*self.plane.state.ports.values(), *self.second.ports.values()])
        targets = [
            (ports["webhook"], f"http://127.0.0.1:{ports['webhook-status']}/readyz")
            for ports in (self.plane.state.ports, self.second.ports)
        ]
        before = f"https://127.0.0.1:{self.plane.state.ports['webhook']}"
        with Forwarder(port, targets):
            self._call(before, f"https://127.0.0.1:{port}")
            try:
                yield
            finally:
                self._call(f"https://127.0.0.1:{port}", before)

    def _call(self, old: str, new: str) -> None:
        for kind in WEBHOOK_CONFIGURATIONS:
            webhooks = json.loads(self.client.request("GET", kind.path(None, names.WEBHOOKS)))["webhooks"]
            for each in webhooks:
                each["clientConfig"]["url"] = each["clientConfig"]["url"].replace(old, new)
            self.client.merge_patch(kind, names.WEBHOOKS, {"webhooks": webhooks})


def answers(url: str) -> bool:
    """Whether a process says that it is well."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310 - our own
            return bool(answer.status == 200)
    except OSError:
        return False


def accept_all(listener: socket.socket, connect: Callable[[socket.socket], None]) -> None:
    """Connects each client of a proxy in a thread of its own, until the listener is closed."""
    with suppress(OSError):
        while True:
            asking, _ = listener.accept()
            threading.Thread(target=connect, args=(asking,), daemon=True).start()


class Forwarder:
    """A port whose connections go on to any target that says it is ready."""

    def __init__(self, port: int, targets: Sequence[tuple[int, str]]) -> None:
        self._targets = targets
        self._ready: list[int] = []
        self._listener = socket.create_server(("127.0.0.1", port), backlog=128)
        self._ending = threading.Event()

    def __enter__(self) -> Self:
        self._probe()
        for work in (lambda: accept_all(self._listener, self._connect), self._watch):
            threading.Thread(target=work, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _watch(self) -> None:
        while not self._ending.wait(_PROBE_S):
            self._probe()

    def _probe(self) -> None:
        self._ready = [port for port, url in self._targets if answers(url)]

    def _connect(self, asking: socket.socket) -> None:
        try:
            answering = socket.create_connection(("127.0.0.1", random.choice(self._ready)), 5)  # noqa: S311 - any
        except (OSError, IndexError):
            asking.close()
            return
        answering.settimeout(None)
        for one, other in ((asking, answering), (answering, asking)):
            threading.Thread(target=_copy, args=(one, other), daemon=True).start()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()


class Users:
    """Pods that ask for Muster, so many a minute, and a gang every second; what is refused is tried again at once."""

    def __init__(self, client: Client, namespace: str, pods_per_minute: float) -> None:
        self._client, self._namespace, self._pause_s = client, namespace, 60 / pods_per_minute
        self.created = 0
        self.gangs = 0
        self.refused = 0
        self.longest_s = 0.0
        """How long a creation was refused at most."""
        self.unshaped: list[str] = []
        self._ending = threading.Event()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._make_pods, self._make_gangs)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def _make_pods(self) -> None:
        due_s = time.monotonic()
        while not self._ending.wait(max(0.0, due_s - time.monotonic())):
            due_s += self._pause_s
            pod: dict[str, Any] = {
                "metadata": {
                    "generateName": "load-",
                    "labels": {names.QUEUE: "default"},
                    "annotations": {"kwok.muster.dev/run-seconds": "1"},
                },
                "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]},
            }
            began_s = time.monotonic()
            while not self._ending.is_set():
                try:
                    made = self._client.create(PODS, pod, self._namespace)
                except APIError:
                    self.refused += 1
                    self._ending.wait(0.05)
                    continue
                self.created += 1
                if made.spec.scheduler_name != names.SCHEDULER:
                    self.unshaped.append(made.metadata.name)
                self.longest_s = max(self.longest_s, time.monotonic() - began_s)
                break

    def _make_gangs(self) -> None:
        while not self._ending.wait(1.0):
            self.gangs += 1
            manifest = job(f"gang-{self.gangs}", self._namespace, replicas=4, gpus=1, run_s=2)
            attempt(lambda one=manifest: self._client.create(JOBS, one, self._namespace))


def stop_signal(*, on: bool) -> int:
    """Freezes, or lets go on."""
    return signal.SIGSTOP if on else signal.SIGCONT
