"""Bindings that fail, that get lost on the way back, and gangs of which only a part can be bound."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import uvloop
from gang_jobs import History, job

from extender.verbs.bind import Binder
from muster.api.base import Resource
from muster.api.kubernetes.core import PODS
from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from muster.kube.config import load_config
from muster.kube.errors import APIError, Conflict, NotFound, Unreachable
from muster.kube.loopclient import LoopClient
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane
WaitFor = Callable[..., Any]
RECOVERY_S = 120.0
ADMISSION = "admissionregistration.k8s.io"
RULES: Resource[dict[str, Any]] = Resource(
    ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", dict[str, Any], namespaced=False
)
RULE_BINDINGS: Resource[dict[str, Any]] = Resource(
    ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", dict[str, Any],
    namespaced=False,
)  # fmt: skip


class Deaf(LoopClient):
    """A client that never hears the answer to a binding, which the API server has carried out."""

    async def bind(self, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str]) -> None:
        """Bind, and lose the answer."""
        await super().bind(namespace, name, uid, node, annotations)
        raise Unreachable("the connection was lost")


def bind(plane: Plane, kind: type[LoopClient], *bindings: tuple[str, str, str, str, Mapping[str, str]]) -> None:
    """Binds as the extender does, one after the other, over one client."""

    async def all_of_them() -> None:
        client = kind(load_config(plane.kubeconfig))
        try:
            for binding in bindings:
                await Binder(client).bind(*binding)
        finally:
            client.close()

    uvloop.run(all_of_them())


@pytest.fixture
def pod_uid(client: Client, namespace: str) -> str:
    """The UID of pod `lone`, which no scheduler looks at."""
    spec = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "none"}]}
    return client.create(PODS, {"metadata": {"name": "lone"}, "spec": spec}, namespace).metadata.uid


def test_a_lost_answer_is_found_in_the_pod(plane: Plane, client: Client, namespace: str, pod_uid: str) -> None:
    """The binding counts, as it was carried out."""
    bind(plane, Deaf, (namespace, "lone", pod_uid, "node-0001", {"a": "b"}))
    pod = client.get(PODS, "lone", namespace)
    assert (pod.spec.node_name, pod.metadata.annotations["a"]) == ("node-0001", "b")


def test_binding_again_is_no_error_but_elsewhere(plane: Plane, client: Client, namespace: str, pod_uid: str) -> None:
    """kube-scheduler tries again when it did not get our answer."""
    once = (namespace, "lone", pod_uid, "node-0001", {})
    bind(plane, LoopClient, once, once)
    with pytest.raises(Conflict):
        bind(plane, LoopClient, (namespace, "lone", pod_uid, "node-0002", {}))
    assert client.get(PODS, "lone", namespace).spec.node_name == "node-0001"


def test_another_pod_of_the_same_name_is_not_bound(plane: Plane, client: Client, namespace: str, pod_uid: str) -> None:
    """The UID is a precondition."""
    with pytest.raises(Conflict):
        bind(plane, LoopClient, (namespace, "lone", f"not-{pod_uid}", "node-0001", {}))
    assert not client.get(PODS, "lone", namespace).spec.node_name


@pytest.fixture
def forbid(client: Client, namespace: str, wait_for: WaitFor) -> Iterator[Callable[[str], Callable[[], None]]]:
    """Makes the API server refuse the binding of the pod with this name; the answer takes that back."""
    name = f"{namespace}-bindings"

    def allow() -> None:
        for resource in (RULE_BINDINGS, RULES):
            try:
                client.delete(resource, name)
            except NotFound:
                continue

    def refused(pod: str) -> bool:
        try:
            client.bind(namespace, pod, "", "node-0000", {})
        except APIError as error:
            return "a test forbids it" in str(error)
        return False

    def make(pod: str) -> Callable[[], None]:
        expression = f"object.metadata.namespace != {namespace!r} || object.metadata.name != {pod!r}"
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}
        spec = {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": expression, "message": "a test forbids it"}],
        }
        client.create(RULES, {"metadata": {"name": name}, "spec": spec})
        binding = {"policyName": name, "validationActions": ["Deny"]}
        client.create(RULE_BINDINGS, {"metadata": {"name": name}, "spec": binding})
        wait_for(lambda: refused(pod), 30, "the API server to refuse the binding")
        return allow

    yield make
    allow()


def bound(client: Client, namespace: str) -> dict[str, str]:
    """UID → name of the bound pods that are not on their way out."""
    pods = client.list(PODS, namespace)
    return {p.metadata.uid: p.metadata.name for p in pods if p.spec.node_name and not p.metadata.deletion_timestamp}


def test_a_member_whose_binding_fails_is_tried_again(
    client: Client, namespace: str, forbid: Callable[[str], Callable[[], None]], wait_for: WaitFor
) -> None:
    """The others of the gang are bound already, and stay."""
    allow = forbid("gang-worker-1")
    client.create(JOBS, job("gang", namespace, replicas=4, gpus=1), namespace)
    wait_for(lambda: len(bound(client, namespace)) == 3, 30, "the other three to be bound")
    first = bound(client, namespace)
    allow()
    wait_for(lambda: len(bound(client, namespace)) == 4, RECOVERY_S, "the fourth to be bound")
    assert first.items() <= bound(client, namespace).items()
    client.delete(JOBS, "gang", namespace)


@pytest.mark.slow
def test_a_gang_that_cannot_be_completed_goes_back_as_a_whole(
    client: Client, namespace: str, forbid: Callable[[str], Callable[[], None]], wait_for: WaitFor
) -> None:
    """After its time to recover (30 s) what was bound is evicted; once it can run, all of it runs."""
    allow = forbid("gang-worker-1")
    with History(client, namespace) as history:
        client.create(JOBS, job("gang", namespace, replicas=4, gpus=1), namespace)
        wait_for(lambda: len(bound(client, namespace)) == 3, 30, "the other three to be bound")
        first = bound(client, namespace)
        wait_for(lambda: not first.keys() & bound(client, namespace).keys(), RECOVERY_S, "all three to be evicted")
        allow()
        wait_for(lambda: client.get(JOBS, "gang", namespace).status.running == 4, RECOVERY_S, "the gang to run whole")
        assert history.half_placed_s("gang-", 4) < 45
    client.delete(JOBS, "gang", namespace)
