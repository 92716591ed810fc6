"""What the documentation shows as YAML is accepted: objects by the API server, settings by `muster config check`."""

from pathlib import Path
from typing import Final

import pytest
import yaml
from documentation import PAGES, documents, text_of
from planes import Kubectl

from extender.planner.cycle import report_of
from muster.api import names
from musterctl import settings
from musterctl.plane import admission
from webhook.config import parse

pytestmark = pytest.mark.plane
_PLANNING: Final = ("actions", "tiers")
_GROUPS: Final = "resourceGroups"
_FILES: Final = ("AdmissionConfiguration", "Config")
"""Kinds that an API server reads from files."""
WHOLE: Final = [
    (name, document)
    for name in PAGES
    for document in documents(text_of(name))
    if {"apiVersion", "kind"} <= {*(yaml.safe_load(document) or {})}
    and not yaml.safe_load(document)["apiVersion"].startswith("cert-manager.io/")  # installed on no plane
    and yaml.safe_load(document)["kind"] not in _FILES
]
PARTS: Final = [
    (name, document)
    for name in PAGES
    for document in documents(text_of(name))
    if {*_PLANNING, _GROUPS} & {*(yaml.safe_load(document) or {})}
]


@pytest.fixture
def job(kubectl: Kubectl, namespace: str) -> str:
    """The UID of a Job `train`."""
    task = {"name": "worker", "replicas": 1, "template": {"spec": {"containers": [{"name": "main", "image": "none"}]}}}
    spec = {"schedulerName": "volcano", "tasks": [task]}
    one = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "train"}, "spec": spec}
    kubectl.create(namespace, one)
    return str(kubectl.json("get", "vcjob", "train", f"--namespace={namespace}")["metadata"]["uid"])


@pytest.mark.parametrize("document", [text for _, text in WHOLE], ids=[name for name, _ in WHOLE])
def test_whole_objects_are_accepted(document: str, kubectl: Kubectl, namespace: str, job: str) -> None:
    """By validation and admission, as a dry run; a Command of the page is for a Job that is there."""
    content = yaml.safe_load(document)
    if process := settings.process_of(document):
        settings.check(process, document)
        return
    if content["kind"] == "Command":
        content["target"]["uid"] = job
    elif content["kind"] == "Job" and content["metadata"]["name"] == "train":
        content["metadata"]["name"] = "another"
    kubectl("create", "--dry-run=server", "--validate=strict", f"--namespace={namespace}", "-f", "-", stdin=content)


@pytest.mark.parametrize("document", [text for _, text in PARTS], ids=[name for name, _ in PARTS])
def test_configuration_is_accepted(document: str) -> None:
    """As the extender and the webhook read it; plugins of the reader's own are not here."""
    if _GROUPS in yaml.safe_load(document):
        assert parse(document)
        return
    errors = [each for each in report_of(document).errors if "quietnodes" not in each]
    assert not errors


def test_an_api_server_is_told_of_its_certificate_as_on_a_plane() -> None:
    """Where tests/plane/test_webhook_clients.py has it call the webhook; there the certificate is for every webhook."""
    folder = Path("/etc/kubernetes/muster-webhook")
    host = f"muster-webhook.{names.SYSTEM_NAMESPACE}.svc"
    shown = [yaml.safe_load(text) for text in documents(text_of("install.md"))]
    assert [each for each in shown if each and each.get("kind") in _FILES] == [
        admission.control(folder / "callers.yaml"),
        admission.callers(folder / "client.crt", folder / "client.key", host),
    ]


def test_there_are_some() -> None:
    """The patterns find them."""
    assert len(WHOLE) >= 8
    assert len(PARTS) >= 5
