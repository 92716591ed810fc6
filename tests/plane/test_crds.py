"""The generated CRDs on a real API server, without Muster's processes: what the schemas alone promise."""

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from making import KUBERNETES
from manifests import changed

from muster.api.base import Resource
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import COMMANDS, JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.api.volcano.topology import TOPOLOGIES
from muster.crds.files import DEFINITIONS
from muster.crds.openapi import OPENAPI_PATH, committed_core, reduced
from muster.kube.client import Client
from muster.kube.errors import BadRequest, Invalid, NotFound
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.api]
WaitFor = Callable[..., Any]

JOB: dict[str, Any] = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"generateName": "job-", "namespace": "default"},
    "spec": {"minAvailable": 1, "networkTopology": {"highestTierAllowed": 2},
        "tasks": [{"name": "worker", "replicas": 4, "partitionPolicy": {"totalPartitions": 2, "partitionSize": 2},
        "template": {"spec": {"containers": [{"name": "main", "image": "busybox", "ports": [{"containerPort": 80}]}],
        "imagePullSecrets": [{}]}}}]},
}  # fmt: skip
PLACEMENT: dict[str, Any] = {
    "apiVersion": "muster.dev/v1alpha1",
    "kind": "Placement",
    "metadata": {"generateName": "gang-", "namespace": "default"},
    "spec": {"podGroupUID": "1", "epoch": 2, "podSets": [{"name": "worker",
        "runs": [{"node": "node-1", "count": 3}, {"node": "node-2"}]}]},
}  # fmt: skip
NEXT_PLACEMENTS = replace(PLACEMENTS, version="v1beta1")


@pytest.fixture(scope="module")
def client(api_plane: Plane) -> Client:
    """A client of an API server with the CRDs, and nothing that would act on the objects."""
    return api_plane.client()


def raw(client: Client, path: str) -> Any:
    """What the API server answers, untrimmed."""
    return json.loads(client.request("GET", path))


def test_every_crd_is_established_and_structural(client: Client) -> None:
    """The API server serves all kinds and has nothing to complain about."""
    items = raw(client, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]
    ours = [item for item in items if item["spec"]["group"] != TOPOLOGIES.group]  # of another test
    conditions = {item["metadata"]["name"]: item["status"]["conditions"] for item in ours}
    assert set(conditions) == {f"{each.resource.plural}.{each.resource.group}" for each in DEFINITIONS}
    for name, found in conditions.items():
        assert {one["type"]: one["status"] for one in found} == {"NamesAccepted": "True", "Established": "True"}, name


@pytest.mark.skipif(KUBERNETES not in {"", "1.37"}, reason="each version has its own schemas")
def test_the_committed_core_schemas_are_this_api_servers(client: Client) -> None:
    """core.json is what `--openapi-from` would write for the Kubernetes version that Muster is built with."""
    assert reduced(raw(client, OPENAPI_PATH)) == committed_core()


def test_kubectl_explains_fields_of_pod_templates(api_plane: Plane, wait_for: WaitFor) -> None:
    """By the short name of the kind; discovery may lag a second behind."""
    path = "vcjob.spec.tasks.template.spec.containers.image"
    wait_for(lambda: api_plane.kubectl("explain", path).returncode == 0, what=f"kubectl explain {path}")


EXPLAINED: dict[str, tuple[Resource[Any], str]] = {
    "spec.tasks.template.spec": (JOBS, "vcjob"),
    "spec.volumes.volumeClaim.resources.requests": (JOBS, "vcjob"),
    "spec.subGroupPolicy.labelSelector": (POD_GROUPS, "pg"),
    "spec.weight": (QUEUES, "q"),
    "target.uid": (COMMANDS, "command"),
    "spec.podSets.runs": (PLACEMENTS, "placement"),
}
"""What `kubectl explain` is asked for: a path of fields, and a name of its kind that users type."""


@pytest.mark.parametrize("path", EXPLAINED)
def test_the_schema_is_published_whole(client: Client, wait_for: WaitFor, path: str) -> None:
    """As `kubectl explain` reads it: the kind by its name, then field by field; both may lag a second behind."""
    resource, name = EXPLAINED[path]

    def known() -> bool:
        served = raw(client, f"/apis/{resource.group}/{resource.version}")["resources"]
        [one] = [each for each in served if each["name"] == resource.plural]
        try:
            document = raw(client, f"/openapi/v3/apis/{resource.group}/{resource.version}")
        except NotFound:  # of the whole group, while the API server is young
            return False
        [schema] = [each for each in document["components"]["schemas"].values() if _is_of(each, resource)]
        for field in path.split("."):
            schema = schema.get("items", schema)["properties"].get(field)
            if not schema:
                return False
        return name in {one["singularName"], one["name"], *one.get("shortNames", ())}

    wait_for(known, what=f"{name} {path}")


def _is_of(schema: dict[str, Any], resource: Resource[Any]) -> bool:
    of = [(each["group"], each["version"], each["kind"]) for each in schema.get("x-kubernetes-group-version-kind", ())]
    return (resource.group, resource.version, resource.kind) in of


def test_a_typo_in_a_template_is_refused(client: Client) -> None:
    """The message names the path of the unknown field; kubectl asks for that, unless told otherwise."""
    job = changed(JOB, "spec.tasks.0.template.spec.containers", [{"name": "main", "imgae": "busybox"}])
    with pytest.raises(BadRequest, match=r'unknown field "spec\.tasks\[0\]\.template\.spec\.containers\[0\]\.imgae"'):
        client.create(JOBS, job, strict=True)


@pytest.mark.parametrize(("path", "value", "message"), [
    ("minAvailable", -1, "spec.minAvailable in body should be greater than or equal to 0"),
    ("maxRetry", -1, "spec.maxRetry in body should be greater than or equal to 0"),
    ("ttlSecondsAfterFinished", -1, "should be greater than or equal to 0"),
    ("minSuccess", 0, "spec.minSuccess in body should be greater than or equal to 1"),
    ("tasks", [], "spec.tasks in body should have at least 1 items"),
    ("tasks.0.replicas", -1, "spec.tasks[0].replicas in body should be greater than or equal to 0"),
    ("tasks.0.minAvailable", -1, "should be greater than or equal to 0"),
    ("tasks.0.maxRetry", -2, "should be greater than or equal to -1"),
    ("tasks.0.name", "Worker", "spec.tasks[0].name in body should match"),
    ("tasks.0.dependsOn", {"iteration": "some"}, 'Unsupported value: "some"'),
    ("tasks.0.partitionPolicy", {"partitionSize": 1}, "spec.tasks[0].partitionPolicy.totalPartitions: Required"),
    ("tasks.0.topologyPolicy", "near", 'Unsupported value: "near"'),
    ("tasks.0.template.spec.restartPolicy", "Sometimes", 'Unsupported value: "Sometimes"'),
    ("tasks.0.template.spec.overhead", {"cpu": "1core"}, "spec.tasks[0].template.spec.overhead.cpu in body should"),
    ("volumes", [{"volumeClaimName": "data"}], "spec.volumes[0].mountPath: Required value"),
    ("volumes", [{"mountPath": "a:b"}], "spec.volumes[0].mountPath in body should match"),
    ("policies", [{"event": "PodVanished"}], 'spec.policies[0].event: Unsupported value: "PodVanished"'),
    ("policies", [{"timeout": "5 minutes"}], "spec.policies[0].timeout in body should match"),
    ("networkTopology", {"mode": "medium"}, 'Unsupported value: "medium"'),
    ("networkTopology", {"highestTierAllowed": 1, "highestTierName": "rack"},
        "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"),
    ("tasks.0.partitionPolicy.networkTopology", {"highestTierAllowed": 1, "highestTierName": "rack"},
        "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"),
])  # fmt: skip
def test_a_bad_job_is_refused_in_the_api_servers_words(client: Client, path: str, value: Any, message: str) -> None:
    """Existing clients look for these texts."""
    with pytest.raises(Invalid) as refusal:
        client.create(JOBS, changed(JOB, f"spec.{path}", value), dry_run=True)
    assert message in refusal.value.message


@pytest.mark.parametrize(("path", "value"), [
    ("policies", [{"action": "AnyAction", "event": "PodFailed", "timeout": "1m30s"}]),
    ("policies", [{"action": "RestartJob", "events": ["PodFailed", "PodEvicted"]}, {"exitCode": 3}]),
    ("networkTopology", {"highestTierAllowed": 1, "highestTierName": ""}),
    ("queue", ""),
    ("tasks.0.maxRetry", -1),
    ("tasks", [{"replicas": 1, "template": {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}}]),
    ("volumes", [{"mountPath": "data", "volumeClaim": {"resources": {"requests": {"storage": "1Gi"}}}}]),
    ("plugins", {"svc": [], "ssh": ["--port=22"]}),
])  # fmt: skip
def test_what_manifests_contain_is_accepted(client: Client, path: str, value: Any) -> None:
    """The schema refuses no more than it must; an action is checked by the webhook."""
    client.create(JOBS, changed(JOB, f"spec.{path}", value), dry_run=True)


def test_the_api_server_fills_in_defaults(client: Client) -> None:
    """Defaults that clients see even where no webhook runs; within lists there are none."""
    job = client.create(JOBS, JOB)
    spec = raw(client, JOBS.path(job.metadata.namespace, job.metadata.name))["spec"]
    assert (spec["queue"], spec["maxRetry"], spec["networkTopology"]["mode"]) == ("default", 3, "hard")
    assert spec["tasks"] == JOB["spec"]["tasks"]
    assert "schedulerName" not in spec


def test_a_job_status_is_written_through_its_subresource_only(client: Client) -> None:
    """A user cannot forge the status with the object."""
    job = client.create(JOBS, {**JOB, "status": {"state": {"phase": "Completed"}}})
    assert job.status.state.phase == "Pending"
    patch = {"status": {"state": {"phase": "Running"}}}
    written = client.merge_patch(JOBS, job.metadata.name, patch, "default", subresource="status")
    assert written.status.state.phase == "Running"


def test_a_pod_groups_status_is_written_with_the_object(client: Client) -> None:
    """PodGroup has no status subresource: clients write the status through the main resource."""
    group = client.create(
        POD_GROUPS,
        {"metadata": {"generateName": "pg-"}, "spec": {"minMember": 2}, "status": {"phase": "Pending"}},
        "default",
    )
    assert (group.status.phase, group.spec.queue) == ("Pending", "default")
    patch = {"spec": {"minMember": 3}, "status": {"phase": "Inqueue"}}
    written = client.merge_patch(POD_GROUPS, group.metadata.name, patch, "default")
    assert (written.spec.min_member, written.status.phase) == (3, "Inqueue")


def test_a_queues_status_is_written_through_its_subresource_only(client: Client) -> None:
    """Clients close a queue by writing `status.state` through the subresource."""
    queue = client.create(QUEUES, {"metadata": {"generateName": "q-"}, "spec": {}, "status": {"state": "Closed"}})
    assert (queue.status.state, queue.spec.weight) == ("", 1)
    patch = {"status": {"state": "Closed"}}
    assert client.merge_patch(QUEUES, queue.metadata.name, patch).status.state == ""
    assert client.merge_patch(QUEUES, queue.metadata.name, patch, subresource="status").status.state == "Closed"
    with pytest.raises(Invalid, match=r"spec\.weight"):
        client.merge_patch(QUEUES, queue.metadata.name, {"spec": {"weight": 65_536}})
    client.delete(QUEUES, queue.metadata.name)


def test_a_command_names_its_target_completely(client: Client) -> None:
    """A command without the target's UID is refused; a complete one has no spec."""
    target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "a"}
    command = {"metadata": {"generateName": "abort-"}, "action": "AbortJob", "target": target}
    with pytest.raises(Invalid, match=r"target\.uid: Required value"):
        client.create(COMMANDS, command, "default")
    assert client.create(COMMANDS, {**command, "target": {**target, "uid": "1"}}, "default").action == "AbortJob"


def test_a_placement_starts_planned_and_its_epoch_never_decreases(client: Client) -> None:
    """A writer that is late cannot bring an old placement back."""
    placement = client.create(PLACEMENTS, PLACEMENT)
    stored = raw(client, PLACEMENTS.path("default", placement.metadata.name))
    assert stored["status"] == {"phase": "Planned", "bound": 0, "planned": 0}
    assert stored["spec"]["podSets"][0]["runs"][1] == {"node": "node-2"}
    client.merge_patch(PLACEMENTS, placement.metadata.name, {"spec": {"epoch": 3}}, "default")
    with pytest.raises(Invalid, match="the epoch must not decrease"):
        client.merge_patch(PLACEMENTS, placement.metadata.name, {"spec": {"epoch": 2}}, "default")


def test_a_placement_has_each_pod_set_once(client: Client) -> None:
    """Two answers to the question where a rank is would be none."""
    placement = deepcopy(PLACEMENT)
    placement["spec"]["podSets"] *= 2
    with pytest.raises(Invalid, match=r"spec\.podSets\[1\]: Duplicate value"):
        client.create(PLACEMENTS, placement)


@pytest.mark.parametrize(
    ("first", "second"),
    [(PLACEMENTS, NEXT_PLACEMENTS), (NEXT_PLACEMENTS, PLACEMENTS)],
    ids=["v1alpha1 first", "v1beta1 first"],
)
def test_both_versions_of_a_placement_are_one_object(
    client: Client, first: Resource[Any], second: Resource[Any]
) -> None:
    """A Placement of one version is read and changed in the other version, and its epoch increases in both."""
    name = client.create(first, {**PLACEMENT, "apiVersion": first.api_version}).metadata.name
    one, other = (raw(client, each.path("default", name)) for each in (first, second))
    assert (one.pop("apiVersion"), other.pop("apiVersion")) == (first.api_version, second.api_version)
    for each in (one, other):
        each["metadata"].pop("managedFields", None)
    assert one == other
    client.merge_patch(second, name, {"spec": {"epoch": 3}}, "default")
    assert client.get(first, name, "default").spec.epoch == 3
    for each in (first, second):
        with pytest.raises(Invalid, match="the epoch must not decrease"):
            client.merge_patch(each, name, {"spec": {"epoch": 2}}, "default")


def test_kubectl_shows_the_newer_version_of_placements(client: Client, api_plane: Plane, wait_for: WaitFor) -> None:
    """With its columns, and without a warning: Muster's own processes use the older one."""
    name = client.create(PLACEMENTS, PLACEMENT).metadata.name
    wait_for(lambda: api_plane.kubectl("get", "pl", name).returncode == 0, what="kubectl get pl")
    shown = api_plane.kubectl("get", "pl", name, "--output=json")
    assert json.loads(shown.stdout)["apiVersion"] == NEXT_PLACEMENTS.api_version
    for version in (PLACEMENTS.version, NEXT_PLACEMENTS.version):
        table = api_plane.kubectl("get", f"placements.{version}.muster.dev", name)
        assert table.stdout.split()[:6] == ["NAME", "PHASE", "EPOCH", "BOUND", "PLANNED", "AGE"]
        assert table.stderr == ""
