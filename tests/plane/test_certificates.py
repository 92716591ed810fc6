"""Certificates of Muster's own authority: made once, changed under load, and made again, with no admission failing."""

import signal
import subprocess
import sys
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from certificates import QUICK, SECRET, Load, Looker, bundles_of, content_of, kept, keys_in, kubelet, secret_of
from planes import PLANES
from structlog.testing import capture_logs
from tenants import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES

from certs.authority import Authority, CertificatePair
from certs.certificate import read_bundle, write_bundle
from certs.rotation import Terms
from controller.certificates import Keeper
from controller.main import certificates_of
from controller.settings import ControllerSettings
from muster.api import names
from muster.api.kubernetes.core import EVENTS, NAMESPACES, PODS
from muster.api.kubernetes.extensions import CERTIFICATE_SECRETS, WEBHOOK_CONFIGURATIONS
from muster.kube.client import Client
from muster.process.settings import read, text_of
from muster.process.tls import Files
from musterctl.plane.machine import free_ports
from musterctl.plane.plane import Plane
from musterctl.plane.state import API_SERVER, COMPONENTS, CONTROLLER, ETCD, WEBHOOK, PlaneOptions
from webhook import registration
from webhook.main import TrustCheck

pytestmark = [pytest.mark.plane, pytest.mark.long]
WaitFor = Callable[..., Any]

MINE: dict[str, Any] = {"certSecret": names.CERTIFICATES, "certDnsName": ["127.0.0.1"]}
DELAY_S = 1.5
"""How long a certificate takes from the Secret to the webhook: less than the wait until it is loaded."""
FAST = replace(QUICK, life_s=18, authority_life_s=30)


@pytest.fixture
def watched(tmp_path: Path, pytestconfig: pytest.Config) -> Iterator[Callable[..., tuple[Plane, Client, Load, Looker]]]:
    """A plane whose webhook's certificate is looked after, with a kubelet, 500 pods a minute, and a looker-on."""
    with ExitStack() as stack:

        def start(terms: Terms, parts: Collection[str]) -> tuple[Plane, Client, Load, Looker]:
            plane = Plane(tmp_path / "plane", parts, PlaneOptions(nodes=32))
            pytestconfig.stash[PLANES].append(plane)
            stack.callback(pytestconfig.stash[PLANES].remove, plane)
            stack.enter_context(plane)
            client = plane.client()
            client.create(NAMESPACES, {"metadata": {"name": "load"}})
            stack.enter_context(kept(plane.client(), terms))
            stack.enter_context(kubelet(plane.client(), plane.root / "pki", "webhook", DELAY_S))
            load = stack.enter_context(Load(plane.client(), "load", 500))
            return plane, client, load, stack.enter_context(Looker(plane.client(), plane.state.ports["webhook"]))

        yield start


def reasons(client: Client) -> list[str]:
    """The reasons of the Secret's Events, in their order."""
    events = [each for each in client.list(EVENTS, SECRET[1]) if each.involved_object.get("name") == SECRET[0]]
    return [each.reason for each in sorted(events, key=lambda each: int(each.metadata.resource_version))]


def test_rotation_under_load_fails_no_admission_and_no_bind(watched: Callable[..., Any], wait_for: WaitFor) -> None:
    """From a certificate made by hand to our own, and then three authorities one after the other."""
    with capture_logs() as logs:
        plane, client, load, looker = watched(FAST, COMPONENTS)
        wait_for(lambda: reasons(client).count("AuthorityMade") >= 4, 150, "the first authority and three others")
        wait_for(lambda: content_of(client).coming is None, 30, "the last of them to sign")
        wait_for(lambda: reasons(client).count("AuthorityDropped") >= 3, 60, "the end of old authorities")
    wait_for(lambda: load.created > 500, 120, lambda: f"a load of more than {load.created} objects")
    load.stop()
    wait_for(lambda: all(pod.spec.node_name for pod in client.list(PODS, "load")), 60, "all pods to be bound")
    assert failed_binds(plane) == []
    assert not load.failures
    assert not looker.failures
    assert looker.handshakes > 50
    assert len(looker.shown) > 5, "each authority has signed one at least, and the plane's the first"
    assert max(len(read_bundle(bundle)) for bundle in looker.trusted) <= 3, "old ones go"
    secret = secret_of(client)
    assert secret
    told = f"{logs}" + plane.part("webhook").log_file.read_text()
    told += "".join(each.message for each in client.list(EVENTS))
    assert "certificates changed" in told
    assert not [line for line in keys_in(secret) if line in told]


def failed_binds(plane: Plane) -> list[str]:
    """Bindings that failed; other answers only send a pod round again, as its plan has changed meanwhile."""
    url = f"http://127.0.0.1:{plane.state.ports['extender-status']}/metrics"
    with urllib.request.urlopen(url, timeout=5) as answer:
        lines = [line for line in answer.read().decode().splitlines() if line.startswith("muster_bind_total{")]
    assert any('verdict="passed"' in line for line in lines)
    return [line for line in lines for why in ("bind_failed", "internal", "malformed") if f'reason="{why}"' in line]


def test_a_deleted_secret_fails_no_admission(watched: Callable[..., Any], wait_for: WaitFor) -> None:
    """Another authority is made, which the caBundles get beside the one whose key is lost, until nobody needs that."""
    _, client, load, looker = watched(QUICK, (ETCD, API_SERVER, WEBHOOK, CONTROLLER))
    wait_for(lambda: len(content_of(client).trusted) == 1 and content_of(client).leaves, 60, "our own certificate")
    wait_for(lambda: set(bundles_of(client)) == {write_bundle(content_of(client).trusted)}, 30, "only ours is trusted")
    before = content_of(client)
    client.delete(CERTIFICATE_SECRETS, *SECRET)
    wait_for(lambda: {len(read_bundle(each)) for each in bundles_of(client)} == {2}, 30, "both to be trusted")
    wait_for(lambda: content_of(client).leaves, 60, "a certificate of the new one")
    wait_for(lambda: set(bundles_of(client)) == {write_bundle(content_of(client).trusted)}, 30, "the caBundles")
    after = content_of(client)
    assert after.issuer
    assert before.issuer
    assert after.issuer.certificate != before.issuer.certificate
    seen = looker.handshakes
    wait_for(lambda: looker.handshakes > seen, 10, "another handshake")
    assert not load.failures
    assert not looker.failures


ISSUERS = ("own", "certManager", "provided", "own", "provided", "certManager", "own")
"""Each of the three after each other one, as values of certificates.mode."""


def test_a_change_of_the_issuer_under_load_fails_no_admission(
    pytestconfig: pytest.Config, tmp_path: Path, wait_for: WaitFor
) -> None:
    """In all six directions: a replica with the next certificate answers as soon as its own check lets it be ready."""
    plane = Plane(tmp_path / "plane", (ETCD, API_SERVER, WEBHOOK, CONTROLLER), PlaneOptions(nodes=1))
    pytestconfig.stash[PLANES].append(plane)
    with ExitStack() as stack:
        stack.callback(pytestconfig.stash[PLANES].remove, plane)
        stack.enter_context(plane)
        client = plane.client()
        client.create(NAMESPACES, {"metadata": {"name": "load"}})
        load = stack.enter_context(Load(plane.client(), "load", 500))
        looker = stack.enter_context(Looker(plane.client(), plane.state.ports["webhook"]))
        for number, mode in enumerate(ISSUERS):
            name = f"{names.CERTIFICATES}-{number}"
            if mode != "own":
                authority = Authority.create(f"{mode}-{number}")
                pair = authority.issue("webhook", ips=["127.0.0.1"], server=True)
                made = {"tls.crt": pair.cert_pem, "tls.key": pair.key_pem, "ca.crt": authority.cert_pem}
                data = {file: b64encode(each).decode() for file, each in made.items()}
                client.create(CERTIFICATE_SECRETS, {"metadata": {"name": name}, "data": data}, SECRET[1])
            with ExitStack() as leader:
                if mode == "own":  # its Secret is made by the controller
                    leader.enter_context(kept(plane.client(), secret=name))
                check, pair = leader.enter_context(starting(plane, name, tmp_path / str(number), wait_for))
                if mode != "own":
                    assert check.problem(), "the former controller leads, and no webhook trusts it"
                    leader.enter_context(kept(plane.client(), secret=name, issuer="external"))
                wait_for(lambda check=check: check.problem() is None, 60, check.problem)
                pair.save(plane.root / "pki", "webhook")  # it takes the place of the last replica
                seen = looker.handshakes
                wait_for(lambda seen=seen: looker.handshakes > seen + 5, 30, "handshakes")
            assert len(looker.shown) >= number + 2, "the next certificate is shown"
    assert load.created > 50
    assert not load.failures
    assert not looker.failures


@contextmanager
def starting(
    plane: Plane, secret: str, folder: Path, wait_for: WaitFor
) -> Iterator[tuple[TrustCheck, CertificatePair]]:
    """The check of a replica that mounts this Secret, and its certificate."""
    client = plane.client()

    def mounted() -> dict[str, bytes]:
        found = [each for each in client.list(CERTIFICATE_SECRETS, SECRET[1]) if each.metadata.name == secret]
        return {**(found[0].data or {})} if found else {}

    wait_for(lambda: mounted().get("tls.key"), 60, "the certificate")
    pair = CertificatePair(mounted()["tls.crt"], mounted()["tls.key"])
    pair.save(folder, "webhook")
    check = TrustCheck(client, Files(folder / "webhook.crt", folder / "webhook.key"))
    for reflector in check.reflectors:
        reflector.start()
    wait_for(lambda: all(reflector.synced for reflector in check.reflectors), 30, "the configurations")
    yield check, pair
    for reflector in check.reflectors:
        reflector.stop()


@pytest.fixture
def controllers(
    fresh_plane: Callable[..., Plane],
) -> Iterator[Callable[..., tuple[Plane, list[subprocess.Popen[bytes]]]]]:
    """An empty cluster with webhook configurations that trust nobody, and two controllers that start at once on it."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*leases: str) -> tuple[Plane, list[subprocess.Popen[bytes]]]:
        plane = fresh_plane({ETCD, API_SERVER})
        register(plane.client())
        for lease, port in zip(leases, free_ports(len(leases), ()), strict=True):
            more = {**MINE, "statusPort": port, "leaseName": lease, "leaseDuration": 3}
            file = plane.root / f"settings-{len(started)}.yaml"
            file.write_text(text_of(ControllerSettings(), more))
            command = [sys.executable, "-m", "controller", f"--kubeconfig={plane.kubeconfig}", f"--settings={file}"]
            log = (plane.root / f"{len(started)}.log").open("wb")
            started.append(subprocess.Popen(command, stdout=log, stderr=log))
        return plane, started

    yield start
    for process in started:
        process.send_signal(signal.SIGKILL)
        process.wait()


def is_whole(client: Client) -> bool:
    """Whether the Secret has all, and every webhook trusts just that."""
    return is_trusted(client) and set(bundles_of(client)) == {write_bundle(content_of(client).trusted)}


def is_trusted(client: Client) -> bool:
    """Whether the Secret has all, and every webhook trusts that."""
    content = content_of(client)
    leaf = content.leaves.get("tls")
    signed = bool(leaf and content.issuer and leaf.certificate.signed_by(content.issuer.certificate))
    return signed and all({*content.trusted} <= {*read_bundle(each)} for each in bundles_of(client))


def test_two_controllers_at_first_make_one_authority(controllers: Callable[..., Any], wait_for: WaitFor) -> None:
    """One leads and makes it; the other takes over what is there when the first is killed."""
    plane, processes = controllers("the-same", "the-same")
    client = plane.client()
    wait_for(lambda: is_whole(client), 60, "certificates")
    before = content_of(client)
    assert reasons(client) == ["AuthorityMade", "CertificateIssued"], "and nobody tells of a problem meanwhile"
    leads = [process for number, process in enumerate(processes) if '"event":"leading"' in log_of(plane, number)]
    assert len(leads) == 1
    leads[0].kill()
    client.delete(CERTIFICATE_SECRETS, *SECRET)
    wait_for(lambda: is_trusted(client), 120, "the other one to make them again, once all API servers have had time")
    assert content_of(client).issuer != before.issuer


def test_two_controllers_that_both_lead_agree(fresh_plane: Callable[..., Plane], wait_for: WaitFor) -> None:
    """Even then: one write gets through, and the other one reads again."""
    plane = fresh_plane({ETCD, API_SERVER})
    client = plane.client()
    register(client)
    with kept(plane.client()), kept(plane.client()):
        for what in ("authority", "serving"):
            wait_for(lambda: is_whole(client) and content_of(client).coming is None, 60, "certificates")
            before = content_of(client)
            ask = {"metadata": {"annotations": {names.ROTATE: what}}}
            client.merge_patch(CERTIFICATE_SECRETS, SECRET[0], ask, SECRET[1])
            wait_for(lambda was=before.leaves: content_of(client).leaves not in ({}, was), 60, f"{what} to be done")
        wait_for(lambda: is_whole(client) and len(content_of(client).trusted) == 1, 60, "the old one to go")
    assert reasons(client).count("AuthorityMade") == 2
    assert reasons(client).count("CertificateIssued") == 3


def register(client: Client) -> None:
    """Creates webhook configurations that trust nobody."""
    configurations = registration.configurations(url="https://127.0.0.1:1", ca_bundle=b"")
    for kind, content in zip(WEBHOOK_CONFIGURATIONS, configurations, strict=True):
        client.create(kind, content)


def log_of(plane: Plane, number: int) -> str:
    """What a controller has logged."""
    return (plane.root / f"{number}.log").read_text(encoding="utf-8")


RULES: list[dict[str, Any]] = [
    {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
    {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [SECRET[0]], "verbs": ["list", "watch", "patch"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
]
CLUSTER_RULES: list[dict[str, Any]] = [{
    "apiGroups": ["admissionregistration.k8s.io"],
    "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
    "resourceNames": [names.WEBHOOKS],
    "verbs": ["list", "watch", "patch"],
}]  # fmt: skip
"""What docs/certificates.md says that the controller has to be allowed."""


@pytest.fixture
def keeper(fresh_plane: Callable[..., Plane], tmp_path: Path) -> Iterator[Callable[..., tuple[Plane, Keeper]]]:
    """Starts what looks after certificates, as a user who may do no more than the rules say, on an empty cluster."""
    with ExitStack() as stack:

        def start() -> tuple[Plane, Keeper]:
            plane = fresh_plane({ETCD, API_SERVER})
            admin = plane.client()
            register(admin)
            settings = read(text_of(ControllerSettings(), {**MINE, "certIssuer": "own"}), ControllerSettings)
            options = certificates_of(settings)
            assert options
            options = replace(options, terms=QUICK)
            one = Keeper(Client.load(limited(plane, admin, tmp_path)), options, SECRET[1])
            stack.callback(one.stop)
            one.start()
            one.lead(lambda: True)
            return plane, one

        yield start


def limited(plane: Plane, admin: Client, folder: Path) -> Path:
    """A kubeconfig of a user with the rules and no other rights."""
    user = {"kind": "User", "name": "keeper", "apiGroup": "rbac.authorization.k8s.io"}
    meta = {"metadata": {"name": "keeper"}}
    for kind, name, rules, namespace in (
        (ROLES, "Role", RULES, SECRET[1]),
        (CLUSTER_ROLES, "ClusterRole", CLUSTER_RULES, None),
    ):
        admin.create(kind, {**meta, "rules": rules}, namespace)
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": name, "name": "keeper"}
        bindings = ROLE_BINDINGS if namespace else CLUSTER_ROLE_BINDINGS
        admin.create(bindings, {**meta, "roleRef": reference, "subjects": [user]}, namespace)
    content = yaml.safe_load(plane.kubeconfig.read_text(encoding="utf-8"))
    pair = Authority.load(plane.root / "pki").issue("keeper", client=True)
    content["users"][0]["user"] = {
        "client-certificate-data": b64encode(pair.cert_pem).decode(),
        "client-key-data": b64encode(pair.key_pem).decode(),
    }
    path = folder / "keeper.kubeconfig"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def test_it_needs_no_other_rights_than_these(keeper: Callable[..., Any], wait_for: WaitFor) -> None:
    """By name, in one namespace: making, changing, dropping, and filling a caBundle that somebody has emptied."""
    plane, _ = keeper()
    client = plane.client()
    wait_for(lambda: is_whole(client), 30, "certificates")
    ask = {"metadata": {"annotations": {names.ROTATE: "authority"}}}
    client.merge_patch(CERTIFICATE_SECRETS, SECRET[0], ask, SECRET[1])
    wait_for(lambda: "AuthorityDropped" in reasons(client), 60, "the old authority to go")
    for kind, content in zip(
        WEBHOOK_CONFIGURATIONS, registration.configurations(url="https://127.0.0.1:1", ca_bundle=b""), strict=True
    ):
        client.apply(kind, content)
    wait_for(lambda: is_whole(client), 30, "the caBundles to be filled again")
