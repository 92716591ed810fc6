"""What a tenant with no rights but those of his namespace tries against others is refused, by the real authorizer."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from planes import drop_queue
from tenants import CLUSTER_ROLES, ROLES, bind, refusal, user

from muster.api.kubernetes.core import NAMESPACES, PODS
from muster.api.volcano.batch import COMMANDS, JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from muster.kube.errors import Invalid
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane
JSON = dict[str, Any]


@pytest.fixture
def queue(client: Client, namespace: str) -> Iterator[str]:
    """A queue of somebody's."""
    made = client.create(QUEUES, {"metadata": {"name": f"{namespace}-prod"}, "spec": {}})
    yield made.metadata.name
    drop_queue(client, made.metadata.name)


@dataclass(frozen=True, slots=True)
class Anne:
    """A user who may make Commands and Jobs in her namespace, and no more."""

    subject: JSON
    client: Client

    @property
    def name(self) -> str:
        """As the API server calls her."""
        return f"system:serviceaccount:{self.subject['namespace']}:{self.subject['name']}"


@pytest.fixture
def anne(plane: Plane, client: Client, namespace: str, tmp_path: Path, wait_for: Any) -> Iterator[Anne]:
    """Anne, as soon as the API server knows her rights."""
    subject, kubeconfig = user(plane, namespace, tmp_path, "anne")
    resources = {"commands": COMMANDS, "jobs": JOBS}
    rules = [
        {"apiGroups": [each.group], "resources": [plural], "verbs": ["create", "get", "delete"]}
        for plural, each in resources.items()
    ]
    client.create(ROLES, {"metadata": {"name": "tenant"}, "rules": rules}, namespace)
    bind(plane, "tenant", subject, kind="Role")
    with closing(Client.load(kubeconfig)) as hers:
        for each in resources.values():
            wait_for(lambda each=each: "not found" in refusal(lambda: hers.get(each, "none", namespace)), 30, "rights")
        yield Anne(subject, hers)


def test_only_who_may_change_a_queue_closes_it(
    plane: Plane, client: Client, namespace: str, queue: str, anne: Anne, wait_for: Any
) -> None:
    """The refusal says which right it takes; with that right the same Command closes the queue."""
    uid = client.get(QUEUES, queue).metadata.uid
    target = {"apiVersion": QUEUES.api_version, "kind": "Queue", "name": queue, "uid": uid}
    command = {"metadata": {"generateName": "close-"}, "action": "CloseQueue", "target": target}

    def said() -> str:
        return refusal(lambda: anne.client.create(COMMANDS, command, namespace))

    told = said()
    assert f"user '{anne.name}' is not allowed to send CloseQueue" in told
    assert f"kubectl auth can-i update queues.scheduling.volcano.sh/{queue}" in told
    assert client.get(QUEUES, queue).status.state in {"", "Open"}
    name = f"queue-{namespace}"
    one = {"apiGroups": [QUEUES.group], "resources": ["queues"], "resourceNames": [queue], "verbs": ["update"]}
    client.create(CLUSTER_ROLES, {"metadata": {"name": name}, "rules": [one]})
    bind(plane, name, anne.subject, everywhere=True)
    # A refusal is remembered for a few seconds.
    wait_for(lambda: not said(), what="the right to count")
    wait_for(lambda: client.get(QUEUES, queue).status.state == "Closed")
    client.delete(CLUSTER_ROLES, name)


def test_a_pod_group_moves_only_to_a_queue_that_takes_it(client: Client, namespace: str, queue: str) -> None:
    """Its phase and other fields are written as ever."""
    client.create(POD_GROUPS, {"metadata": {"name": "g"}, "spec": {"minMember": 1, "queue": "default"}}, namespace)
    client.merge_patch(POD_GROUPS, "g", {"spec": {"queue": queue}}, namespace)
    with pytest.raises(Invalid, match="unable to find job queue"):
        client.merge_patch(POD_GROUPS, "g", {"spec": {"queue": "nowhere"}}, namespace)
    with pytest.raises(Invalid, match="can not submit job to root queue"):
        client.merge_patch(POD_GROUPS, "g", {"spec": {"queue": "root"}}, namespace)
    client.merge_patch(POD_GROUPS, "g", {"spec": {"minMember": 2}}, namespace)
    client.merge_patch(POD_GROUPS, "g", {"metadata": {"annotations": {"a": "b"}}}, namespace)
    assert client.get(POD_GROUPS, "g", namespace).spec.queue == queue


def test_a_tenant_is_not_told_of_policies(client: Client, namespace: str, anne: Anne, wait_for: Any) -> None:
    """He may make Jobs, and no pods: that his pods would be refused he is told, why those may know who make pods."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    client.merge_patch(NAMESPACES, namespace, {"metadata": {"labels": labels}})
    template = {"spec": {"containers": [{"name": "main", "image": "none"}]}}
    job = {"metadata": {"name": "j"}, "spec": {"tasks": [{"name": "w", "replicas": 1, "template": template}]}}

    def said(who: Client) -> str:
        return refusal(lambda: who.create(JOBS, job, namespace, dry_run=True))

    wait_for(lambda: "PodSecurity" in said(client), what="the label to count")
    told = said(anne.client)
    assert "the namespace does not admit such pods" in told
    assert "PodSecurity" not in told
    assert not client.list(PODS, namespace)
