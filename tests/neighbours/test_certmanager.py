"""The chart's `certificates.mode=certManager` with a real cert-manager: what it issues is served, trusted, renewed."""

import itertools
import json
import re
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import containers
import pytest
import yaml
from beside import certmanager
from beside.neighbour import Neighbours
from certificates import Load, Looker, bundles_of
from containers import Machine, RunningPod
from test_chart_installed import ASKS, REPLICAS, Release, call, part_of, pods_of, takes_reports

from certs.certificate import Certificate, read_bundle
from charts import NAMESPACE
from muster.api import names
from muster.api.kubernetes.core import EVENTS, NAMESPACES, PODS
from muster.api.kubernetes.extensions import CERTIFICATE_SECRETS
from muster.kube.client import Client
from musterctl.plane.plane import Plane
from musterctl.plane.state import CLUSTER

pytestmark = [
    pytest.mark.neighbour,
    pytest.mark.skipif(bool(containers.possible()), reason=f"no containers here: {containers.possible()}"),
]
JSON = dict[str, Any]
WaitFor = Callable[..., Any]
REPORTS = "muster-reports-tls"
SERVED = {"muster-webhook": names.CERTIFICATES, "muster-reports": REPORTS}
"""The Secret of each Certificate that a process serves with."""
WAIT_S = 240.0
STATUS_PORT = 8082
"""The controller's, by default."""
HANDSHAKES = 20
"""So many are seen before the webhook has a new certificate, and after."""


@dataclass
class World:
    """A cluster with cert-manager, and Muster installed by helm."""

    plane: Plane
    client: Client
    machine: Machine
    release: Release
    running: dict[str, list[RunningPod]]

    def data(self, secret: str) -> dict[str, bytes]:
        """What is in a Secret."""
        return self.client.get(CERTIFICATE_SECRETS, secret, NAMESPACE).data or {}

    def ready(self, name: str) -> bool:
        """Whether cert-manager says that a Certificate is issued, and no other one is on its way."""
        one = certmanager.certificate(self.client, name, NAMESPACE)
        return certmanager.condition(one, "Ready") == "True" and certmanager.condition(one, "Issuing") != "True"


@pytest.fixture(scope="module")
def world(
    module_plane: Callable[..., Plane],
    neighbours: Neighbours,
    tmp_path_factory: pytest.TempPathFactory,
    wait_for: WaitFor,
) -> Iterator[World]:
    """cert-manager first, then the chart; its pods run as soon as a kubelet could mount their Secrets."""
    plane, folder = module_plane(CLUSTER), tmp_path_factory.mktemp("release")
    certmanager.start(neighbours, plane, wait_for)
    with closing(plane.client()) as client:
        machine = Machine(plane, folder / "machine", client)
        machine.folder.mkdir()
        release = Release(plane, folder)
        release.values["certificates"] = {"mode": "certManager"}
        release.values["trainJobs"] = {"reports": {"enabled": True}}
        release.put("install", "--take-ownership", "--force-conflicts")
        one = World(plane, client, machine, release, {})
        try:
            for name in SERVED:
                wait_for(lambda name=name: one.ready(name), WAIT_S, f"cert-manager to issue {name}")
            _run(one, wait_for)
            yield one
        finally:
            machine.stop()


def _run(world: World, wait_for: WaitFor) -> None:
    wait_for(lambda: len(pods_of(world.machine)) == sum(REPLICAS.values()), WAIT_S, "the Deployments' pods")
    for pod in pods_of(world.machine):
        running = world.machine.run(pod, next(world.release.addresses))
        world.running.setdefault(part_of(pod), []).append(running)
    call(world.client, world.running["webhook"][0].address)
    for one in itertools.chain(*world.running.values()):
        wait_for(lambda one=one: not one.not_ready(), WAIT_S, f"{one.name} to be ready: {one.not_ready()}")


def test_what_is_issued_is_what_our_processes_read(world: World, wait_for: WaitFor) -> None:
    """Keys of the Secrets, names and uses of the certificates, and a caBundle in every webhook."""
    for certificate, secret in SERVED.items():
        data = world.data(secret)
        assert {"tls.crt", "tls.key", "ca.crt"} <= data.keys()
        shown = Certificate.read(data["tls.crt"])
        assert shown.names == {f"{certificate}.{NAMESPACE}.svc", f"{certificate}.{NAMESPACE}.svc.cluster.local"}
    wait_for(lambda: trusted_everywhere(world), WAIT_S, "the authority in every caBundle")


def trusted_everywhere(world: World) -> bool:
    """Whether every caBundle has the Secret's authority; cert-manager keeps the ones before it there, too."""
    authorities = {*read_bundle(world.data(names.CERTIFICATES)["ca.crt"])}
    return bool(authorities) and all(authorities <= {*read_bundle(each)} for each in bundles_of(world.client))


def test_the_api_server_calls_the_webhook_and_trainers_report(world: World) -> None:
    """Over the certificates of cert-manager, with the names of the Services."""
    assert world.client.create(PODS, ASKS, "default", dry_run=True).spec.scheduler_name == names.SCHEDULER
    trusted = world.data(REPORTS)["ca.crt"]
    assert any(takes_reports(pod, trusted) for pod in world.running["controller"])


def test_the_controller_finds_nothing_wrong(world: World, wait_for: WaitFor) -> None:
    """It watches what cert-manager keeps: it knows when the certificate ends, and that all is well."""
    ends = Certificate.read(world.data(names.CERTIFICATES)["tls.crt"]).ends_s
    leads = next(
        pod for pod in world.running["controller"] if told(pod, 'muster_kube_leading{lease="muster-controller"}')
    )
    wait_for(lambda: told(leads, 'muster_certificate_expiry_timestamp_seconds{name="tls"}') == ends, WAIT_S, "its end")
    wait_for(lambda: told(leads, "muster_certificate_problems") == 0, WAIT_S, f"no problem: {complaints(world)}")


def told(pod: RunningPod, line: str) -> float:
    """A sample of a controller's metrics."""
    with urllib.request.urlopen(f"http://{pod.address}:{STATUS_PORT}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    return next((float(each.rpartition(" ")[2]) for each in lines if each.startswith(f"{line} ")), 0.0)


def complaints(world: World) -> list[str]:
    """What the Events of the Secret say."""
    return [each.message for each in world.client.list(EVENTS, NAMESPACE) if each.reason == "CertificateProblem"]


def test_renewal_under_load_refuses_nobody(world: World, wait_for: WaitFor) -> None:
    """Two new certificates, a new one of the authority, and one that it signs: under 500 pods a minute.

    Somebody shakes hands at every moment, too, as the API server keeps its connections.
    """
    world.client.create(NAMESPACES, {"metadata": {"name": "load"}})
    webhook = world.running["webhook"][0]
    name = f"muster-webhook.{NAMESPACE}.svc"
    with Load(world.client, "load", 500) as load, Looker(world.client, 9443, webhook.address, name) as looker:
        for asked in ("muster-webhook", "muster-webhook", "muster-webhook-ca", "muster-webhook"):
            renewed(world, asked, looker, wait_for)
            assert not looker.failures, (asked, looker.failures[:3])
        before = load.created
        wait_for(lambda: load.created > before + 50, WAIT_S, "more pods")
    assert not load.failures, load.failures[:3]
    assert not looker.failures, looker.failures[:3]
    assert len(looker.shown) == 4, "the first one, and three others"
    assert len(looker.trusted) == 2, "the authority's first certificate, then both"
    told_s = {told(pod, "muster_certificate_problems") for pod in world.running["controller"]}
    assert told_s == {0}, complaints(world)


def renewed(world: World, name: str, looker: Looker, wait_for: WaitFor) -> None:
    """cert-manager makes another certificate; the API server trusts it before a kubelet brings it to the webhook."""
    revision = certmanager.certificate(world.client, name, NAMESPACE)["status"]["revision"]
    certmanager.renew(world.plane, name, NAMESPACE)

    def done() -> bool:
        now = certmanager.certificate(world.client, name, NAMESPACE)
        return bool(now["status"]["revision"] > revision and world.ready(name))

    wait_for(done, WAIT_S, f"another certificate of {name}")
    wait_for(lambda: trusted_everywhere(world), WAIT_S, "its authority in every caBundle")
    for _ in range(2):  # with the former certificate, then with the new one
        seen = looker.handshakes + len(looker.failures)
        wait_for(lambda seen=seen: looker.handshakes + len(looker.failures) > seen + HANDSHAKES, WAIT_S, "handshakes")
        for pod in world.running["webhook"]:
            pod.renew()


def test_the_extender_and_kube_scheduler_talk_with_what_docs_say(world: World, wait_for: WaitFor) -> None:
    """The Certificates of docs/certificates.md, of an authority of cert-manager's: a pod is bound over TLS."""
    authority = [
        _object("Issuer", "muster-extender-root", {"selfSigned": {}}),
        _object("Certificate", "muster-extender-ca", {
            "secretName": "muster-extender-ca", "isCA": True, "commonName": "muster-extender",
            "privateKey": {"algorithm": "ECDSA"}, "issuerRef": {"kind": "Issuer", "name": "muster-extender-root"},
        }),
        _object("Issuer", "muster-extender", {"ca": {"secretName": "muster-extender-ca"}}),
    ]  # fmt: skip
    documented = [each for each in _documents("certificates.md") if each["apiVersion"].startswith("cert-manager.io/")]
    assert {each["metadata"]["name"] for each in documented} == {"muster-extender", "muster-extender-client"}
    for each in (*authority, *documented):
        world.plane.kubectl("apply", "--server-side", "--filename=-", stdin=json.dumps(each)).check_returncode()
    for each in documented:
        wait_for(
            lambda name=each["metadata"]["name"]: world.ready(name), WAIT_S, f"{each['metadata']['name']} to be issued"
        )
    world.release.values["extender"] |= {
        "tls": {"enabled": True, "existingSecret": "muster-extender", "existingClientSecret": "muster-extender-client"}
    }
    before = {pod.name for pod in world.running["scheduler"]}
    for pod in world.running["scheduler"]:
        pod.stop()
    world.release.put("upgrade", "--force-conflicts")
    call(world.client, world.running["webhook"][0].address)  # helm has put the Service's port back

    def fresh() -> list[JSON]:
        pods = (pod for pod in pods_of(world.machine) if part_of(pod) == "scheduler")
        return [pod for pod in pods if pod["metadata"]["name"] not in before]

    (pod,) = wait_for(fresh, WAIT_S, "the scheduler's new pod")
    scheduler = world.machine.run(pod, next(world.release.addresses))
    wait_for(lambda: not scheduler.not_ready(), WAIT_S, f"it to be ready: {scheduler.not_ready()}")
    bound = world.client.create(PODS, {**ASKS, "metadata": {**ASKS["metadata"], "name": "over-tls"}}, "default")
    wait_for(lambda: world.client.get(PODS, bound.metadata.name, "default").spec.node_name, WAIT_S, "its binding")


def _object(kind: str, name: str, spec: JSON) -> JSON:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "cert-manager.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


def _documents(page: str) -> list[JSON]:
    """The YAML objects of a page of the documentation."""
    text = (containers.REPOSITORY / "docs" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    return [each for block in blocks for each in yaml.safe_load_all(block) if each and "apiVersion" in each]
