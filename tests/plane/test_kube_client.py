"""Every verb of the client does on a real API server what it says."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import REGISTRY

from muster.api.base import Resource
from muster.api.kubernetes.core import CONFIG_MAPS, NAMESPACES, PODS
from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.kube.client import Client
from muster.kube.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.api]

BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", Object)


class ConfigMap(Object):
    """A ConfigMap with its data, which Muster itself does not read."""

    data: dict[str, str] = {}  # noqa: RUF012 - msgspec copies the default for each object


MAPS = Resource("", "v1", "configmaps", "ConfigMap", ConfigMap)


def config_map(name: str, **data: str) -> dict[str, Any]:
    """A ConfigMap."""
    return {"metadata": {"name": name, "labels": {"test": "yes"}}, "data": data}


def pod(name: str) -> dict[str, Any]:
    """A pod that no scheduler takes."""
    spec = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "none"}]}
    return {"metadata": {"name": name, "labels": {"app": name}}, "spec": spec}


def test_create_get_and_list(client: Client, namespace: str) -> None:
    """What was created is found, one by one and by selector; a name is taken once."""
    created = client.create(MAPS, config_map("a", x="1"), namespace)
    assert created.data == {"x": "1"}
    assert client.get(MAPS, "a", namespace) == created
    client.create(MAPS, {"metadata": {"name": "b", "namespace": namespace}})
    assert [found.metadata.name for found in client.list(MAPS, namespace, label_selector="test=yes")] == ["a"]
    assert [found.metadata.name for found in client.list(MAPS, namespace, field_selector="metadata.name=b")] == ["b"]
    with pytest.raises(AlreadyExists):
        client.create(MAPS, config_map("a"), namespace)
    with pytest.raises(NotFound):
        client.get(MAPS, "c", namespace)


def test_a_dry_run_changes_nothing(client: Client, namespace: str) -> None:
    """The API server checks and answers, and stores nothing."""
    assert client.create(MAPS, config_map("a", x="1"), namespace, dry_run=True).data == {"x": "1"}
    with pytest.raises(NotFound):
        client.get(MAPS, "a", namespace)


def test_invalid_objects_are_refused_with_the_field(client: Client) -> None:
    """The message names it."""
    with pytest.raises(Invalid, match=r"metadata\.name"):
        client.create(NAMESPACES, {"metadata": {"name": "_"}})


def test_apply_owns_its_fields_only(client: Client, namespace: str) -> None:
    """Fields of others stay; our own go when we leave them out; conflicts show unless forced."""
    client.create(MAPS, config_map("a", theirs="1"), namespace)
    applied = client.apply(MAPS, {"metadata": {"name": "a"}, "data": {"ours": "1"}}, namespace=namespace)
    assert applied.data == {"theirs": "1", "ours": "1"}
    applied = client.apply(MAPS, ConfigMap(metadata=ObjectMeta(name="a"), data={"more": "2"}), namespace=namespace)
    assert applied.data == {"theirs": "1", "more": "2"}
    theirs = {"metadata": {"name": "a"}, "data": {"more": "3"}}
    with pytest.raises(Conflict):
        client.apply(MAPS, theirs, namespace=namespace, field_manager="x", force=False)


def test_merge_patch_refuses_a_changed_object(client: Client, namespace: str) -> None:
    """With a resource version in it, a patch applies to what was read, or not at all."""
    read = client.create(MAPS, config_map("a", x="1"), namespace)
    patch = {"metadata": {"resourceVersion": read.metadata.resource_version}, "data": {"x": "2", "y": "1"}}
    assert client.merge_patch(MAPS, "a", patch, namespace).data == {"x": "2", "y": "1"}
    with pytest.raises(Conflict):
        client.merge_patch(MAPS, "a", patch, namespace)


def test_merge_patch_refuses_another_object(client: Client, namespace: str) -> None:
    """Of the same name, but with another UID than the patch says."""
    client.create(
        PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "none"}]}}, namespace
    )
    for subresource in ("", "status"):
        with pytest.raises(Conflict):
            client.merge_patch(PODS, "p", {"metadata": {"uid": "another"}}, namespace, subresource=subresource)


def test_json_patch_tests_before_it_changes(client: Client, namespace: str) -> None:
    """A failing test leaves the object as it is."""
    client.create(MAPS, config_map("a", x="1"), namespace)
    operations = [{"op": "test", "path": "/data/x", "value": "1"}, {"op": "replace", "path": "/data/x", "value": "2"}]
    assert client.json_patch(MAPS, "a", operations, namespace).data == {"x": "2"}
    with pytest.raises(Invalid):
        client.json_patch(MAPS, "a", operations, namespace)


def test_delete_only_the_object_that_was_meant(client: Client, namespace: str) -> None:
    """A namesake with another UID or version is left alone."""
    read = client.create(MAPS, config_map("a"), namespace)
    with pytest.raises(Conflict):
        client.delete(MAPS, "a", namespace, uid="another")
    changed = client.merge_patch(MAPS, "a", {"data": {"x": "1"}}, namespace)
    with pytest.raises(Conflict):
        client.delete(MAPS, "a", namespace, uid=read.metadata.uid, resource_version=read.metadata.resource_version)
    client.delete(MAPS, "a", namespace, uid=changed.metadata.uid, propagation="Background", grace_period_s=0)
    with pytest.raises(NotFound):
        client.delete(MAPS, "a", namespace)


def test_bind_the_pod_that_was_meant(client: Client, namespace: str) -> None:
    """To a node, with annotations, once, and never a namesake."""
    uid = client.create(PODS, pod("a"), namespace).metadata.uid
    with pytest.raises(Conflict):
        client.bind(namespace, "a", "another", "node-x", {})
    client.bind(namespace, "a", uid, "node-x", {"muster.dev/epoch": "3"})
    bound = client.get(PODS, "a", namespace)
    assert (bound.spec.node_name, bound.metadata.annotations) == ("node-x", {"muster.dev/epoch": "3"})
    with pytest.raises(Conflict):
        client.bind(namespace, "a", uid, "node-y", {})


def test_evict_the_pod_that_was_meant(client: Client, namespace: str) -> None:
    """A disruption budget can forbid it; a namesake is left alone."""
    uid = client.create(PODS, pod("a"), namespace).metadata.uid
    with pytest.raises((Conflict, Unreachable)):  # the API server says so only after ten seconds of trying
        client.evict(namespace, "a", "another", timeout_s=0.3)
    client.bind(namespace, "a", uid, "node-x", {})
    client.merge_patch(PODS, "a", {"status": {"phase": "Running"}}, namespace, subresource="status")
    budget = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "a"}}}
    client.create(BUDGETS, {"metadata": {"name": "a"}, "spec": budget}, namespace)
    counted = {"observedGeneration": 1, "disruptionsAllowed": 0}  # there is no kube-controller-manager to write it
    client.merge_patch(BUDGETS, "a", {"status": counted}, namespace, subresource="status")
    with pytest.raises(TooManyRequests):
        client.evict(namespace, "a", uid)
    client.delete(BUDGETS, "a", namespace)
    client.evict(namespace, "a", uid)
    assert client.get(PODS, "a", namespace).metadata.deletion_timestamp


def test_a_watch_tells_what_happens_after_a_version(client: Client, namespace: str) -> None:
    """In order, typed, from exactly there, until it is closed."""
    first = client.create(MAPS, config_map("a", x="1"), namespace)
    watch = client.watch(MAPS, namespace, resource_version=first.metadata.resource_version, label_selector="test=yes")
    client.create(MAPS, {"metadata": {"name": "unlabelled"}}, namespace)
    client.merge_patch(MAPS, "a", {"data": {"x": "2"}}, namespace)
    client.delete(MAPS, "a", namespace)
    events = [next(watch) for _ in range(2)]
    assert [(kind, found.data["x"]) for kind, found in events] == [("MODIFIED", "2"), ("DELETED", "2")]
    watch.close()
    watch.close()
    assert list(watch) == []


def test_the_server_ends_a_watch(client: Client, namespace: str) -> None:
    """After the time that was asked for, with a bookmark that says how far it got."""
    version = client.create(CONFIG_MAPS, config_map("a"), namespace).metadata.resource_version
    events = list(client.watch(CONFIG_MAPS, namespace, resource_version=version, timeout_s=1))
    assert {kind for kind, _ in events} <= {"BOOKMARK"}
    assert all(int(found.metadata.resource_version) >= int(version) for _, found in events)


def test_raw_requests_carry_the_same_errors(client: Client) -> None:
    """For what has no method of its own."""
    assert client.request("GET", "/readyz") == b"ok"
    with pytest.raises(NotFound):
        client.request("GET", "/apis/nothing.example/v1")
    with pytest.raises(ServerError):
        client.watch(CONFIG_MAPS, resource_version="no number")


def test_a_bearer_token_says_who_we_are(client: Client, plane: Plane, namespace: str, tmp_path: Path) -> None:
    """The token of a service account, which may do nothing here."""
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    client.request("POST", account, body=b'{"metadata":{"name":"nobody"}}')
    token = json.loads(client.request("POST", f"{account}/nobody/token", body=b'{"spec":{}}'))["status"]["token"]
    kubeconfig = yaml.safe_load(plane.kubeconfig.read_text())
    kubeconfig["users"][0]["user"] = {"token": token}
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(kubeconfig))
    with contextlib.closing(Client.load(file)) as nobody:
        review = json.loads(nobody.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=b"{}"))
        assert review["status"]["userInfo"]["username"] == f"system:serviceaccount:{namespace}:nobody"
        with pytest.raises(Forbidden, match="nobody"):
            nobody.list(CONFIG_MAPS, namespace)
    kubeconfig["users"][0]["user"] = {"token": "wrong"}
    file.write_text(yaml.safe_dump(kubeconfig))
    with contextlib.closing(Client.load(file)) as stranger, pytest.raises(Unauthorized):
        stranger.list(CONFIG_MAPS, namespace)


def test_requests_are_counted(client: Client, namespace: str) -> None:
    """By verb, kind and code, and never by name."""

    def count(code: str) -> float:
        labels = {"verb": "get", "resource": "configmaps", "code": code}
        return REGISTRY.get_sample_value("muster_kube_requests_total", labels) or 0

    found, missing = count("200"), count("404")
    client.create(CONFIG_MAPS, config_map("a"), namespace)
    client.get(CONFIG_MAPS, "a", namespace)
    with pytest.raises(NotFound):
        client.get(CONFIG_MAPS, "b", namespace)
    assert (count("200"), count("404")) == (found + 1, missing + 1)
