"""A Job's manifest can be applied again, by every way that kubectl has; a real change is refused at its field."""

import json
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import pytest
from jobs import task
from manifests import as_it_stands

from muster.api.volcano.batch import JOBS
from muster.kube.errors import APIError, Conflict, NotFound
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane

JSON = dict[str, Any]
JOB = as_it_stands(JOBS)
TRIES = 10


def manifest(*, replicas: int = 2, image: str = "none", **spec: Any) -> JSON:
    """A Job as a user writes it: without what admission fills in, and in a user's words."""
    worker = task("", replicas)
    worker["template"]["spec"] |= {"hostNetwork": True, "volumes": [{"name": "scratch", "emptyDir": {}}]}
    worker["template"]["spec"]["containers"][0] |= {
        "image": image,
        "resources": {"limits": {"cpu": "1000m", "nvidia.com/gpu": 1}},
    }
    policies = [{"event": "PodEvicted", "action": "RestartJob", "timeout": "1h"}]
    tasks = [worker, {**task("server", 1), "policies": policies}]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {"plugins": {"pytorch": ["--master=server"]}, "tasks": tasks, **spec},
    }


def by_kubectl(plane: Plane, namespace: str, job: JSON, *verb: str) -> None:
    """Send a manifest, again if the controller has written a status meanwhile; raise APIError if it is refused."""
    for _ in range(TRIES):
        sent = plane.kubectl(*verb, f"--namespace={namespace}", "--filename=-", stdin=json.dumps(job))
        if "(Conflict)" not in sent.stderr:
            break
    if sent.returncode:
        raise APIError(sent.stderr)


class Writer:
    """Sends the Job's manifest to its namespace, each time in the same way."""

    def __init__(self, plane: Plane, namespace: str, way: str) -> None:
        self.client, self._plane, self._namespace, self._way = plane.client(), plane, namespace, way

    def __call__(self, job: JSON) -> None:
        """Send it; raise APIError if it is refused."""
        {"apply": self._apply, "apply --server-side": self.apply_on_the_server, "replace": self._replace}[self._way](
            job
        )

    @property
    def stored(self) -> JSON:
        """The spec of the Job as it is."""
        spec: JSON = self.client.get(JOB, "train", self._namespace)["spec"]
        return spec

    def told(self, job: JSON) -> str:
        """Return the text of its refusal."""
        with pytest.raises(APIError) as error:
            self(job)
        return str(error.value)

    def apply_on_the_server(self, job: JSON, *, force: bool = False) -> None:
        """Send what `kubectl apply --server-side` sends, with --force-conflicts or without."""
        self.client.apply(JOB, job, namespace=self._namespace, field_manager="kubectl", force=force)

    def _apply(self, job: JSON) -> None:
        by_kubectl(self._plane, self._namespace, job, "apply", "--validate=false")

    def _replace(self, job: JSON) -> None:
        """Send what `kubectl replace` sends: the version that there is, once there is one."""
        for _ in range(TRIES):
            try:
                there = self.client.get(JOB, "train", self._namespace)["metadata"]
            except NotFound:
                self.client.create(JOB, job, self._namespace)
                return
            whole = {**job, "metadata": {**job["metadata"], "resourceVersion": there["resourceVersion"]}}
            with suppress(Conflict):
                path = JOB.path(self._namespace, "train")
                self.client.request("PUT", path, body=json.dumps(whole).encode())
                return
        pytest.fail("the Job changes all the time")


@pytest.fixture
def write(plane: Plane, namespace: str, way: str) -> Iterator[Writer]:
    """Writes a Job in the way of the test."""
    with closing((writer := Writer(plane, namespace, way)).client):
        yield writer


ANY = pytest.mark.parametrize("way", ["apply", "apply --server-side", "replace"])
APPLIED = pytest.mark.parametrize("way", ["apply", "apply --server-side"])


@ANY
def test_the_same_manifest_again(write: Writer) -> None:
    """The Job stays as it was, with all that was filled in."""
    write(manifest())
    once = write.stored
    write(manifest())
    assert write.stored == once
    assert [(each["name"], each["minAvailable"], each["maxRetry"]) for each in once["tasks"]] == [
        ("default0", 2, 3),
        ("server", 1, 3),
    ]
    assert once["tasks"][0]["template"]["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert once["plugins"] == {"pytorch": ["--master=server"], "svc": []}


@ANY
def test_other_replicas(write: Writer) -> None:
    """The minimums, which the manifest does not give, follow the replicas: up, down, and through nothing."""
    write(manifest())
    for replicas in (4, 0, 12, 1):
        write(manifest(replicas=replicas))
        spec = write.stored
        assert (spec["tasks"][0]["replicas"], spec["tasks"][0]["minAvailable"]) == (replicas, replicas)
        assert spec["minAvailable"] == replicas + 1


@APPLIED
def test_a_minimum_of_the_users(write: Writer) -> None:
    """The Job's minimum is the user's when the manifest has it: fewer pods than that are refused."""
    write(manifest(minAvailable=3))
    assert "spec.minAvailable: Invalid value: 3" in write.told(manifest(minAvailable=3, replicas=1))
    write(manifest(minAvailable=3, replicas=4))
    assert write.stored["minAvailable"] == 3


@APPLIED
def test_a_minimum_that_is_said_later(write: Writer) -> None:
    """It is the user's from then on, also if admission had written the same."""
    write(manifest())
    write(manifest(minAvailable=3))
    write(manifest(minAvailable=3, replicas=4))
    assert write.stored["minAvailable"] == 3


@pytest.mark.parametrize("way", ["apply"])
def test_label_and_scale(write: Writer, namespace: str) -> None:
    """What touches one field only changes that."""
    write(manifest())
    once = write.stored
    write.client.merge_patch(JOB, "train", {"metadata": {"labels": {"a": "b"}}}, namespace)
    assert write.stored == once
    scale = {"op": "replace", "path": "/spec/tasks/0/replicas", "value": 3}
    write.client.json_patch(JOB, "train", [scale], namespace)
    once["tasks"][0]["replicas"] = 3
    assert write.stored == once


@ANY
def test_another_image_is_refused_at_its_field(write: Writer) -> None:
    """Nothing that the manifest leaves out is named beside it."""
    write(manifest())
    said = write.told(manifest(image="other"))
    assert "spec.tasks[0].template.spec.containers[0].image: Forbidden: job updates may not change fields" in said
    assert said.count("Forbidden") == 1, said


@pytest.mark.parametrize("way", ["replace"])
def test_what_a_client_with_types_writes_back(write: Writer, namespace: str) -> None:
    """Amounts, durations and empty structures in its words are no change, and a new minimum gets through."""
    write(manifest())
    written = write.client.get(JOB, "train", namespace)
    spec = written["spec"]
    container = spec["tasks"][0]["template"]["spec"]["containers"][0]
    container["resources"]["limits"] = {"cpu": "1", "nvidia.com/gpu": "1"}
    container["securityContext"] = None
    spec["tasks"][1]["policies"][0]["timeout"] = "1h0m0s"
    spec["tasks"][1]["template"]["metadata"]["creationTimestamp"] = None
    spec["tasks"][1]["template"]["spec"]["volumes"] = []
    spec["minAvailable"] = 2
    write(written)
    assert write.stored["minAvailable"] == 2


@pytest.mark.parametrize("way", ["apply"])
def test_from_apply_to_server_side(write: Writer) -> None:
    """The list of tasks, which admission fills in, is taken over once by force; then it is the new manager's."""
    write(manifest())
    once = write.stored
    with pytest.raises(Conflict, match=r"\.spec\.tasks"):
        write.apply_on_the_server(manifest())
    write.apply_on_the_server(manifest(), force=True)
    write.apply_on_the_server(manifest())
    assert write.stored == once


@pytest.mark.parametrize("way", ["apply --server-side"])
def test_kubectl_sends_the_same(write: Writer, plane: Plane, namespace: str) -> None:
    """By its other ways, too, a manifest comes again."""
    write(manifest())
    once = write.stored
    for verb in (("apply", "--server-side"), ("replace",)):
        by_kubectl(plane, namespace, manifest(), *verb)
        assert write.stored == once
