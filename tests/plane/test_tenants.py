"""What a tenant with no rights but those of his namespace tries against others is refused, by the real authorizer."""

from collections.abc import Iterator
from typing import Any

import pytest
from planes import Kubectl

from muster.api.kubernetes.core import PODS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from muster.kube.errors import Invalid
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane
JSON = dict[str, Any]
TENANT = "anne"


@pytest.fixture
def client(plane: Plane) -> Client:
    """A client with all rights."""
    return plane.client()


@pytest.fixture
def queue(client: Client, namespace: str) -> Iterator[str]:
    """A queue of somebody's."""
    made = client.create(QUEUES, {"metadata": {"name": f"{namespace}-prod"}, "spec": {}})
    yield made.metadata.name
    client.delete(QUEUES, made.metadata.name)


@pytest.fixture
def tenant(kubectl: Kubectl, namespace: str) -> Iterator[str]:
    """A user who may make Commands and Jobs in his namespace, and no more."""
    role = ("create", "role", "tenant", "-n", namespace, "--verb=create,get,delete")
    kubectl(*role, "--resource=commands.bus.volcano.sh,jobs.batch.volcano.sh")
    kubectl("create", "rolebinding", "tenant", "-n", namespace, "--role=tenant", f"--user={TENANT}")
    yield TENANT
    kubectl("delete", "clusterrole,clusterrolebinding", "--ignore-not-found", f"queue-{namespace}")


def submit(kubectl: Kubectl, user: str, document: JSON) -> str:
    """What the user is told when he creates an object."""
    return kubectl("create", "--filename=-", f"--as={user}", stdin=document, check=False)


def a_command(client: Client, namespace: str, queue: str) -> JSON:
    """A Command that closes this queue."""
    uid = client.get(QUEUES, queue).metadata.uid
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"generateName": "close-", "namespace": namespace},
        "action": "CloseQueue",
        "target": {"apiVersion": QUEUES.api_version, "kind": "Queue", "name": queue, "uid": uid},
    }


def test_only_who_may_change_a_queue_closes_it(
    client: Client, kubectl: Kubectl, namespace: str, queue: str, tenant: str, wait_for: Any
) -> None:
    """The refusal says which right it takes; with that right the same Command closes the queue."""
    told = submit(kubectl, tenant, a_command(client, namespace, queue))
    assert "user 'anne' may not send CloseQueue" in told
    assert f"kubectl auth can-i update queues.scheduling.volcano.sh/{queue}" in told
    assert client.get(QUEUES, queue).status.state in {"", "Open"}
    name = f"queue-{namespace}"
    one = ("--resource=queues.scheduling.volcano.sh", f"--resource-name={queue}")
    kubectl("create", "clusterrole", name, "--verb=update", *one)
    kubectl("create", "clusterrolebinding", name, f"--clusterrole={name}", f"--user={tenant}")
    # A refusal is remembered for a few seconds.
    wait_for(lambda: "created" in submit(kubectl, tenant, a_command(client, namespace, queue)))
    wait_for(lambda: client.get(QUEUES, queue).status.state == "Closed")


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


def test_a_tenant_is_not_told_of_his_namespaces_policies(
    client: Client, kubectl: Kubectl, namespace: str, tenant: str
) -> None:
    """He may make Jobs, and no pods: that his pods would be refused he is told, why those may know who make pods."""
    kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    template = {"spec": {"containers": [{"name": "main", "image": "none"}]}}
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": namespace},
        "spec": {"tasks": [{"name": "w", "replicas": 1, "template": template}]},
    }
    told = submit(kubectl, tenant, job)
    assert "the namespace does not admit such pods" in told
    assert "PodSecurity" not in told
    assert not client.list(PODS, namespace)
    assert "PodSecurity" in kubectl("create", "--filename=-", stdin=job, check=False)
