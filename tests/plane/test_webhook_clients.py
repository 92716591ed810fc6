"""The webhook answers the API server, which shows it a certificate, and refuses the connections of all others."""

import json
import ssl
import urllib.request
from contextlib import closing
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import pytest

from muster.api.volcano.scheduling import QUEUES
from muster.kube.errors import Invalid
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane

REFUSED = r"(?i)ssl|eof|reset|alert|broken|closed|certificate required"
FORGED: dict[str, Any] = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {"uid": "u-1", "operation": "CREATE", "namespace": "kube-system",
        "userInfo": {"username": "admin", "groups": ["system:masters"]},
        "object": {"action": "AbortJob", "target": {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}}},
}  # fmt: skip
"""Asks for the rights of somebody else."""


def asked(plane: Plane, client: tuple[Path, Path] | None) -> dict[str, Any]:
    """The answer to a forged review, over a connection with this certificate and key."""
    context = ssl.create_default_context(cafile=plane.root / "pki" / "ca.crt")
    if client:
        context.load_cert_chain(*client)
    connection = HTTPSConnection("127.0.0.1", plane.state.ports["webhook"], context=context, timeout=20)
    try:
        connection.request("POST", "/validate/command", json.dumps(FORGED), {"Content-Type": "application/json"})
        answer: dict[str, Any] = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    return answer


def test_the_api_server_is_answered(plane: Plane) -> None:
    """A queue that the webhook completes, and one that it refuses."""
    with closing(plane.client()) as client:
        made = client.create(QUEUES, {"metadata": {"name": "research"}, "spec": {}}, dry_run=True)
        assert made.spec.reclaimable
        with pytest.raises(Invalid, match="queue nowhere does not exist"):
            client.create(QUEUES, {"metadata": {"name": "lost"}, "spec": {"parent": "nowhere"}}, dry_run=True)


def test_others_are_refused(plane: Plane) -> None:
    """Without a certificate, and with one of the cluster's own authority: those are users, and no API servers."""
    pki = plane.root / "pki"
    for client in (None, (pki / "kube-scheduler.crt", pki / "kube-scheduler.key")):
        with pytest.raises(OSError, match=REFUSED):
            asked(plane, client)
    known = (pki / "webhook-clients" / "client.crt", pki / "webhook-clients" / "client.key")
    assert asked(plane, known)["response"]["uid"] == "u-1"


def test_probes_need_no_certificate(plane: Plane) -> None:
    """They have a port of their own."""
    for path in ("healthz", "readyz"):
        with urllib.request.urlopen(
            f"http://127.0.0.1:{plane.state.ports['webhook-status']}/{path}", timeout=20
        ) as page:
            assert page.status == 200
