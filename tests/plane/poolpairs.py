"""The pair of a node pool beside that of a plane: kube-scheduler and extender, with a token of their own."""

import base64
import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from pairs import ended, replaced, resettled, started
from replicas import answers

from muster.api.kubernetes.core import NODES
from muster.api.muster.pools import lease_of
from muster.api.names import NODE_POOL, SYSTEM_NAMESPACE
from musterctl.chart import files, roles
from musterctl.chart.files import ExtenderAt
from musterctl.plane import install, rights
from musterctl.plane.machine import free_ports
from musterctl.plane.plane import Plane
from musterctl.plane.state import EXTENDER, MUSTER_SCHEDULER


class PoolPair:
    """Both processes of a pool. Its token tells the audit log that it was this pair."""

    def __init__(self, plane: Plane, pool: str, folder: Path, wait_for: Callable[..., Any]) -> None:
        self.pool, self._plane, self._folder, self._wait_for = pool, plane, folder, wait_for
        names = ("extender", "extender-status", "scheduler")
        self.ports = dict(zip(names, free_ports(len(names), plane.state.ports.values()), strict=True))
        self.credential = ""
        self._commands = self._written()
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Starts what does not run, and waits until it answers."""
        for part, command in self._commands.items():
            if part not in self._running:
                self._running[part] = started(command, self._folder / f"{part}.log")
        url = f"http://127.0.0.1:{self.ports['extender-status']}"
        self._wait_for(lambda: answers(f"{url}/healthz"), 60, f"the extender of pool {self.pool}")

    def kill(self, *parts: str) -> None:
        """SIGKILL; of both, if none is named."""
        for part in parts or tuple(self._commands):
            if part in self._running:
                ended(self._running.pop(part))

    @property
    def lease(self) -> str:
        """The name of its Lease."""
        return lease_of(self.pool)

    @property
    def metrics(self) -> str:
        """The URL of the extender's metrics."""
        return f"http://127.0.0.1:{self.ports['extender-status']}/metrics"

    def log(self, part: str) -> str:
        """What a process of it has said since it was started last."""
        return (self._folder / f"{part}.log").read_text(errors="replace")

    def _written(self) -> dict[str, list[str]]:
        plane, ports = self._plane, self.ports
        made = {part: plane.commandlines.command(part) for part in (EXTENDER, MUSTER_SCHEDULER)}
        kubeconfig = self._kubeconfig()
        config = self._folder / "scheduler.yaml"
        at = ExtenderAt(f"http://127.0.0.1:{ports['extender']}")
        content = files.kube_scheduler(kubeconfig=str(kubeconfig), extender=at, pool=self.pool)
        config.write_text(yaml.safe_dump(content))
        own: dict[str, object] = {"port": ports["extender"], "statusPort": ports["extender-status"]}
        fields = {**own, "nodePool": self.pool, "leaseName": ""}
        extender = resettled(made[EXTENDER], self._folder / "extender-settings.yaml", fields)
        return {
            EXTENDER: replaced(extender, {"--kubeconfig": kubeconfig}),
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


@contextmanager
def pool_pair(
    plane: Plane, pool: str, nodes: list[str], folder: Path, wait_for: Callable[..., Any]
) -> Iterator[PoolPair]:
    """The pair of a pool that has these nodes of the plane."""
    client = plane.client()
    install.apply(client, roles.of_pool(pool, SYSTEM_NAMESPACE))
    for name in nodes:
        client.merge_patch(NODES, name, {"metadata": {"labels": {NODE_POOL: pool}}})
    pair = PoolPair(plane, pool, folder, wait_for)
    try:
        pair.start()
        yield pair
    finally:
        pair.kill()
