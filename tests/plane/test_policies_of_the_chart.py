"""What roles cannot say, admission policies do: who decides placements, lifts gates, creates pods, writes Secrets."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from builders.manifests import job_owner
from rights_scenario import REPLICA_SETS
from tenants import ROLE_BINDINGS, ROLES, pod, refusal, tenant
from train_jobs import train_job

from muster.api import names
from muster.api.base import Resource
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.core import CONFIG_MAPS, INDEXED_JOBS, NAMESPACES, PODS, SECRETS
from muster.api.limits import CONTAINER_AMOUNTS, CONTAINERS
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from muster.kube.errors import Forbidden
from musterctl.plane.plane import Plane
from musterctl.plane.state import CONTROLLER, WEBHOOK

pytestmark = pytest.mark.plane
WaitFor = Callable[..., Any]
ALL = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
GATED = "gated"
_RBAC = "rbac.authorization.k8s.io"
NOBODYS = {"metadata": {"name": "mine"}, "spec": {"podGroupUID": "u", "epoch": 1, "podSets": []}}


@pytest.fixture(scope="module")
def admin(shared_plane: Plane) -> Iterator[Client]:
    """An administrator of the cluster."""
    with closing(shared_plane.client()) as admin:
        yield admin


@pytest.fixture(scope="module")
def webhook(shared_plane: Plane) -> Iterator[Client]:
    """The webhook."""
    with closing(Client.load(shared_plane.commandlines.kubeconfig(WEBHOOK))) as client:
        yield client


@pytest.fixture(scope="module")
def controller(shared_plane: Plane) -> Iterator[Client]:
    """The controller."""
    with closing(Client.load(shared_plane.commandlines.kubeconfig(CONTROLLER))) as client:
        yield client


@pytest.fixture(scope="module")
def owner(
    shared_plane: Plane, admin: Client, tmp_path_factory: pytest.TempPathFactory, wait_for: WaitFor
) -> Iterator[tuple[Client, str]]:
    """Somebody who may do everything in his namespace, and a pod of his that waits behind the gate of a gang."""
    he = tenant(shared_plane, "owner-of-everything", tmp_path_factory.mktemp("owner"))
    admin.create(ROLES, {"metadata": {"name": "all"}, "rules": [ALL]}, he.namespace)
    subject = {"kind": "ServiceAccount", "name": "tenant", "namespace": he.namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "all"}
    admin.create(ROLE_BINDINGS, {"metadata": {"name": "all"}, "roleRef": role, "subjects": [subject]}, he.namespace)
    gated = pod(GATED, scheduler="default-scheduler", schedulingGates=[{"name": names.GATE}])
    wait_for(lambda: not refusal(lambda: he.client.create(PODS, gated, he.namespace)), what="his rights")
    yield he.client, he.namespace
    admin.delete(NAMESPACES, he.namespace)


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_nobody_else_decides_placements(owner: tuple[Client, str], wait_for: WaitFor, version: str) -> None:
    """Neither makes one, nor changes what one says; labels are anybody's who may write it."""
    client, namespace = owner
    placements = replace(PLACEMENTS, version=version)
    answer = wait_for(lambda: refusal(lambda: client.create(placements, NOBODYS, namespace, dry_run=True)))
    assert "only Muster's extender decides placements" in answer


def test_nobody_else_notes_placements(owner: tuple[Client, str]) -> None:
    """Of a gang of one the placement stands in its PodGroup, which is his to write; the rest of it stays so."""
    client, namespace = owner
    mine = {"metadata": {"name": "mine"}, "spec": {"minMember": 1}}
    noted = {"metadata": {"name": "noted", "annotations": {names.PLACEMENT: "{}"}}, "spec": {"minMember": 1}}
    client.create(POD_GROUPS, mine, namespace)
    assert "only Muster writes" in refusal(lambda: client.create(POD_GROUPS, noted, namespace))
    note: dict[str, Any] = {"metadata": {"annotations": {names.PLACEMENT: "{}"}}}
    assert "only Muster writes" in refusal(lambda: client.merge_patch(POD_GROUPS, "mine", note, namespace))
    other = {"metadata": {"annotations": {"mine": "1"}}, "spec": {"minMember": 2}}
    assert not refusal(lambda: client.merge_patch(POD_GROUPS, "mine", other, namespace))
    admitted: dict[str, Any] = {"status": {"phase": "Running"}}  # not Inqueue, which the controller writes by itself
    assert "status.phase" in refusal(lambda: client.merge_patch(POD_GROUPS, "mine", admitted, namespace))
    assert not refusal(lambda: client.merge_patch(POD_GROUPS, "mine", {"status": {"phase": "Pending"}}, namespace))
    copied = client.create(POD_GROUPS, {**mine, "metadata": {"name": "copied"}, **admitted}, namespace)
    assert copied.status.phase == ""
    forged = {**mine, "metadata": {"name": "of-a-job", "ownerReferences": [job_owner(uid="u")]}, **admitted}
    assert "status.phase" in refusal(lambda: client.create(POD_GROUPS, forged, namespace))


def test_nobody_else_says_which_runtime_a_train_job_has(owner: tuple[Client, str]) -> None:
    """The rest of the status is his, as a role for everything says."""
    client, namespace = owner
    client.create(TRAIN_JOBS, train_job("mine", suspend=True), namespace)
    forged: dict[str, Any] = {"status": {"runtimeDigest": "sha256:0"}}
    answer = refusal(lambda: client.merge_patch(TRAIN_JOBS, "mine", forged, namespace, subresource="status"))
    assert "only Muster's controller writes status.runtimeDigest" in answer
    progress = {"progressPercentage": 1, "lastUpdatedTime": "2026-01-01T00:00:00Z"}
    other: dict[str, Any] = {"status": {"trainerStatus": progress}}
    assert not refusal(lambda: client.merge_patch(TRAIN_JOBS, "mine", other, namespace, subresource="status"))


def test_nobody_else_lifts_gates(owner: tuple[Client, str], admin: Client) -> None:
    """Other changes of the pod are his; an administrator of the cluster may, in need."""
    client, namespace = owner
    lift: dict[str, Any] = {"spec": {"schedulingGates": []}}
    assert "only Muster lifts the gate" in refusal(lambda: client.merge_patch(PODS, GATED, lift, namespace))
    for key in (names.NODE, names.EPOCH):
        note: dict[str, Any] = {"metadata": {"annotations": {key: "1"}}}
        assert "only Muster lifts the gate" in refusal(lambda n=note: client.merge_patch(PODS, GATED, n, namespace))
    assert not refusal(lambda: client.merge_patch(PODS, GATED, {"metadata": {"annotations": {"mine": "1"}}}, namespace))
    assert client.get(PODS, GATED, namespace).spec.scheduling_gates
    assert not admin.merge_patch(PODS, GATED, lift, namespace).spec.scheduling_gates


CHARGES: dict[str, dict[str, Any]] = {
    "another queue": {"labels": {names.QUEUE: "theirs"}},
    "no queue": {"labels": {names.QUEUE: None}},
    "a queue by Volcano's label": {"labels": {names.QUEUE_NAME: "theirs"}},
    "a smaller part": {"annotations": {names.GPU_FRACTION: "0.01"}},
    "no part": {"annotations": {names.GPU_FRACTION: None}},
    "a part that cannot be read": {"annotations": {names.GPU_SHARE_MEMORY: ""}},
    "another device": {"annotations": {names.GPU_DEVICES_CHOSEN: "2"}},
    "a gang": {"annotations": {names.GROUP_NAME: "other"}},
    "a slot": {"annotations": {names.TASK_SPEC: "worker", names.TASK_INDEX: "7"}},
    "protection": {"annotations": {names.PREEMPTABLE: "false"}},
}


@pytest.mark.parametrize("path", ["", "status"])
def test_what_a_bound_pod_is_charged_stays(owner: tuple[Client, str], admin: Client, path: str) -> None:
    """Neither by its labels and annotations nor by a write of its status; what is not Muster's is its owner's."""
    client, namespace = owner
    metadata = {
        "labels": {names.QUEUE: "default"},
        "annotations": {names.GPU_FRACTION: "0.9", names.GPU_DEVICES_CHOSEN: "1"},
    }
    name = f"bound-{path or 'whole'}"
    admin.create(PODS, pod(name, scheduler="nobody", metadata=metadata, nodeName="node-0"), namespace)

    def write(change: dict[str, Any], by: Client = client) -> str:
        return refusal(lambda: by.merge_patch(PODS, name, {"metadata": change}, namespace, subresource=path))

    answers = {what: write(change) for what, change in CHARGES.items()}
    stays = "is charged stays as it was when it was bound"
    assert {what for what, said in answers.items() if stays not in said} == set()
    assert not write({"labels": {"mine": "1"}, "annotations": {"mine": "1"}})
    assert not write(CHARGES["another queue"], admin)


def test_a_pod_that_waits_may_change_what_it_asks_for(owner: tuple[Client, str]) -> None:
    """Nothing is charged yet; which devices it has is Muster's word all the same."""
    client, namespace = owner
    client.create(PODS, pod("waits", scheduler="nobody"), namespace)
    for what, change in CHARGES.items():
        answer = refusal(lambda change=change: client.merge_patch(PODS, "waits", {"metadata": change}, namespace))
        assert ("only Muster lifts the gate" in answer) if what == "another device" else not answer


@pytest.mark.parametrize("key", [names.NODE, names.EPOCH, names.GPU_DEVICES_CHOSEN, names.GPU_PORTION])
def test_nobody_else_makes_pods_with_notes_of_muster(owner: tuple[Client, str], key: str) -> None:
    """With the words that say what to do."""
    client, namespace = owner
    noted = pod("noted", metadata={"annotations": {key: "1"}})
    assert "leave them out of pods that you create" in refusal(lambda: client.create(PODS, noted, namespace))


def test_a_pod_has_no_more_containers_and_amounts_than_are_read(owner: tuple[Client, str], admin: Client) -> None:
    """Whoever makes it, for whatever scheduler: its room depends on all of them."""
    _, namespace = owner

    def answer(containers: int, amounts: int, ports: int = 0) -> str:
        limits = {f"x.example/{number}": 1 for number in range(amounts)}
        listens = [{"containerPort": 1 + number} for number in range(ports)]
        each = {"image": "none", "resources": {"limits": limits, "requests": limits}, "ports": listens}
        made = pod("large", scheduler="nobody")
        made["spec"]["containers"] = [{"name": f"c{number}", **each} for number in range(containers)]
        return refusal(lambda: admin.create(PODS, made, namespace, dry_run=True))

    assert not answer(CONTAINERS.value, 4)
    assert not answer(2, CONTAINER_AMOUNTS.value // 4)
    for large in (
        (CONTAINERS.value + 1, 0),
        (2, CONTAINER_AMOUNTS.value // 4 + 1),
        (1, 0, CONTAINER_AMOUNTS.value + 1),
    ):
        assert f"{CONTAINERS.value} containers, nor more than {CONTAINER_AMOUNTS.value} requests" in answer(*large)


BY_MARKERS: dict[str, Any] = {
    "name": "second",
    "image": "none",
    "resources": {"limits": {names.MEMBER_MARKER: 1, names.BINDING_MARKER: 1}},
}
AT_A_NODE: dict[str, tuple[dict[str, Any], bool]] = {
    "muster": ({"schedulerName": "muster"}, True),
    "volcano": ({"schedulerName": "volcano"}, True),
    "markers": ({"schedulerName": "default-scheduler", "initContainers": [BY_MARKERS]}, True),
    "gang": ({"schedulerName": "nobody"}, True),
    "another": ({"schedulerName": "nobody"}, False),
}


@pytest.mark.parametrize("who", AT_A_NODE)
def test_a_pod_of_musters_names_no_node(owner: tuple[Client, str], admin: Client, who: str) -> None:
    """It would be charged to whatever queue it names; with another scheduler it is charged to none."""
    client, namespace = owner
    spec, is_refused = AT_A_NODE[who]
    put = pod("put", metadata={"labels": {names.QUEUE: "default"}}, nodeName="node-0")
    put["spec"] |= spec
    if who == "gang":
        put["metadata"]["annotations"] = {names.GROUP_NAME: "mine"}
    answer = refusal(lambda: client.create(PODS, put, namespace, dry_run=True))
    assert ("must not name its node" in answer) if is_refused else not answer, answer
    admin.create(PODS, put, namespace, dry_run=True)


def test_the_webhook_creates_no_pods(owner: tuple[Client, str], webhook: Client) -> None:
    """It only tries them."""
    _, namespace = owner
    webhook.create(PODS, pod("tried"), namespace, dry_run=True)
    with pytest.raises(Forbidden, match="as dry runs only"):
        webhook.create(PODS, pod("made"), namespace)


def secret(name: str, **more: Any) -> dict[str, Any]:
    """A Secret."""
    return {"metadata": {"name": name, **more.pop("metadata", {})}, "stringData": {"a": "b"}, **more}


def of_a_job(uid: str = "", **more: Any) -> dict[str, Any]:
    """The ssh keys of a Job, as the controller makes them; with a UID, of a ReplicaSet that there is."""
    kind = ("apps/v1", "ReplicaSet") if uid else ("batch.volcano.sh/v1alpha1", "Job")
    owner = {"apiVersion": kind[0], "kind": kind[1], "name": "it", "uid": uid or "u", "controller": True}
    return secret("it-ssh", metadata={"ownerReferences": [owner]}, **more)


MINE = {"labels": {names.MANAGED_BY: names.MANAGER}}
NOT_MADE: dict[str, dict[str, Any]] = {
    "of another name": {**of_a_job(), "metadata": {**of_a_job()["metadata"], "name": "it"}},
    "that belongs to nobody": secret("it-ssh"),
    "certificates that are somewhere else": secret(names.CERTIFICATES, metadata=MINE),
    "a token": {**of_a_job(type="kubernetes.io/service-account-token"),
        "metadata": {**of_a_job()["metadata"], "annotations": {"kubernetes.io/service-account.name": "default"}}},
}  # fmt: skip


@pytest.mark.parametrize("what", NOT_MADE)
def test_the_controller_makes_no_other_secrets(owner: tuple[Client, str], controller: Client, what: str) -> None:
    """Neither with its own token can anybody else."""
    _, namespace = owner
    with pytest.raises(Forbidden, match="Muster's controller"):
        controller.create(SECRETS, NOT_MADE[what], namespace, dry_run=True)
    controller.create(SECRETS, of_a_job(), namespace, dry_run=True)
    controller.create(SECRETS, secret(names.CERTIFICATES, metadata=MINE), names.SYSTEM_NAMESPACE, dry_run=True)


def test_the_controller_leaves_other_secrets_alone(
    owner: tuple[Client, str], admin: Client, controller: Client
) -> None:
    """It can neither change one, make it its own, nor delete it; its own it can."""
    _, namespace = owner
    for name in ("theirs", "theirs-ssh"):
        admin.create(SECRETS, secret(name), namespace)
        for patch in ({"stringData": {"a": "c"}}, {"metadata": of_a_job()["metadata"] | {"name": name}}):
            with pytest.raises(Forbidden, match="only Secrets of its own"):
                controller.merge_patch(SECRETS, name, patch, namespace)
        with pytest.raises(Forbidden, match="only Secrets of its own"):
            controller.delete(SECRETS, name, namespace)
    selected = {"selector": {"matchLabels": {"a": "b"}}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "none"}]}}
    spec = {**selected, "replicas": 0, "template": template}
    of = admin.create(REPLICA_SETS, {"metadata": {"name": "it"}, "spec": spec}, namespace)
    controller.create(SECRETS, of_a_job(uid=of["metadata"]["uid"]), namespace)
    controller.merge_patch(SECRETS, "it-ssh", {"stringData": {"a": "c"}}, namespace)
    controller.delete(SECRETS, "it-ssh", namespace)


def theirs(**more: Any) -> dict[str, Any]:
    """An object that belongs to nobody."""
    return {"metadata": {"name": "theirs", **more}}


def of(api_version: str, **more: Any) -> dict[str, Any]:
    """An object of a workload."""
    owner = {"apiVersion": api_version, "kind": "It", "name": "it", "uid": "u", "controller": True}
    return theirs(ownerReferences=[owner], **more)


OF_JOB, OF_TRAIN_JOB = of("batch.volcano.sh/v1alpha1"), of("trainer.kubeflow.org/v1alpha1")
RUNS = pod("theirs")["spec"]
BATCH = {"template": {"spec": {**RUNS, "restartPolicy": "Never"}}}
WRITES: tuple[tuple[str, Resource[Any], dict[str, Any], str, bool], ...] = (
    ("hosts of a Job", CONFIG_MAPS, OF_JOB, "", True),
    ("a runtime", CONFIG_MAPS, OF_TRAIN_JOB, "", True),
    ("a ConfigMap of nobody", CONFIG_MAPS, theirs(), "", False),
    ("a ConfigMap of a Node", CONFIG_MAPS, of("v1"), "", False),
    ("a pod of a Job", PODS, {**OF_JOB, "spec": RUNS}, "", True),
    ("a pod of nobody", PODS, {**theirs(), "spec": RUNS}, "", False),
    ("a pod of a ReplicaSet", PODS, {**of("apps/v1"), "spec": RUNS}, "", False),
    ("a pod of a Job where the cluster's are", PODS, {**OF_JOB, "spec": RUNS}, "kube-system", False),
    ("an initializer", INDEXED_JOBS, {**OF_TRAIN_JOB, "spec": BATCH}, "", True),
    ("a Job of nobody", INDEXED_JOBS, {**theirs(), "spec": BATCH}, "", False),
    ("an initializer where the cluster's are", INDEXED_JOBS, {**OF_TRAIN_JOB, "spec": BATCH}, "kube-system", False),
)


@pytest.mark.parametrize(("kind", "made", "where", "may"), [row[1:] for row in WRITES], ids=[row[0] for row in WRITES])
def test_the_controller_creates_only_objects_of_workloads(
    owner: tuple[Client, str], controller: Client, kind: Resource[Any], made: Any, where: str, *, may: bool
) -> None:
    """Its token is no way to a pod with the rights of the cluster's own."""
    answer = refusal(lambda: controller.create(kind, made, where or owner[1], dry_run=True))
    assert ("Muster's controller" in answer) is not may, answer


def test_the_controller_cannot_change_objects_of_others(
    owner: tuple[Client, str], admin: Client, controller: Client
) -> None:
    """The cluster's DNS settings, its login rights, and pods of others, except annotations of gang members."""
    _, namespace = owner
    adopts = {"metadata": {**OF_JOB["metadata"]}}
    for where, name in ((namespace, "theirs"), ("kube-system", "extension-apiserver-authentication")):
        if where == namespace:
            admin.create(CONFIG_MAPS, theirs(), namespace)
        for patch in ({"data": {"a": "b"}}, {"metadata": {**adopts["metadata"], "name": name}}):
            with pytest.raises(Forbidden, match="only ConfigMaps, pods and Jobs that belong to a workload"):
                controller.merge_patch(CONFIG_MAPS, name, patch, where)
        with pytest.raises(Forbidden, match="only ConfigMaps, pods and Jobs that belong to a workload"):
            controller.delete(CONFIG_MAPS, name, where)
    admin.create(PODS, pod("theirs"), namespace)
    image = {"spec": {"containers": [{"name": RUNS["containers"][0]["name"], "image": "evil"}]}}
    for patch in (image, {"metadata": {"labels": {"app": "dns"}}}, adopts):
        with pytest.raises(Forbidden, match="changes only annotations of pods"):
            controller.strategic_patch(PODS, "theirs", patch, namespace)
    with pytest.raises(Forbidden, match="only ConfigMaps, pods and Jobs that belong to a workload"):
        controller.delete(PODS, "theirs", namespace)
    controller.merge_patch(PODS, "theirs", {"metadata": {"annotations": {names.GROUP_NAME: "g"}}}, namespace)


@pytest.mark.parametrize(("elastic", "size", "more", "may"), [
    (True, 1, {}, True),
    (False, 1, {}, False),
    (True, 3, {}, False),
    (True, 1, {"suspend": True}, False),
    (True, 1, {"template": {"metadata": {"labels": {"a": "b"}}}}, False),
])  # fmt: skip
def test_the_controller_lowers_the_completions_of_elastic_jobs_only(
    owner: tuple[Client, str], admin: Client, controller: Client, size: int, more: Any, *, elastic: bool, may: bool
) -> None:
    """It changes nothing else in Jobs of users."""
    note = {"metadata": {"annotations": {names.ELASTIC: "1:3"} if elastic else {}}}
    spec = {**BATCH, "template": {**note, **BATCH["template"]}, "completionMode": "Indexed"}
    spec |= {"completions": 2, "parallelism": 2, "suspend": "template" in more}
    name = admin.create(INDEXED_JOBS, {"metadata": {"generateName": "e-"}, "spec": spec}, owner[1]).metadata.name
    patch = {"spec": {"completions": size, "parallelism": size, **more}}
    message = refusal(lambda: controller.merge_patch(INDEXED_JOBS, name, patch, owner[1]))
    assert ("Muster's controller" in message) is not may, message


MAY: dict[str, dict[str, bool]] = {
    "view": {
        "get jobs.batch.volcano.sh": True,
        "create jobs.batch.volcano.sh": False,
        "get placements.muster.dev": False,  # they name victims of other namespaces
    },
    "edit": {"create jobs.batch.volcano.sh": True, "create commands.bus.volcano.sh": True,
        "patch podgroups.scheduling.volcano.sh": True},
    "admin": {"create trainingruntimes.trainer.kubeflow.org": True, "create placements.muster.dev": False},
}  # fmt: skip


@pytest.mark.parametrize("level", MAY)
def test_users_get_rights_with_their_roles(
    owner: tuple[Client, str], admin: Client, level: str, wait_for: WaitFor
) -> None:
    """Kubernetes' own roles and Muster's allow the same; what is the cluster's takes a binding for the cluster."""
    _, namespace = owner
    for role in (level, f"muster-{level}"):
        user = f"user-of-{role}"
        subject = {"apiGroup": _RBAC, "kind": "User", "name": user}
        binding = {"metadata": {"name": user}, "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role}}
        admin.create(ROLE_BINDINGS, {**binding, "subjects": [subject]}, namespace)

        def may(what: str, where: str = namespace, user: str = user) -> bool:
            verb, _, kind = what.partition(" ")
            resource, _, group = kind.partition(".")
            asked = {"namespace": where, "verb": verb, "group": group, "resource": resource}
            review = json.dumps({"spec": {"user": user, "resourceAttributes": asked}}).encode()
            answer = admin.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body=review)
            return bool(json.loads(answer)["status"]["allowed"])

        wait_for(lambda may=may: {what: may(what) for what in MAY[level]} == MAY[level], 30, f"the rights of {role}")
        assert not may("create queues.scheduling.volcano.sh", where="")
