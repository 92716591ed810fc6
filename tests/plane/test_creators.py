"""Who created a workload: written by admission for every kind, and nobody else's to say."""

from collections.abc import Callable
from typing import Any

import pytest
from gang_jobs import job
from tenants import ROLE_BINDINGS, ROLES, Tenant, pod, refusal

from muster.api.base import Resource
from muster.api.kubernetes.core import INDEXED_JOBS, PODS
from muster.api.names import CREATED_BY, GROUP_NAME, QUEUE
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane
WaitFor = Callable[..., Any]
DEPLOYMENTS: Resource[dict[str, Any]] = Resource("apps", "v1", "deployments", "Deployment", dict[str, Any])
CRON_JOBS: Resource[dict[str, Any]] = Resource("batch", "v1", "cronjobs", "CronJob", dict[str, Any])
FORGED = {"annotations": {CREATED_BY: "somebody-else"}}
DEPLOYS = {"apiGroups": ["apps", "batch"], "resources": ["deployments", "cronjobs", "jobs/status"], "verbs": ["*"]}
TEMPLATE = {
    "metadata": {"labels": {"app": "a"}, **FORGED},
    "spec": {"containers": [{"name": "main", "image": "none"}], "restartPolicy": "Never"},
}


def deployment(labels: dict[str, str], **metadata: Any) -> dict[str, Any]:
    """A Deployment of two pods, whose template names another creator."""
    template = {**TEMPLATE, "spec": {"containers": [{"name": "main", "image": "none"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    return {"metadata": {"name": "serves", "labels": labels, **metadata}, "spec": spec}


def test_gangs_have_their_creator(plane: Plane, make_tenant: Callable[[str], Tenant], wait_for: WaitFor) -> None:
    """Of a Job, a batch Job, a Deployment, a pod and a PodGroup: each PodGroup has it, whatever its template says."""
    admin, he = plane.client(), make_tenant("creates")
    client, where = he.client, he.namespace
    admin.create(ROLES, {"metadata": {"name": "deploys"}, "rules": [DEPLOYS]}, where)
    subject = {"kind": "ServiceAccount", "name": "tenant", "namespace": where}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "deploys"}
    admin.create(ROLE_BINDINGS, {"metadata": {"name": "deploys"}, "roleRef": role, "subjects": [subject]}, where)
    said = {QUEUE: "default"}

    volcano = job("trains", where, replicas=1)
    volcano["metadata"] |= FORGED
    client.create(JOBS, volcano, where)
    spec = {"template": TEMPLATE, "backoffLimit": 0}
    client.create(INDEXED_JOBS, {"metadata": {"name": "computes", "labels": said, **FORGED}, "spec": spec}, where)
    wait_for(lambda: not refusal(lambda: client.list(DEPLOYMENTS, where)), what="his rights")
    client.create(DEPLOYMENTS, deployment(said, **FORGED), where)
    client.create(POD_GROUPS, {"metadata": {"name": "own", **FORGED}, "spec": {"minMember": 1}}, where)
    client.create(PODS, pod("alone", metadata={"labels": said, **FORGED}), where)
    client.create(PODS, pod("member", metadata={"annotations": {GROUP_NAME: "own"}, "labels": said}), where)

    def creators() -> dict[str, str]:
        return {
            (
                group.metadata.controller.kind if group.metadata.controller else "PodGroup"
            ): group.metadata.annotations.get(CREATED_BY, "")
            for group in admin.list(POD_GROUPS, where)
        }

    kinds = {"Job", "ReplicaSet", "PodGroup", "Pod"}
    found = wait_for(lambda: (seen := creators()).keys() >= kinds and seen, what="their PodGroups")
    assert found == dict.fromkeys(kinds, he.user)
    groups = [group.metadata.annotations.get(CREATED_BY) for group in admin.list(POD_GROUPS, where)]
    assert groups == [he.user] * 5
    trains = wait_for(lambda: [each for each in admin.list(PODS, where) if each.metadata.name.startswith("trains")])
    assert {each.metadata.annotations[CREATED_BY] for each in trains} == {he.user}


def test_nobody_names_another_creator(plane: Plane, make_tenant: Callable[[str], Tenant], wait_for: WaitFor) -> None:
    """Neither in what the webhook does not see, nor by a change later; and no PodGroup or pod loses its own."""
    admin, he = plane.client(), make_tenant("forges")
    client, where = he.client, he.namespace
    admin.create(ROLES, {"metadata": {"name": "deploys"}, "rules": [DEPLOYS]}, where)
    subject = {"kind": "ServiceAccount", "name": "tenant", "namespace": where}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "deploys"}
    admin.create(ROLE_BINDINGS, {"metadata": {"name": "deploys"}, "roleRef": role, "subjects": [subject]}, where)
    wait_for(lambda: not refusal(lambda: client.list(DEPLOYMENTS, where)), what="his rights")
    says = "who created"

    unseen = deployment({}, **FORGED)
    assert says in refusal(lambda: client.create(DEPLOYMENTS, unseen, where))
    cron = {"schedule": "0 0 1 1 *", "jobTemplate": {"metadata": FORGED, "spec": {"template": TEMPLATE}}}
    assert says in refusal(lambda: client.create(CRON_JOBS, {"metadata": {"name": "c"}, "spec": cron}, where))
    reviewed = pod("seen", metadata={"labels": {"muster.dev/reviewed": "true"}, **FORGED})
    assert says in refusal(lambda: client.create(PODS, reviewed, where))

    client.create(POD_GROUPS, {"metadata": {"name": "own"}, "spec": {"minMember": 1}}, where)
    client.create(PODS, pod("own", metadata={"labels": {QUEUE: "default"}}), where)
    for value in ("somebody-else", None):
        patch = {"metadata": {"annotations": {CREATED_BY: value}}}
        assert says in refusal(lambda patch=patch: client.merge_patch(POD_GROUPS, "own", patch, where))
        assert says in refusal(lambda patch=patch: client.merge_patch(PODS, "own", patch, where))
    by_status = {"metadata": {"annotations": {CREATED_BY: "somebody-else"}}}
    batch = {"metadata": {"name": "own", "labels": {QUEUE: "default"}}, "spec": {"template": TEMPLATE}}
    client.create(INDEXED_JOBS, batch, where)
    assert says in refusal(lambda: client.merge_patch(INDEXED_JOBS, "own", by_status, where, subresource="status"))
    client.create(JOBS, job("own", where, replicas=1), where)
    client.merge_patch(JOBS, "own", {"metadata": {"annotations": {CREATED_BY: None}}}, where)
    assert admin.get(JOBS, "own", where).metadata.annotations[CREATED_BY] == he.user
