"""Where administrators say so, tenants do not opt out of Muster, by whatever kind of object; Muster itself goes on."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from builders.manifests import job_owner
from tenants import OWN_RULES, ROLE_BINDINGS, ROLES, pod, refusal, tenant

from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.core import NAMESPACES, PODS
from muster.kube.client import Client
from muster.kube.errors import Invalid
from musterctl.chart.files import FILES, manifests
from musterctl.plane import install
from musterctl.plane.plane import Plane
from musterctl.plane.state import CONTROLLER, WEBHOOK

pytestmark = [pytest.mark.plane, pytest.mark.api]
JSON = dict[str, Any]
WaitFor = Callable[..., Any]
OUT = {names.MANAGED: "false"}
SEEN = {names.REVIEWED: "true"}
TOLD = "are not for users of this cluster"
ALL = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]


def kind(group: str, version: str, plural: str, name: str) -> Resource[JSON]:
    """A kind whose objects are as they stand."""
    return Resource(group, version, plural, name, dict[str, Any])


DEPLOYMENTS = kind("apps", "v1", "deployments", "Deployment")
JOBS = kind("batch", "v1", "jobs", "Job")
CRON_JOBS = kind("batch", "v1", "cronjobs", "CronJob")
TRAIN_JOBS = kind("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob")
VOLCANO_JOBS = kind("batch.volcano.sh", "v1alpha1", "jobs", "Job")
JOB_TEMPLATES = kind("flow.volcano.sh", "v1alpha1", "jobtemplates", "JobTemplate")


def template(**labels: str) -> JSON:
    """A pod template."""
    containers = [{"name": "main", "image": "i"}]
    return {
        "metadata": {"labels": {"app": "a", **labels}},
        "spec": {"restartPolicy": "Never", "containers": containers},
    }


def deployment(own: JSON, inner: JSON) -> JSON:
    """A Deployment."""
    made = template(**inner)
    made["spec"]["restartPolicy"] = "Always"
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": made}
    return {"metadata": {"name": "it", "labels": own}, "spec": spec}


def cron_job(middle: JSON, inner: JSON) -> JSON:
    """A CronJob."""
    job = {"metadata": {"labels": middle}, "spec": {"template": template(**inner)}}
    return {"metadata": {"name": "it"}, "spec": {"schedule": "0 0 1 1 *", "jobTemplate": job}}


def volcano_job(inner: JSON) -> JSON:
    """A Volcano Job of one task."""
    return {
        "metadata": {"name": "it"},
        "spec": {"tasks": [{"name": "a", "replicas": 1, "template": template(**inner)}]},
    }


OBJECTS: dict[str, tuple[Any, Callable[[JSON], JSON]]] = {
    "pod": (PODS, lambda labels: pod("it", metadata={"labels": labels})),
    "deployment": (DEPLOYMENTS, lambda labels: deployment(labels, {})),
    "template of a deployment": (DEPLOYMENTS, lambda labels: deployment({}, labels)),
    "job": (JOBS, lambda labels: {"metadata": {"name": "it", "labels": labels}, "spec": {"template": template()}}),
    "template of a job": (JOBS, lambda labels: {"metadata": {"name": "it"}, "spec": {"template": template(**labels)}}),
    "job of a cron job": (CRON_JOBS, lambda labels: cron_job(labels, {})),
    "template of a cron job": (CRON_JOBS, lambda labels: cron_job({}, labels)),
    "train job": (TRAIN_JOBS, lambda labels: {"metadata": {"name": "it", "labels": labels},
        "spec": {"runtimeRef": {"name": "plain"}}}),
    "task of a volcano job": (VOLCANO_JOBS, volcano_job),
    "task of a job template": (JOB_TEMPLATES, volcano_job),
}  # fmt: skip


class World:
    """A plane with the policy, its administrator, and somebody who may do everything in his namespace."""

    def __init__(self, plane: Plane, folder: Path, wait_for: WaitFor) -> None:
        self.plane, self.admin = plane, plane.client()
        he = tenant(plane, "opts-out", folder)
        self.admin.merge_patch(ROLES, "tenant", {"rules": [*OWN_RULES, *ALL]}, he.namespace)
        self.client, self.namespace = he.client, he.namespace
        install.apply(self.admin, manifests(FILES / "choices" / "opt-out.yaml"))
        wait_for(lambda: TOLD in self.told("pod", OUT), what="the policy and his rights")

    def told(self, what: str, labels: JSON, client: Client | None = None) -> str:
        """What somebody is told who makes such an object with these labels."""
        resource, make = OBJECTS[what]
        who = client or self.client
        return refusal(lambda: who.create(resource, make(labels), self.namespace, dry_run=True))


@pytest.fixture(scope="module")
def world(api_plane: Plane, tmp_path_factory: pytest.TempPathFactory, wait_for: WaitFor) -> Iterator[World]:
    """An API server without webhooks: what they say is not looked for here."""
    world = World(api_plane, tmp_path_factory.mktemp("owner"), wait_for)
    yield world
    for plural in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
        world.admin.request("DELETE", f"/apis/admissionregistration.k8s.io/v1/{plural}/muster-opt-out")
    world.client.close()
    world.admin.close()


@pytest.mark.parametrize("what", OBJECTS)
@pytest.mark.parametrize("labels", [OUT, SEEN], ids=["opts out", "says it was reviewed"])
def test_a_tenant_sets_neither_label(world: World, what: str, labels: JSON) -> None:
    """Nor when he changes an object; an administrator may, and other values mean nothing."""
    assert TOLD in world.told(what, labels)
    assert world.told(what, labels, world.admin) == ""
    assert world.told(what, {names.MANAGED: "true", names.REVIEWED: "false"}) == ""


def test_labels_come_by_no_change(world: World) -> None:
    """To a pod that there is. One that an administrator has let out can be changed otherwise, but for more of it."""
    world.client.create(PODS, pod("mine"), world.namespace)
    change: JSON = {"metadata": {"labels": OUT}}
    assert TOLD in refusal(lambda: world.client.merge_patch(PODS, "mine", change, world.namespace))
    world.admin.create(PODS, pod("let-out", metadata={"labels": OUT}), world.namespace)
    other: JSON = {"metadata": {"labels": {"a": "b"}}}
    assert not refusal(lambda: world.client.merge_patch(PODS, "let-out", other, world.namespace))
    more: JSON = {"metadata": {"labels": SEEN}}
    assert TOLD in refusal(lambda: world.client.merge_patch(PODS, "let-out", more, world.namespace))


def test_a_namespace_stays_in(world: World) -> None:
    """Also where its tenant may change it."""
    change: JSON = {"metadata": {"labels": OUT}}
    assert TOLD in refusal(lambda: world.client.merge_patch(NAMESPACES, world.namespace, change))
    assert not refusal(lambda: world.admin.merge_patch(NAMESPACES, world.namespace, change))


@pytest.mark.parametrize(("user", "passes"), [
    ("system:kube-controller-manager", True),
    ("system:serviceaccount:jobset-system:jobset-controller-manager", True),
    ("system:serviceaccount:lws-system:lws-controller-manager", True),
    ("system:serviceaccount:argo-rollouts:argo-rollouts", False),
])  # fmt: skip
def test_copies_of_admitted_templates_pass(world: World, wait_for: WaitFor, user: str, *, passes: bool) -> None:
    """From controllers of Kubernetes, JobSet and LeaderWorkerSet; another one needs the right."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tenant"}
    subject = {"apiGroup": role["apiGroup"], "kind": "User", "name": user}
    name = f"for-{user.rpartition(':')[2]}"
    world.admin.create(
        ROLE_BINDINGS, {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}, world.namespace
    )
    resource, make = OBJECTS["template of a job"]
    body = json.dumps({"apiVersion": resource.api_version, "kind": resource.kind, **make(OUT)})
    create = ("kubectl", f"--kubeconfig={world.plane.kubeconfig}", f"--as={user}", f"--namespace={world.namespace}")
    create += ("create", "--dry-run=server", "-f-")

    def told() -> str:
        run = subprocess.run(create, input=body, text=True, capture_output=True, check=False)
        return run.stdout + run.stderr

    said = wait_for(lambda: "cannot create resource" not in (text := told()) and text, what="its rights")
    assert (TOLD not in said) is passes
    assert ("created" in said) is passes


def test_muster_goes_on(world: World) -> None:
    """Its webhook tries pods that opt out, its controller makes pods that were reviewed, and nothing beyond that."""
    webhook, controller = (Client.load(world.plane.commandlines.kubeconfig(part)) for part in (WEBHOOK, CONTROLLER))
    assert world.told("pod", OUT, webhook) == ""
    of_a_job = [job_owner(uid="u")]  # it runs no other pods

    def told(labels: JSON) -> str:
        made = pod("it", metadata={"labels": labels, "ownerReferences": of_a_job})
        return refusal(lambda: controller.create(PODS, made, world.namespace, dry_run=True))

    assert told(SEEN) == ""
    assert TOLD in told(OUT), "a tenant's object may have said so"
    with pytest.raises(Invalid):  # the object's own mistakes are told, not the policy's
        world.client.create(PODS, {"metadata": {"name": "it"}, "spec": {"containers": []}}, world.namespace)
