"""The chart installed with helm, and its containers run as it renders them: gangs run, and nothing is refused."""

import io
import itertools
import os
import re
import socket
import ssl
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import audits
import containers
import pytest
import yaml
from certificates import Looker, bundles_of, content_of
from containers import Machine, RunningPod
from rich.console import Console
from test_storm import run_storm

from certs.authority import Authority
from certs.certificate import write_bundle
from charts import NAMESPACE
from muster.api import names
from muster.api.base import Resource
from muster.api.kubeflow.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from muster.api.kubernetes.core import LEASES, PODS, SECRETS
from muster.api.kubernetes.extensions import CERTIFICATE_SECRETS, WEBHOOK_CONFIGURATIONS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import QUEUES
from muster.chart import CHART
from muster.kube.client import Client
from musterctl.chart.files import helm
from musterctl.commands import demo
from musterctl.plane.machine import free_ports
from musterctl.plane.plane import Plane
from musterctl.plane.state import CLUSTER

pytestmark = [
    pytest.mark.plane,
    pytest.mark.long,
    pytest.mark.skipif(bool(containers.possible()), reason=f"no containers here: {containers.possible()}"),
]
WaitFor = Callable[..., Any]
JSON = dict[str, Any]
SERVICES: Resource[JSON] = Resource("", "v1", "services", "Service", dict[str, Any])
REPLICAS = {"webhook": 2, "scheduler": 1, "controller": 2}
"""One pair only: the extenders of two would listen at one address, as they share this machine's loopback."""


ASKS: JSON = {
    "metadata": {"name": "asks", "labels": {names.QUEUE: "default"}},
    "spec": {"containers": [{"name": "main", "image": "none"}]},
}
"""A pod that the webhook has to look at."""


class Release:
    """The chart in a cluster."""

    def __init__(self, plane: Plane, folder: Path) -> None:
        self._plane = plane
        self._values = folder / "values.yaml"
        self.addresses = (f"127.{os.getpid() % 200 + 20}.{number}.1" for number in itertools.count(1))
        (port,) = free_ports(1)
        self.values: JSON = {part: {"replicas": replicas} for part, replicas in REPLICAS.items()}
        self.values["extender"] = {"port": port}
        self.values["queues"] = [{"name": "research", "spec": {"weight": 3}}]

    def helm(self, verb: str, *arguments: str) -> str:
        """Runs helm, which must succeed; what it says."""
        common = (f"--kubeconfig={self._plane.kubeconfig}", f"--namespace={NAMESPACE}")
        result = helm(verb, "muster", *arguments, *common)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def put(self, verb: str, *arguments: str) -> str:
        """Installs or upgrades."""
        self._values.write_text(yaml.safe_dump(self.values))
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


def call(client: Client, address: str) -> None:
    """There is no network for Services here: the webhook's becomes another name for one pod, and its port the pod's.

    So the API server asks for the certificate of the Service's name, as everywhere.
    """
    service = {"type": "ExternalName", "externalName": address, "clusterIP": None, "clusterIPs": None}
    client.merge_patch(SERVICES, "muster-webhook", {"spec": service}, NAMESPACE)
    for kind in WEBHOOK_CONFIGURATIONS:
        names_of = [each.name for each in client.get(kind, names.WEBHOOKS).webhooks or ()]
        webhooks = [{"name": name, "clientConfig": {"service": {"port": 9443}}} for name in names_of]
        client.strategic_patch(kind, names.WEBHOOKS, {"webhooks": webhooks})


def started(machine: Machine, release: Release, wait_for: WaitFor) -> dict[str, list[RunningPod]]:
    """Runs each pod of the release as soon as a kubelet could; by part."""
    count = sum(REPLICAS.values())
    wait_for(lambda: len(pods_of(machine)) == count, 60, "the Deployments' pods")
    running: dict[str, list[RunningPod]] = {part: [] for part in ("controller", "webhook", "scheduler")}
    waiting = {part: [pod for pod in pods_of(machine) if part_of(pod) == part] for part in running}
    for part, pods in waiting.items():
        if part == "webhook":
            wait_for(lambda: content_of(machine.client).leaves, 60, "the Secret that the webhook's volume is made of")
        running[part] = [machine.run(pod, next(release.addresses)) for pod in pods]
    return running


def run_the_demo(plane: Plane, client: Client) -> str:
    """The story of `muster demo`; what did not come true."""
    console = Console(file=io.StringIO())
    demo._submit(plane, console)
    story = demo._show(client, console)
    return story.broken or "; ".join(story.missing)


def test_it_runs_gangs_as_rendered(world: tuple[Plane, Client, Release, Machine], wait_for: WaitFor) -> None:
    """Installed, upgraded and uninstalled with helm; its containers with their own arguments, files and tokens.

    With certificates of its own, as by default: an empty cluster has neither a Secret nor a caBundle.
    """
    plane, client, release, machine = world
    release.values["trainJobs"] = {"reports": {"enabled": True}}
    notes = release.put("install", "--take-ownership", "--force-conflicts")
    assert "pod-security.kubernetes.io/enforce=restricted" in notes
    assert set(bundles_of(client)) == {b""}
    running = started(machine, release, wait_for)
    call(client, running["webhook"][0].address)
    for one in itertools.chain(*running.values()):
        wait_for(lambda one=one: not one.not_ready(), 90, f"{one.name} to be ready: {one.not_ready()}")
    wait_for(lambda: client.get(QUEUES, "research").status.state == "Open", 60, "the chart's queue")
    wait_for(lambda: len(client.list(CLUSTER_TRAINING_RUNTIMES)) == 7, 60, "the chart's runtimes")
    assert set(bundles_of(client)) == {write_bundle(content_of(client).trusted)}
    assert not run_the_demo(plane, client)
    with urllib.request.urlopen(f"http://{running['scheduler'][0].address}:9445/metrics", timeout=5) as answer:
        told = answer.read().decode()
    for stage in ("planned", "bound", "running"):
        assert re.search(rf'muster_gang_seconds_count\{{stage="{stage}"\}} [1-9]', told)
    assert 'muster_queue_resources{queue="default"' in told
    renewed(client, running, wait_for)
    for pod in running["controller"]:
        pod.renew()  # when it started there was no Secret
        assert takes_reports(pod, write_bundle(content_of(client).trusted))

    for name in ("muster-scheduler", "muster-controller"):
        assert (client.get(LEASES, name, NAMESPACE).spec.holder_identity or "").startswith(f"{name}-")
    assert {use.use.process for use in audits.asked(plane)} == {"webhook", "scheduler", "extender", "controller"}
    assert not audits.forbidden(plane)

    jobs = {job.metadata.uid for job in client.list(JOBS)}
    trusted = set(bundles_of(client))
    assert "REVISION: 2" in release.put("upgrade", "--set=controller.workers=5", "--force-conflicts")
    assert set(bundles_of(client)) == trusted, "an upgrade takes no caBundle away"
    release.helm("uninstall")
    assert {job.metadata.uid for job in client.list(JOBS)} == jobs
    assert len(client.list(CLUSTER_TRAINING_RUNTIMES)) == 7
    for resource in WEBHOOK_CONFIGURATIONS:
        assert not client.list(resource), "nobody answers there any more"
    left = plane.kubectl("get", "clusterroles", "--selector=app.kubernetes.io/name=muster", "--output=name")
    assert not left.stdout


@pytest.mark.storm
@pytest.mark.timeout(900)
def test_a_storm_as_rendered(world: tuple[Plane, Client, Release, Machine], wait_for: WaitFor, seed: int) -> None:
    """Gangs and nodes come and go under the processes of the chart; `test_high_availability.py` kills them."""
    plane, client, release, machine = world
    release.put("install", "--take-ownership", "--force-conflicts")
    running = started(machine, release, wait_for)
    call(client, running["webhook"][0].address)
    for one in itertools.chain(*running.values()):
        wait_for(lambda one=one: not one.not_ready(), 90, f"{one.name} to be ready: {one.not_ready()}")
    run_storm(plane, "default", gangs=60, kills=0, seed=seed)
    assert not audits.forbidden(plane)


def renewed(client: Client, running: dict[str, list[RunningPod]], wait_for: WaitFor) -> None:
    """A new certificate of the same authority: every replica shows it, with the containers that run."""
    before = content_of(client).leaves["tls"].certificate
    ask = {"metadata": {"annotations": {names.ROTATE: "serving"}}}
    client.merge_patch(CERTIFICATE_SECRETS, names.CERTIFICATES, ask, NAMESPACE)
    wait_for(lambda: content_of(client).leaves["tls"].certificate != before, 30, "a new certificate")
    for pod in running["webhook"]:
        pod.renew()
        with Looker(client, 9443, pod.address, f"muster-webhook.{NAMESPACE}.svc") as looker:
            wait_for(lambda look=looker: look.handshakes, 30, "a handshake")
        assert not looker.failures
        now = content_of(client).leaves["tls"].certificate.parsed.serial_number
        assert [int(serial, 16) for serial in looker.shown] == [now]
    assert client.create(PODS, ASKS, "default", dry_run=True).spec.scheduler_name == names.SCHEDULER


def test_certificates_of_ones_own(world: tuple[Plane, Client, Release, Machine], wait_for: WaitFor) -> None:
    """With mode `provided` the webhook serves with a Secret that somebody else has made; trainers' reports, too."""
    _, client, release, machine = world
    authority = Authority.create("chart-test")
    release.values["certificates"] = {"mode": "provided", "caBundle": authority.cert_pem.decode()}
    release.values["trainJobs"] = {"reports": {"enabled": True}}
    release.put("install", "--take-ownership", "--force-conflicts")
    for secret, service in ((names.CERTIFICATES, "muster-webhook"), ("muster-reports-tls", "muster-reports")):
        pair = authority.issue(service, dns_names=[f"{service}.{NAMESPACE}.svc"], server=True)
        data = {"tls.crt": pair.cert_pem.decode(), "tls.key": pair.key_pem.decode()}
        data["ca.crt"] = authority.cert_pem.decode()
        client.create(
            SECRETS, {"metadata": {"name": secret}, "type": "kubernetes.io/tls", "stringData": data}, NAMESPACE
        )
    wait_for(lambda: len(pods_of(machine)) == sum(REPLICAS.values()), 60, "the Deployments' pods")
    first = {part_of(pod): pod for pod in pods_of(machine)}
    webhook, controller = (machine.run(first[part], next(release.addresses)) for part in ("webhook", "controller"))
    wait_for(lambda: not webhook.not_ready(), 90, f"it to be ready: {webhook.not_ready()}")
    call(client, webhook.address)
    wait_for(lambda: not controller.not_ready(), 90, f"it to be ready: {controller.not_ready()}")
    wait_for(lambda: any(queue.metadata.name == "default" for queue in client.list(QUEUES)), 60, "the queue default")
    assert client.create(PODS, ASKS, "default", dry_run=True).spec.scheduler_name == names.SCHEDULER
    assert takes_reports(controller, authority.cert_pem)


def takes_reports(pod: RunningPod, trusted: bytes) -> bool:
    """Whether a trainer that trusts these authorities is answered by the controller: here, that it has lost its way."""
    context = ssl.create_default_context(cadata=trusted.decode())
    with (
        socket.create_connection((pod.address, 10443), 5) as plain,
        context.wrap_socket(plain, server_hostname=f"muster-reports.{NAMESPACE}.svc") as secured,
    ):
        secured.sendall(b"POST /apis HTTP/1.1\r\nHost: muster-reports\r\nContent-Length: 2\r\n\r\n{}")
        return secured.recv(1 << 10).startswith(b"HTTP/1.1 404")
