"""`muster certs`: what it shows of a cluster's certificates, and what it asks for."""

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from certificates_world import World
from click.testing import CliRunner, Result
from loopback_server import Loopback, serving

from muster.api import names
from musterctl.app import main

SECRET = f"/api/v1/namespaces/muster-system/secrets/{names.CERTIFICATES}"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1"


class Cluster:
    """Objects by their path; notes the patches."""

    def __init__(self, world: World) -> None:
        self.objects: dict[str, Any] = {}
        self.patches: list[Any] = []
        for number, kind in enumerate(("mutatingwebhookconfigurations", "validatingwebhookconfigurations")):
            bundle = base64.b64encode(world.bundles[number].now).decode()
            webhooks = [{"name": f"w{each}", "clientConfig": {"caBundle": bundle}} for each in range(3)]
            self.objects[f"{WEBHOOKS}/{kind}/muster"] = {"metadata": {"name": "muster"}, "webhooks": webhooks}
        data = {name: base64.b64encode(value).decode() for name, value in (world.data or {}).items()}
        meta = {"name": names.CERTIFICATES, "labels": world.labels, "annotations": world.annotations}
        self.objects[SECRET] = {"kind": "Secret", "metadata": meta, "data": data}

    def handler(self) -> type[Loopback]:
        """Answers for one connection."""
        cluster = self

        class Handler(Loopback):
            def reply(self) -> None:
                """An object, or that there is none; a patch is noted."""
                if self.command == "PATCH":
                    cluster.patches.append(self.asked())
                name = self.path.rpartition("/")[2]
                missing = {"kind": "Status", "reason": "NotFound", "message": "no", "details": {"name": name}}
                found = cluster.objects.get(self.path)
                self.answer(found or missing, 200 if found else 404)

        return Handler


@pytest.fixture
def world() -> World:
    """Certificates at rest; they begin now, as the command looks at the clock."""
    one = World()
    one.now_s = time.time()
    one.settle()
    return one


@pytest.fixture
def cluster(world: World) -> Cluster:
    """What the API server has."""
    return Cluster(world)


@pytest.fixture
def kubeconfig(cluster: Cluster, tmp_path: Path) -> Iterator[Path]:
    """How to reach it."""
    path = tmp_path / "kubeconfig"
    with serving(cluster.handler(), path):
        yield path


def run(kubeconfig: Path, *arguments: str) -> Result:
    """Runs `muster certs`."""
    return CliRunner().invoke(main, ["certs", *arguments, f"--kubeconfig={kubeconfig}"])


def test_status_of_what_is_well(kubeconfig: Path, world: World) -> None:
    """It names the certificate, who signs, and who trusts; nothing of a key."""
    result = run(kubeconfig, "status")
    assert world.content
    assert world.content.issuer
    authority = world.content.issuer.certificate.subject
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0] == f"Secret:       muster-system/{names.CERTIFICATES} (managed by Muster)"
    assert lines[2].startswith("  tls: muster-webhook, until 20")
    assert lines[2].endswith(f", by {authority}")
    assert lines[4].startswith(f"  {authority} (")
    assert lines[4].endswith(", signs")
    assert "  MutatingWebhookConfiguration muster: 3 of 3 trust the certificate" in lines
    assert lines[-1] == "Problems:     none"
    assert "KEY" not in result.output


def test_status_fails_when_something_is_wrong(kubeconfig: Path, cluster: Cluster) -> None:
    """So that a script notices: exit code 1, and the problems last."""
    cluster.objects[f"{WEBHOOKS}/validatingwebhookconfigurations/muster"]["webhooks"][0]["clientConfig"] = {}
    result = run(kubeconfig, "status", "--output=json")
    assert result.exit_code == 1
    told = json.loads(result.output)
    assert told["webhooks"]["ValidatingWebhookConfiguration muster"] == "2 of 3 trust the certificate"
    assert told["problems"] == [
        "1 of 3 webhooks of ValidatingWebhookConfiguration muster do not trust the certificate in the Secret"
    ]


def test_status_without_a_secret(kubeconfig: Path, cluster: Cluster) -> None:
    """It is said, and so is that nothing is registered."""
    cluster.objects.clear()
    result = run(kubeconfig, "status")
    assert result.exit_code == 1
    assert "  the Secret does not exist" in result.output
    assert "  there is no MutatingWebhookConfiguration muster" in result.output


def test_status_of_a_plane(kubeconfig: Path, cluster: Cluster, world: World) -> None:
    """`muster up` makes its certificates without a Secret, and the webhooks are called by URL: nothing is wrong."""
    del cluster.objects[SECRET]
    for found in cluster.objects.values():
        for each in found["webhooks"]:
            each["clientConfig"]["url"] = "https://127.0.0.1:1/validate/job"
    result = run(kubeconfig, "status")
    assert result.exit_code == 0, result.output
    assert "muster-webhook-tls does not exist, because `muster up` manages the certificates" in result.output
    assert "  ValidatingWebhookConfiguration muster: 3 are called by URL" in result.output
    assert world.content
    assert world.content.issuer
    assert f"{world.content.issuer.certificate.subject} (" in result.output
    assert "Problems:     none" in result.output


@pytest.mark.parametrize(("options", "what"), [([], "authority"), (["--serving"], "serving")])
def test_rotate_asks(kubeconfig: Path, cluster: Cluster, options: list[str], what: str) -> None:
    """By an annotation, which the controller takes away when it has done it."""
    result = run(kubeconfig, "rotate", *options)
    assert result.exit_code == 0, result.output
    assert cluster.patches == [{"metadata": {"annotations": {"muster.dev/rotate": what}}}]


def test_rotate_refuses_what_nobody_would_do(kubeconfig: Path, cluster: Cluster) -> None:
    """A Secret of somebody else, and none."""
    cluster.objects[SECRET]["metadata"]["labels"] = {}
    assert "is not managed by Muster" in run(kubeconfig, "rotate").output
    del cluster.objects[SECRET]
    result = run(kubeconfig, "rotate")
    assert result.exit_code == 1
    assert "the controller creates it" in result.output
    assert not cluster.patches
