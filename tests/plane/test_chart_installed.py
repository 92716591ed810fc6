"""The chart installed with helm, and its containers run as it renders them: gangs run, and nothing is refused."""

import copy
import io
import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import audits
import containers
import pytest
import yaml
from containers import Machine
from rich.console import Console

from certs.authority import Authority
from charts import NAMESPACE
from muster.api.base import Resource
from muster.api.batch import JOBS
from muster.api.core import LEASES, SECRETS
from muster.api.scheduling import QUEUES
from muster.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from muster.kube.client import Client
from musterctl.chart.files import CHART
from musterctl.chart.render import helm
from musterctl.commands import demo
from musterctl.plane.components import CLUSTER
from musterctl.plane.machine import free_ports
from musterctl.plane.plane import Plane

pytestmark = [
    pytest.mark.plane,
    pytest.mark.skipif(bool(containers.possible()), reason=f"no containers here: {containers.possible()}"),
]
WaitFor = Callable[..., Any]
JSON = dict[str, Any]
_ADMISSION = "admissionregistration.k8s.io"
CONFIGURATIONS: tuple[Resource[JSON], ...] = tuple(
    Resource(_ADMISSION, "v1", f"{kind.lower()}s", kind, dict[str, Any], namespaced=False)
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
)
REPLICAS = {"webhook": 2, "scheduler": 1, "controller": 2}
"""One pair only: the extenders of two would listen at one address, as they share this machine's loopback."""


class Release:
    """The chart in a cluster."""

    def __init__(self, plane: Plane, folder: Path) -> None:
        self._plane = plane
        self._values = folder / "values.yaml"
        authority = Authority.create("chart-test")
        addresses = [f"127.{os.getpid() % 200 + 20}.{number}.1" for number in range(1, 9)]
        self.addresses = iter(addresses)
        self.pair = authority.issue("webhook", ips=addresses, server=True)
        (port,) = free_ports(1)
        values: JSON = {part: {"replicas": replicas} for part, replicas in REPLICAS.items()}
        values["certificates"] = {"mode": "provided", "caBundle": authority.cert_pem.decode()}
        values["extender"] = {"port": port}
        values["queues"] = [{"name": "research", "spec": {"weight": 3}}]
        self._values.write_text(yaml.safe_dump(values))

    def helm(self, verb: str, *arguments: str) -> str:
        """Runs helm, which must succeed; what it says."""
        common = (f"--kubeconfig={self._plane.kubeconfig}", f"--namespace={NAMESPACE}")
        result = helm(verb, "muster", *arguments, *common)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def put(self, verb: str, *arguments: str) -> str:
        """Installs or upgrades."""
        return self.helm(verb, str(CHART), f"--values={self._values}", *arguments)


@pytest.fixture
def world(fresh_plane: Callable[..., Plane], tmp_path: Path) -> Iterator[tuple[Plane, Client, Release, Machine]]:
    """A cluster without Muster's processes."""
    plane = fresh_plane(CLUSTER)
    with closing(plane.client()) as client:
        machine = Machine(plane, tmp_path / "machine", client)
        machine.folder.mkdir()
        try:
            yield plane, client, Release(plane, tmp_path), machine
        finally:
            machine.stop()


def pods_of(machine: Machine) -> list[JSON]:
    """The pods of the release, by name."""
    found: list[JSON] = machine.raw(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
    return sorted(found, key=lambda pod: pod["metadata"]["name"])


def part_of(pod: JSON) -> str:
    """Which part a pod is of."""
    part: str = pod["metadata"]["labels"]["app.kubernetes.io/component"]
    return part


@contextmanager
def webhooks_at(client: Client, address: str, port: int) -> Iterator[None]:
    """There is no network for Services here: the API server calls a pod in place of the Service, and nothing else."""
    before = {resource: client.get(resource, "muster")["webhooks"] for resource in CONFIGURATIONS}
    for resource, webhooks in before.items():
        changed = copy.deepcopy(webhooks)
        for webhook in changed:
            service = webhook["clientConfig"].pop("service")
            assert service["name"] == "muster-webhook"
            webhook["clientConfig"]["url"] = f"https://{address}:{port}{service['path']}"
        client.merge_patch(resource, "muster", {"webhooks": changed})
    yield
    for resource, webhooks in before.items():
        client.merge_patch(resource, "muster", {"webhooks": webhooks})


def run_the_demo(plane: Plane, client: Client) -> str:
    """The story of `muster demo`; what did not come true."""
    console = Console(file=io.StringIO())
    demo._submit(plane, console)
    story = demo._show(client, console)
    return story.broken or "; ".join(story.missing)


def test_it_runs_gangs_as_rendered(world: tuple[Plane, Client, Release, Machine], wait_for: WaitFor) -> None:
    """Installed, upgraded and uninstalled with helm; its containers with their own arguments, files and tokens."""
    plane, client, release, machine = world
    notes = release.put("install", "--take-ownership", "--force-conflicts")
    assert "pod-security.kubernetes.io/enforce=restricted" in notes
    secret = {"metadata": {"name": "muster-webhook-tls"}, "type": "kubernetes.io/tls"}
    data = {"tls.crt": release.pair.cert_pem.decode(), "tls.key": release.pair.key_pem.decode()}
    client.create(SECRETS, {**secret, "stringData": data}, NAMESPACE)
    count = sum(REPLICAS.values())
    wait_for(lambda: len(pods_of(machine)) == count, 60, "the Deployments' pods")
    running = {part: [] for part in REPLICAS}  # type: dict[str, list[RunningPod]]
    for pod in pods_of(machine):
        running[part_of(pod)].append(machine.run(pod, next(release.addresses)))
    with webhooks_at(client, running["webhook"][0].address, 9443):
        for one in itertools.chain(*running.values()):
            wait_for(lambda one=one: not one.not_ready(), 90, f"{one.name} to be ready: {one.not_ready()}")
        wait_for(lambda: client.get(QUEUES, "research").status.state == "Open", 60, "the chart's queue")
        wait_for(lambda: len(client.list(CLUSTER_TRAINING_RUNTIMES)) == 7, 60, "the chart's runtimes")
        assert not run_the_demo(plane, client)

    for name in ("muster-scheduler", "muster-controller"):
        assert (client.get(LEASES, name, NAMESPACE).spec.holder_identity or "").startswith(f"{name}-")
    assert {use.use.process for use in audits.asked(plane)} == {"webhook", "scheduler", "extender", "controller"}
    assert not audits.forbidden(plane)

    jobs = {job.metadata.uid for job in client.list(JOBS)}
    assert "REVISION: 2" in release.put("upgrade", "--set=controller.workers=5", "--force-conflicts")
    release.helm("uninstall")
    assert {job.metadata.uid for job in client.list(JOBS)} == jobs
    assert len(client.list(CLUSTER_TRAINING_RUNTIMES)) == 7
    for resource in CONFIGURATIONS:
        assert not client.list(resource), "nobody answers there any more"
    left = plane.kubectl("get", "clusterroles", "--selector=app.kubernetes.io/name=muster", "--output=name")
    assert not left.stdout
