"""What the documentation shows as YAML is accepted: objects by the API server, settings by `muster config check`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml
from documentation import PAGES, documents, text_of
from manifests import refusal_of

from extender.planner.cycle import report_of
from muster.api import names
from muster.api.kubernetes.core import NAMESPACES
from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from musterctl import settings
from musterctl.plane import pki
from webhook.config import parse

pytestmark = pytest.mark.plane
NAMESPACE: Final = "documented"
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


@pytest.fixture(scope="module")
def job(shared_client: Client) -> Iterator[str]:
    """The UID of a Job `train` in the namespace of these tests."""
    shared_client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    task = {"name": "worker", "replicas": 1, "template": {"spec": {"containers": [{"name": "main", "image": "none"}]}}}
    spec = {"schedulerName": "volcano", "tasks": [task]}
    yield shared_client.create(JOBS, {"metadata": {"name": "train"}, "spec": spec}, NAMESPACE).metadata.uid
    shared_client.delete(NAMESPACES, NAMESPACE)


@pytest.mark.parametrize("document", [text for _, text in WHOLE], ids=[name for name, _ in WHOLE])
def test_whole_objects_are_accepted(document: str, shared_client: Client, job: str) -> None:
    """By validation and admission, as a dry run; a Command of the page is for a Job that is there."""
    content = yaml.safe_load(document)
    if process := settings.process_of(document):
        settings.check_settings(process, document)
        return
    if content["kind"] == "Command":
        content["target"]["uid"] = job
    elif content["kind"] == "Job" and content["metadata"]["name"] == "train":
        content["metadata"]["name"] = "another"
    content["metadata"].pop("namespace", None)  # it does not exist here
    assert not refusal_of(shared_client, content, NAMESPACE)


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
        pki.admission_control(folder / "callers.yaml"),
        pki.webhook_callers(folder / "client.crt", folder / "client.key", host),
    ]


def test_there_are_some() -> None:
    """The patterns find them."""
    assert len(WHOLE) >= 8
    assert len(PARTS) >= 5
