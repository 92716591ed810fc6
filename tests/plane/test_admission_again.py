"""A Job's manifest can be applied again, by every way that kubectl has; a real change is refused at its field."""

import json
from collections.abc import Iterator
from contextlib import closing, suppress
from copy import deepcopy
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
    """The Job stays as it was; its tasks are as they were sent, and a plugin that is implied is added."""
    write(manifest())
    once = write.stored
    write(manifest())
    assert write.stored == once
    assert once["tasks"] == manifest()["spec"]["tasks"]
    assert (once["maxRetry"], once["minAvailable"], once["queue"]) == (3, 3, "default")
    assert once["plugins"] == {"pytorch": ["--master=server"], "svc": []}


@ANY
def test_other_replicas(write: Writer) -> None:
    """The minimums, which the manifest does not give, follow the replicas: up, down, and through nothing."""
    write(manifest())
    for replicas in (4, 0, 12, 1):
        write(manifest(replicas=replicas))
        spec = write.stored
        assert (spec["tasks"][0]["replicas"], spec["minAvailable"]) == (replicas, replicas + 1)


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
    """What touches one field changes that, and the minimum that the user left out."""
    write(manifest())
    once = write.stored
    write.client.merge_patch(JOB, "train", {"metadata": {"labels": {"a": "b"}}}, namespace)
    assert write.stored == once
    scale = {"op": "replace", "path": "/spec/tasks/0/replicas", "value": 3}
    write.client.json_patch(JOB, "train", [scale], namespace)
    once["tasks"][0]["replicas"], once["minAvailable"] = 3, 4
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


@pytest.mark.parametrize("way", ["apply --server-side"])
def test_kubectl_sends_the_same(write: Writer, plane: Plane, namespace: str) -> None:
    """By its other ways, too, a manifest comes again."""
    write(manifest())
    once = write.stored
    for verb in (("apply", "--server-side"), ("replace",)):
        by_kubectl(plane, namespace, manifest(), *verb)
        assert write.stored == once


POD = {"containers": [{
    "name": "main",
    "image": "none",
    "ports": [{"containerPort": 29500}],
    "resources": {"limits": {"cpu": "500m"}},
}]}  # fmt: skip
JOB_SPEC: JSON = {
    "maxRetry": 0,
    "minAvailable": 0,
    "queue": "default",
    "tasks": [
        {"replicas": 2, "template": {"spec": POD | {"hostNetwork": True}}},
        {
            "name": "workers",
            "replicas": 2,
            "minAvailable": 0,
            "template": {"spec": POD},
            "partitionPolicy": {"totalPartitions": 2, "partitionSize": 1, "networkTopology": {"highestTierAllowed": 1}},
        },
    ],
}
STEPS = [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}, "patch": {"jobSpec": {"tasks": []}}}]
SUB_GROUPS = [{"name": "rack", "labelSelector": {"matchLabels": {"a": "b"}}, "matchLabelKeys": ["rack"]}]
MEMBERS = [{"type": "Node", "selector": {"exactMatch": {"name": "no-such-node"}}}]
RUNTIME = {"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {
    "template": {"spec": {"containers": [{"name": "node", "image": "none"}]}}}}}]}}}  # fmt: skip
TRAINER = {"numNodes": 2, "env": [{"name": "A", "value": "1"}], "resourcesPerNode": {"limits": {"cpu": "1"}}}
PATCHES = [
    {"manager": f"{name}.io/a", "trainingRuntimeSpec": {"template": {"metadata": {"labels": {name: "b"}}}}}
    for name in ("one", "two")
]
MANIFESTS: dict[str, tuple[str, JSON]] = {
    "Job": ("batch.volcano.sh/v1alpha1", JOB_SPEC),
    "CronJob": ("batch.volcano.sh/v1alpha1", {"schedule": "0 3 * * *", "jobTemplate": {"spec": JOB_SPEC}}),
    "JobTemplate": ("flow.volcano.sh/v1alpha1", JOB_SPEC),
    "JobFlow": ("flow.volcano.sh/v1alpha1", {"flows": STEPS}),
    "PodGroup": ("scheduling.volcano.sh/v1beta1", {"minMember": 2, "subGroupPolicy": SUB_GROUPS}),
    "Queue": ("scheduling.volcano.sh/v1beta1", {"weight": 0, "capability": {"cpu": "4000m"}, "deserved": {"cpu": 2}}),
    "HyperNode": ("topology.volcano.sh/v1alpha1", {"tier": 1, "members": MEMBERS}),
    "TrainingRuntime": ("trainer.kubeflow.org/v1alpha1", RUNTIME),
    "ClusterTrainingRuntime": ("trainer.kubeflow.org/v1alpha1", RUNTIME),
    "TrainJob": ("trainer.kubeflow.org/v1alpha1",
        {"runtimeRef": {"name": "torch-distributed"}, "trainer": TRAINER, "suspend": True, "runtimePatches": PATCHES}),
}  # fmt: skip
"""A manifest of each kind, as a user writes it: without what the schema or admission can fill in."""


def test_manifests_of_all_kinds_are_applied_by_several(plane: Plane, namespace: str) -> None:
    """Two managers apply them on the server without a conflict; kubectl's own apply then finds nothing to change."""
    sent = [
        {"apiVersion": api_version, "kind": kind, "metadata": {"name": f"{namespace}-again"}, "spec": deepcopy(spec)}
        for kind, (api_version, spec) in MANIFESTS.items()
    ]
    [queue] = [each for each in sent if each["kind"] == "Queue"]
    queue["metadata"]["annotations"] = {"volcano.sh/hierarchy": namespace, "volcano.sh/hierarchy-weights": "1"}
    manifests = json.dumps({"apiVersion": "v1", "kind": "List", "items": sent})

    def run(verb: str, *options: str) -> list[str]:
        done = plane.kubectl(verb, f"--namespace={namespace}", *options, "--filename=-", stdin=manifests)
        assert not done.returncode, done.stdout + done.stderr
        return done.stdout.splitlines()

    try:
        for manager in ("flux", "argo", "flux", "argo"):
            run("apply", "--server-side", f"--field-manager={manager}")
        run("delete")
        run("apply")
        assert run("diff") == []
        assert [line.rpartition(" ")[2] for line in run("apply")] == ["unchanged"] * len(MANIFESTS)
        run("apply", "--server-side", "--field-manager=argo")
        assert run("diff", "--server-side", "--field-manager=flux") == []
    finally:
        plane.kubectl("delete", f"--namespace={namespace}", "--ignore-not-found", "--filename=-", stdin=manifests)
