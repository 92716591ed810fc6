"""Trainers report their progress: with the token of their pod, to the controller, as Kubeflow's SDK does it."""

import contextlib
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from train_jobs import TrainStory, train_job

from certs.authority import Authority
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.core import CONFIG_MAPS, PODS
from muster.kube.client import Client
from muster.kube.errors import NotFound
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane
WaitFor = Callable[..., Any]
PATH = "trainer.kubeflow.org/v1alpha1/namespaces/{}/trainjobs/{}/status"
TOLD = {
    "progressPercentage": 45,
    "estimatedRemainingSeconds": 120,
    "metrics": [{"name": "loss", "value": "0.5"}],
    "lastUpdatedTime": "2026-11-22T10:00:00+00:00",
}


@pytest.fixture
def story(plane: Plane, namespace: str) -> Iterator[TrainStory]:
    """The TrainJobs of the test's namespace."""
    with contextlib.closing(plane.client()) as client, TrainStory(client, namespace) as one:
        yield one


def token(client: Client, namespace: str, audience: str) -> str:
    """A token of the namespace's service account, as kubelet asks for one."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": [audience]}}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    made: str = json.loads(client.request("POST", path, body=json.dumps(body).encode()))["status"]["token"]
    return made


def report(plane: Plane, url: str, bearer: str, body: bytes) -> tuple[int, dict[str, Any]]:
    """Sends a report, and reads the answer."""
    trust = ssl.create_default_context(cafile=str(plane.commandlines.pki.ca_file))
    headers = {"Authorization": f"Bearer {bearer}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, body, headers, method="POST")  # noqa: S310 - an https URL of the plane's
    try:
        with urllib.request.urlopen(request, context=trust, timeout=10) as response:  # noqa: S310 - as above
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_a_report(plane: Plane, story: TrainStory, namespace: str, wait_for: WaitFor) -> None:
    """What the pod is told to send to whom works, shows in the status, and the TrainJob still completes."""
    story.create(train_job("t", run_s=6))
    wait_for(lambda: story.counts("t", "node")[-1:] == [{"active": 1, "ready": 1}], 60)
    [pod] = story.client.list(PODS, namespace)
    env = {each.name: each.value for each in pod.spec.containers[0].env}
    audience = PATH.format(namespace, "t")
    [volume] = [each for each in pod.spec.volumes if each["name"] == "kubeflow-trainer-token"]
    assert volume["projected"]["sources"][0]["serviceAccountToken"]["audience"] == audience
    url, bearer = env["KUBEFLOW_TRAINER_SERVER_URL"], token(story.client, namespace, audience)
    assert report(plane, url, bearer, json.dumps({"trainerStatus": TOLD}).encode())[0] == 200
    status = story.get("t").status.trainer_status
    assert status
    assert (status.progress_percentage, status.metrics[0].value) == (45, "0.5")
    assert report(plane, url, bearer, b"{}") == (200, {}), "nothing changes nothing"
    wait_for(lambda: story.held("t") == [("Complete", "True", "AllJobsCompleted")])
    assert story.get("t").status.trainer_status == status


def test_refused_reports(plane: Plane, story: TrainStory, namespace: str, wait_for: WaitFor) -> None:
    """Tokens for something else, or of another namespace; bodies that say nothing; TrainJobs that are not there."""
    for name in ("t", "other"):
        story.create(train_job(name, suspend=True))
    wait_for(lambda: story.held("t"))
    url = plane.commandlines.url("controller-reports", scheme="https") + "/apis/"
    right = token(story.client, namespace, PATH.format(namespace, "t"))
    body = json.dumps({"trainerStatus": TOLD}).encode()

    def answer(path: str, bearer: str, sent: bytes = body) -> tuple[int, str]:
        status, said = report(plane, url + path, bearer, sent)
        assert (said["kind"], said["code"]) == ("Status", status)
        return status, said["reason"]

    mine = PATH.format(namespace, "t")
    assert answer(PATH.format(namespace, "other"), right) == (403, "Forbidden"), "made for another TrainJob"
    assert answer(mine, "nonsense") == (403, "Forbidden")
    assert answer(mine, token(story.client, "default", mine)) == (403, "Forbidden"), "of another namespace"
    gone = PATH.format(namespace, "gone")
    assert answer(gone, token(story.client, namespace, gone)) == (404, "NotFound")
    assert answer("v1/pods", right) == (404, "NotFound")
    assert answer(mine, right, b'{"trainerStatus": {"progressPercentage": 101}}') == (422, "Invalid")
    assert answer(mine, right, b'{"trainerStatus": {"progressPercentage": 1}}') == (422, "Invalid"), "no time"
    assert answer(mine, right, b"{") == (400, "BadRequest")
    assert answer(mine, right, b" " * (65 << 10)) == (413, "RequestEntityTooLarge")
    assert story.get("t").status.trainer_status is None


def test_new_authorities_reach_running_pods(plane: Plane, story: TrainStory, namespace: str, wait_for: WaitFor) -> None:
    """What trainers trust stands in a ConfigMap, which follows the controller's file; a lost one is made again, too."""
    file = plane.commandlines.pki.ca_file
    before = file.read_text()
    story.create(train_job("t", run_s=60))
    wait_for(lambda: story.counts("t", "node")[-1:] == [{"active": 1, "ready": 1}], 60)
    assert trusted(story.client, namespace) == before
    try:
        file.write_text(before + Authority.create("another").cert_pem.decode())
        story.client.delete(CONFIG_MAPS, "t-tls-config", namespace)  # so that nobody has to wait for the next look
        wait_for(lambda: trusted(story.client, namespace) == file.read_text(), 60, "both authorities")
        assert story.counts("t", "node")[-1:] == [{"active": 1, "ready": 1}], "the pod runs on"
    finally:
        file.write_text(before)
        story.client.delete(TRAIN_JOBS, "t", namespace)


def trusted(client: Client, namespace: str) -> str:
    """Whom the pods of TrainJob t trust."""
    with contextlib.suppress(NotFound):
        path = f"/api/v1/namespaces/{namespace}/configmaps/t-tls-config"
        return str(json.loads(client.request("GET", path))["data"]["ca.crt"])
    return ""
